from pathlib import Path

import numpy as np
import pytest
import torch

from cycleback.data import FrameCache, VideoRecord
from cycleback.errors import DataError
from cycleback.models import Encoder, VectorBase, build_base, build_embedder
from cycleback.training.videos import load_videos, presentation_times, vectors

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
    assert torch.equal(video[:, :2], vectors(sequence))
    assert torch.equal(video[1:, 2:], video[1:, :2] - video[:-1, :2])


def test_a_sequence_has_its_own_times(sequence: VideoRecord, tmp_path: Path) -> None:
    times = presentation_times(sequence, FrameCache(tmp_path, size=(8, 8)))
    np.testing.assert_allclose(times, np.arange(6) / 10)


def test_a_base_for_pictures_refuses_sequences(sequence: VideoRecord, tmp_path: Path) -> None:
    base = build_base("small")
    encoder = Encoder(base, build_embedder("conv", in_channels=base.channels))
    with pytest.raises(DataError, match=r"pose\.npz is a sequence of vectors: set encoder\.base='vector'"):
        load_videos(encoder, [sequence], frames=FrameCache(tmp_path, size=(8, 8)), device=CPU)


def test_a_base_for_vectors_refuses_pictures(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.mp4 is no sequence \(\.npz\)"):
        vectors(VideoRecord(name="a", path=tmp_path / "a.mp4"))
