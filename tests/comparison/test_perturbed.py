import dataclasses
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from cycleback.comparison.perturbed import Library, _fuse, embed_indices, perturbed_set
from cycleback.data import FrameCache, load_sequence, read_dataset
from cycleback.embeddings.features import FusedFeatures
from cycleback.evaluation.perturbations import perturb
from cycleback.models import Encoder, FusedBase
from cycleback.models.streams import SCALES
from cycleback.recipe import Recipe, build_encoder
from cycleback.recipe.sections import ConvSettings, DataSettings, EncoderSettings, VectorSettings
from cycleback.runs.folder import embed_videos, open_caches
from cycleback.video import read_frames

INDICES = np.array([-1, -1, 3, 3, 7, 8, 20, 21, 22, -1, 30])


def small(train_base: str) -> Encoder:
    torch.manual_seed(0)
    conv = ConvSettings(conv_channels=(16,), fc_channels=(16,))
    section = EncoderSettings(
        streams=("appearance",), base="small", embedder="conv", train_base=train_base, conv=conv
    )
    return build_encoder(Recipe(data=DataSettings(frame_size=48), encoder=section)).eval()


def embed_frames(encoder: Encoder, path: Path, indices: np.ndarray, length: int) -> np.ndarray:
    """The reference: the perturbed frames themselves, encoded in one go."""
    frames = read_frames(path, range(length), size=(48, 48))
    spread = frames[np.linspace(0, length - 1, min(length, 100)).astype(int)]
    still = np.median(spread, axis=0).astype(np.uint8)
    shown = np.stack([still if index < 0 else frames[index] for index in indices])
    with torch.no_grad():
        return torch.cat(
            list(encoder.embed_stream([encoder.features(torch.from_numpy(shown).movedim(-1, 1))]))
        ).numpy()


@pytest.mark.parametrize(("train_base", "tolerance"), [("all", 1e-5), ("frozen", 5e-3)])
def test_looked_up_features_equal_those_of_the_perturbed_frames(
    videos: Path, frame_cache: Path, train_base: str, tolerance: float
) -> None:
    encoder, record = small(train_base), read_dataset(videos).records[3]
    library = Library(encoder, *open_caches(encoder, frame_cache))
    assert (library.features is None) == (train_base == "all")
    length = library.frames.load(record).num_frames
    expected = embed_frames(encoder, record.path, INDICES, length)
    found = embed_indices(library, record, INDICES)
    assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()


def test_streams_are_those_of_the_perturbed_video(videos: Path, frame_cache: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    section = EncoderSettings(streams=("appearance", "motion"), base="small", embedder="pooled")
    encoder = build_encoder(Recipe(data=DataSettings(frame_size=48), encoder=section)).eval()
    record = read_dataset(videos).records[3]
    library = Library(encoder, *open_caches(encoder, frame_cache))
    cached = library.frames.load(record)
    still = np.median(
        cached.frames[np.linspace(0, cached.num_frames - 1, min(cached.num_frames, 100)).astype(int)], axis=0
    ).astype(np.uint8)
    for name, step in (("plain", 1), ("mirrored", -1)):
        folder = tmp_path / "perturbed" / name
        folder.mkdir(parents=True)
        for place, index in enumerate(INDICES):
            picture = still if index < 0 else cached.frames[index]
            Image.fromarray(np.ascontiguousarray(picture[:, ::step])).save(folder / f"{place:03d}.png")
        (folder / "fps.txt").write_text(f"{1 / np.diff(cached.times).mean():.6f}")
    expected = embed_videos(encoder, folder.parent, cache=frame_cache, streams=SCALES)
    found = embed_indices(library, record, INDICES)
    assert found.shape == (len(INDICES), encoder.base.channels)
    np.testing.assert_allclose(found, expected["plain"], atol=2e-3)
    assert isinstance(library.features, FusedFeatures)
    library.features.mirrored = {record.name}
    turned, motion = embed_indices(library, record, INDICES), encoder.base.sizes["appearance"]
    np.testing.assert_allclose(turned[:, motion:], expected["mirrored"][:, motion:], atol=2e-3)
    np.testing.assert_array_equal(turned[:, :motion], found[:, :motion])  # appearance has no sides


def test_a_perturbed_video_shows_nobody_in_its_lead_in() -> None:
    angles = np.linspace(0, 5, 40)[:, None] + np.arange(17)
    poses = np.stack([np.sin(angles), np.cos(angles), np.full_like(angles, 0.9)], axis=2).astype(np.float32)

    class Frames:
        def load(self, record: object) -> SimpleNamespace:
            return SimpleNamespace(times=np.arange(40) / 30, frames=np.zeros((40, 2, 2, 3), np.uint8))

    features = FusedFeatures(Frames(), FusedBase(["pose"]))  # type: ignore[arg-type]
    features.load_raw = lambda record: {"pose": poses}  # type: ignore[assignment,method-assign,misc]
    record = SimpleNamespace(name="one")
    found = _fuse(features, record, np.array([-1] * 30 + list(range(40))))[:, :, 0, 0]  # type: ignore[arg-type]
    assert torch.allclose(found[2:20], found[1], atol=1e-4)  # it stands still
    assert (found[40:60].diff(dim=0).norm(dim=1) > 0.01).all()


def test_sequences_move_their_vectors_and_then_take_velocities(poses: Path, frame_cache: Path) -> None:
    section = EncoderSettings(base="vector", embedder="mlp", vector=VectorSettings(in_features=4))
    encoder = build_encoder(Recipe(encoder=section)).eval()
    record = read_dataset(poses).records[0]
    vectors = load_sequence(record).features
    still = np.median(vectors, axis=0)
    moved = torch.from_numpy(np.stack([still if i < 0 else vectors[i] for i in INDICES]))
    with torch.no_grad():
        expected = torch.cat(
            list(encoder.embed_stream([encoder.features(encoder.base.prepare(moved))]))
        ).numpy()
    np.testing.assert_allclose(
        embed_indices(Library(encoder, *open_caches(encoder, frame_cache)), record, INDICES),
        expected,
        atol=1e-5,
    )


@pytest.mark.parametrize("kind", ["cropped", "speed", "lead-in"])
def test_a_perturbed_set_carries_the_moved_key_events(videos: Path, frame_cache: Path, kind: str) -> None:
    held_out = read_dataset(videos).split("val")
    frames = FrameCache(frame_cache, size=(48, 48))
    found = perturbed_set(Library(None, frames), held_out, kind=kind, seed=4)
    for record in held_out:
        events = {event: int(frame) for event, frame in record.events.items()}
        expected = perturb(record.name, frames.load(record).num_frames, events, kind=kind, seed=4)
        assert found.events(record.name) == dict(expected.events)
        assert len(found[record.name]) == len(expected.indices)


def test_without_an_encoder_a_frame_is_its_place(videos: Path, frame_cache: Path) -> None:
    record = dataclasses.replace(read_dataset(videos).records[0])
    library = Library(None, FrameCache(frame_cache, size=(48, 48)))
    assert embed_indices(library, record, INDICES[:4]).ravel().tolist() == [0.0, 0.25, 0.5, 0.75]
