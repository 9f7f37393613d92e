"""What was chosen or computed for some videos is found again by the next command on them."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cycleback.data import FrameCache, VideoRecord, read_dataset
from cycleback.embeddings import features as features_module
from cycleback.embeddings.choices import recall
from cycleback.embeddings.embed import embed_records
from cycleback.models import Encoder, FastEncoder, build_base, build_embedder
from cycleback.runs import embed_videos
from cycleback.runs.folder import build_pretrained
from cycleback.synth import write_dataset


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("choices") / "videos"
    write_dataset(folder, videos=3, seed=1, size=64, jobs=1)
    return folder


def fail(*_: object, **__: object) -> None:
    raise AssertionError("computed again")


def test_weights_and_sides_are_chosen_once_for_the_same_videos(
    videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, cache = build_pretrained(("motion",)), tmp_path / "cache"
    first = embed_videos(encoder, videos, cache=cache)
    kinds = {path.name for path in (cache / "frames").glob("*/*")}
    assert kinds == {"motion.npy", "times.npy", "meta.json"}  # no frames
    with monkeypatch.context() as patch:
        for name in ("weigh_streams", "find_mirrored"):
            patch.setattr(features_module, name, fail)
        patch.setattr("cycleback.data.cache.iter_frames", fail)
        second = embed_videos(encoder, videos, cache=cache)
    assert second.streams == first.streams and second.mirrored == first.mirrored
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
    monkeypatch.setattr(features_module, "weigh_streams", fail)
    with pytest.raises(AssertionError, match="computed again"):
        embed_videos(encoder, [*sorted(videos.glob("*.mp4"))[:2]], cache=cache)


def test_a_changed_measurement_is_another_question(
    videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, cache = build_pretrained(("motion",)), tmp_path / "cache"
    embed_videos(encoder, videos, cache=cache)
    (path, *_) = (cache / "frames").glob("*/motion.npy")
    np.save(path, np.load(path) + np.float16(0.5))
    monkeypatch.setattr(features_module, "weigh_streams", fail)
    with pytest.raises(AssertionError, match="computed again"):
        embed_videos(encoder, videos, cache=cache)


def test_a_damaged_answer_is_given_again(tmp_path: Path) -> None:
    assert recall(tmp_path, ["q", 1], lambda: [1, 2]) == [1, 2]
    assert recall(tmp_path, ["q", 1], fail) == [1, 2]
    assert recall(tmp_path, ["q", 2], lambda: "other") == "other"
    for path in (tmp_path / "choices").iterdir():
        path.write_text("{")
    assert recall(tmp_path, ["q", 1], lambda: [3]) == [3]


def make_encoder(seed: int) -> Encoder:
    torch.manual_seed(seed)
    base = build_base("small")
    embedder = build_embedder("conv", base.channels, conv_channels=(8,), fc_channels=(8,), embedding_size=4)
    return Encoder(base, embedder, frame_size=(32, 32)).eval()


def test_embeddings_of_an_encoder_are_kept_per_video(
    videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records: list[VideoRecord] = list(read_dataset(videos))
    cache = FrameCache(tmp_path / "cache", size=(32, 32))
    first = embed_records(make_encoder(0), records, frames=cache)
    assert not list((tmp_path / "cache").rglob("frames.npy"))
    calls: list[tuple[int, int]] = []
    with monkeypatch.context() as patch:
        patch.setattr(FastEncoder, "__init__", fail)
        patch.setattr("cycleback.data.cache.iter_frames", fail)
        again = embed_records(
            make_encoder(0),
            records,
            frames=FrameCache(cache.root, size=(32, 32)),
            progress=lambda *c: calls.append(c),
        )
    assert calls == [(first.num_frames, first.num_frames)]
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])
        np.testing.assert_array_equal(first.times(name), again.times(name))
        assert first.events(name) == again.events(name)
    other = embed_records(make_encoder(1), records, frames=cache)
    assert not np.allclose(other["pouring_000"], first["pouring_000"])


def test_one_new_video_is_embedded_beside_those_that_are_kept(videos: Path, tmp_path: Path) -> None:
    records = list(read_dataset(videos))
    cache = FrameCache(tmp_path / "cache", size=(32, 32))
    embed_records(make_encoder(0), records[1:], frames=cache)
    mixed = embed_records(make_encoder(0), records, frames=cache)
    whole = embed_records(make_encoder(0), records, frames=FrameCache(tmp_path / "new", size=(32, 32)))
    assert mixed.names == whole.names
    for name in whole:
        np.testing.assert_allclose(mixed[name], whole[name], atol=1e-6)
