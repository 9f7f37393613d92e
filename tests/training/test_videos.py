from pathlib import Path

import numpy as np
import pytest
import torch

from cycleback.data import FrameCache, VideoRecord
from cycleback.errors import DataError
from cycleback.models import Encoder, VectorBase, build_base, build_embedder
from cycleback.training.videos import label_phases, load_times, load_vectors, load_videos

CPU = torch.device("cpu")


@pytest.fixture
def sequence(tmp_path: Path) -> VideoRecord:
    path = tmp_path / "pose.npz"
    np.savez(path, features=np.arange(12.0).reshape(6, 2) ** 2, fps=10)
    return VideoRecord(name="pose", path=path, kind="sequence")


def test_vectors_are_loaded_with_their_velocities(sequence: VideoRecord, tmp_path: Path) -> None:
    base = VectorBase(in_features=2, velocity=True)
    encoder = Encoder(base, build_embedder("mlp", base.channels))
    (video,) = load_videos(encoder, [sequence], frames=FrameCache(tmp_path, size=(8, 8)), device=CPU)
    assert torch.equal(video[:, :2], load_vectors(sequence))
    assert torch.equal(video[1:, 2:], video[1:, :2] - video[:-1, :2])


def test_a_sequence_has_its_own_times(sequence: VideoRecord, tmp_path: Path) -> None:
    times = load_times(sequence, FrameCache(tmp_path, size=(8, 8)))
    np.testing.assert_allclose(times, np.arange(6) / 10)


def test_a_base_for_pictures_refuses_sequences(sequence: VideoRecord, tmp_path: Path) -> None:
    base = build_base("small")
    encoder = Encoder(base, build_embedder("conv", in_channels=base.channels))
    with pytest.raises(DataError, match=r"pose\.npz is a sequence of vectors: set encoder\.base='vector'"):
        load_videos(encoder, [sequence], frames=FrameCache(tmp_path, size=(8, 8)), device=CPU)


def test_a_base_for_vectors_refuses_pictures(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.mp4 is not a sequence \(\.npz\)"):
        load_vectors(VideoRecord(name="a", path=tmp_path / "a.mp4"))


def record(name: str, action: str = "", **events: float) -> VideoRecord:
    return VideoRecord(name=name, path=Path(name), action=action, events=events)


def times_of(*records: VideoRecord, frames: int = 6) -> dict[str, np.ndarray]:
    return {record.name: np.arange(frames) / 30 for record in records}


def test_each_action_has_phases_of_its_own() -> None:
    videos = [record("a", "pour", touch=2, lift=4), record("b", "bowl", throw=3)]
    labels = label_phases(videos, times_of(*videos), batch_size=2)
    assert labels.num_phases == 5
    assert torch.equal(labels.videos[0], torch.tensor([2, 2, 3, 3, 4, 4]))
    assert torch.equal(labels.videos[1], torch.tensor([0, 0, 0, 1, 1, 1]))


def test_a_video_that_lacks_an_event_is_unlabelled() -> None:
    videos = [record("a", touch=2, lift=4), record("b", touch=1), record("c", touch=1, lift=2)]
    labels = label_phases(videos, times_of(*videos), batch_size=2)
    assert torch.equal(labels.videos[1], torch.full((6,), -1))


def test_batches_that_could_have_no_label_are_refused() -> None:
    videos = [record("a", touch=2), record("b"), record("c")]
    with pytest.raises(DataError, match=r"2 of 3 training videos of the data set lack .* \(the first: b\)"):
        label_phases(videos, times_of(*videos), batch_size=2)


def test_an_action_without_labels_is_named() -> None:
    videos = [record("a", "pour", touch=2), record("b", "bowl")]
    with pytest.raises(DataError, match="1 of 1 training videos of action 'bowl' lack key events"):
        label_phases(videos, times_of(*videos), batch_size=4)
