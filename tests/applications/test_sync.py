from pathlib import Path

import numpy as np
import pytest

from cycleback.applications import own_pace, reference_pace, write_synced
from cycleback.embeddings import EmbeddingSet
from cycleback.video import probe, read_audio, read_frames


def brightness(frame: np.ndarray, column: slice) -> float:
    """Mean brightness of the middle of one tile."""
    return float(frame[10:20, column].mean())


@pytest.mark.parametrize("method", ["nearest", "dtw"])
def test_every_video_follows_the_pace_of_the_reference(embeddings: EmbeddingSet, method: str) -> None:
    slow, fast = reference_pace(embeddings, ["slow", "fast"], reference="slow", method=method)
    assert slow.tolist() == list(range(20))
    assert np.abs(fast - np.linspace(0, 39, 20)).max() <= 1


def test_own_pace_holds_the_last_frame_of_a_shorter_video(embeddings: EmbeddingSet) -> None:
    slow, fast = own_pace(embeddings, ["slow", "fast"])
    assert fast.tolist() == list(range(40))
    assert slow.tolist() == [*range(20), *[19] * 20]


def test_the_frames_shown_are_the_frames_asked_for(ramps: list[Path], tmp_path: Path) -> None:
    indices = [np.arange(20), np.linspace(0, 39, 20).astype(np.int64)]
    path = write_synced(tmp_path / "out.mp4", ramps, indices, height=32)
    shown = read_frames(path, [0, 7, 19])
    for frame, step in zip(shown, (0, 7, 19), strict=True):
        left, right = brightness(frame, slice(10, 40)), brightness(frame, slice(65, 90))
        assert left == pytest.approx(20 + 4 * indices[0][step], abs=6)
        assert right == pytest.approx(20 + 4 * indices[1][step], abs=6)


def test_length_rate_and_sound_are_the_reference_s(ramps: list[Path], tmp_path: Path) -> None:
    indices = [np.arange(20), np.arange(20)]
    info = probe(write_synced(tmp_path / "out.mp4", ramps, indices))
    assert (info.num_frames, info.fps, info.has_audio) == (20, pytest.approx(10), True)
    assert read_audio(tmp_path / "out.mp4").samples.std() > 0.1
    assert not probe(write_synced(tmp_path / "mute.mp4", ramps, indices, sound=False)).has_audio


def test_four_videos_make_a_grid(ramps: list[Path], tmp_path: Path) -> None:
    path = write_synced(tmp_path / "grid.mp4", ramps * 2, [np.arange(10)] * 4, height=32)
    info = probe(path)
    assert info.width < 3 * 48 < info.width + 48
    assert info.height > 64


def test_arrays_of_unequal_length_are_refused(ramps: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"2 videos need 2 index arrays of one length, got \[5, 6\]"):
        write_synced(tmp_path / "out.mp4", ramps, [np.arange(5), np.arange(6)])
    assert list(tmp_path.iterdir()) == []
