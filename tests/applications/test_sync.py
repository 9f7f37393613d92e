import errno
from pathlib import Path

import numpy as np
import pytest

from cycleback.applications import sync, write_synced
from cycleback.errors import OutputExistsError, VideoError
from cycleback.video import Audio, probe, read_audio, read_frames, write_video, writer

TWICE = [np.arange(20), np.linspace(0, 39, 20)]


def brightness(frame: np.ndarray, column: slice) -> float:
    """Mean brightness of the middle of one tile."""
    return float(frame[10:20, column].mean())


@pytest.mark.parametrize("most_open", [9, 1])
def test_the_frames_shown_are_the_frames_asked_for(
    ramps: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_open: int
) -> None:
    monkeypatch.setattr(sync, "MOST_OPEN", most_open)
    path = write_synced(tmp_path / "out.mp4", ramps, TWICE, height=32)
    for frame, step in zip(read_frames(path, [0, 7, 19]), (0, 7, 19), strict=True):
        left, right = brightness(frame, slice(10, 40)), brightness(frame, slice(65, 90))
        assert left == pytest.approx(20 + 4 * TWICE[0][step], abs=6)
        assert right == pytest.approx(20 + 4 * round(TWICE[1][step]), abs=6)


def test_mixed_frames_lie_between(ramps: list[Path], tmp_path: Path) -> None:
    positions = [np.arange(20) / 4] * 2
    path = write_synced(tmp_path / "out.mp4", ramps, positions, height=32, blend=True, captions=[])
    shown = read_frames(path, np.arange(20))[:, 10:20, 10:40].mean((1, 2, 3))
    assert shown == pytest.approx(20 + np.arange(20), abs=2)


def test_length_rate_and_sound_are_the_reference_s(ramps: list[Path], tmp_path: Path) -> None:
    indices = [range(20), np.arange(20)]
    info = probe(write_synced(tmp_path / "out.mp4", ramps, indices))
    assert (info.num_frames, info.fps, info.has_audio) == (20, pytest.approx(10), True)
    assert read_audio(tmp_path / "out.mp4").samples.std() > 0.1
    assert not probe(write_synced(tmp_path / "mute.mp4", ramps, indices, sound=False)).has_audio


def test_another_sound_can_be_laid_under(ramps: list[Path], tmp_path: Path) -> None:
    quiet = Audio(np.zeros((1, 8000), np.float32), 8000)
    path = write_synced(tmp_path / "out.mp4", ramps, TWICE, sound=quiet)
    assert np.abs(read_audio(path).samples).max() < 0.01


def test_four_videos_make_a_grid(ramps: list[Path], tmp_path: Path) -> None:
    path = write_synced(tmp_path / "grid.mp4", ramps * 2, [np.arange(10)] * 4, height=32)
    info = probe(path)
    assert info.width < 3 * 48 < info.width + 48
    assert info.height > 64


def test_an_overlay_is_the_mean_of_both(ramps: list[Path], tmp_path: Path) -> None:
    path = write_synced(tmp_path / "out.mp4", ramps, TWICE, layout="overlay", height=32, captions=[])
    shown = read_frames(path, np.arange(20)).mean((1, 2, 3))
    assert shown == pytest.approx(20 + 4 * np.mean(TWICE, axis=0), abs=4)


def test_switching_shows_the_same_moment_of_another_video(ramps: list[Path], tmp_path: Path) -> None:
    options = {"layout": "switch", "switch_every": 6, "height": 32, "captions": []}
    shown = read_frames(write_synced(tmp_path / "out.mp4", ramps, TWICE, **options), np.arange(20))
    turns = np.arange(20) // 6 % 2
    expected = 20 + 4 * np.rint(np.array(TWICE)[turns, np.arange(20)])
    assert shown.mean((1, 2, 3)) == pytest.approx(expected, abs=4)


def test_videos_of_other_sizes_rates_and_orientations_play_together(
    ramps: list[Path], tmp_path: Path
) -> None:
    frames = [np.full((64, 36, 3), 20 + 4 * i, np.uint8) for i in range(15)]
    tall = write_video(tmp_path / "tall.mp4", frames, fps=24, crf=1)
    for layout in ("grid", "overlay", "tinted", "switch"):
        path = write_synced(tmp_path / f"{layout}.mp4", [ramps[0], tall], [range(15)] * 2, layout=layout)
        assert probe(path).num_frames == 15


def test_one_frame_is_a_video(ramps: list[Path], tmp_path: Path) -> None:
    one = write_video(tmp_path / "one.mp4", [np.full((32, 48, 3), 90, np.uint8)], fps=10)
    assert probe(write_synced(tmp_path / "out.mp4", [one, ramps[0]], [[0], [19]])).num_frames == 1


@pytest.mark.parametrize(("count", "tallest"), [(1, 360), (100, 2160 / 10), (2000, 2160 / 45)])
def test_a_large_grid_fits_on_a_screen(ramps: list[Path], count: int, tallest: float) -> None:
    height = sync._cell_height(probe(ramps[0]), count, layout="grid", columns=None)
    assert 16 <= height <= tallest


def test_what_python_callers_get_wrong(ramps: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"2 videos need 2 index arrays of one length, got \[5, 6\]"):
        write_synced(tmp_path / "out.mp4", ramps, [np.arange(5), np.arange(6)])
    with pytest.raises(ValueError, match=r"layout must be one of grid, .*switch, got 'pile'"):
        write_synced(tmp_path / "out.mp4", ramps, TWICE, layout="pile")
    with pytest.raises(ValueError, match=r"switch_every must be at least 1, got 0"):
        write_synced(tmp_path / "out.mp4", ramps, TWICE, layout="switch", switch_every=0)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_video_is_kept(ramps: list[Path], tmp_path: Path) -> None:
    (tmp_path / "out.mp4").write_text("precious")
    with pytest.raises(OutputExistsError, match=r"out\.mp4 exists"):
        write_synced(tmp_path / "out.mp4", ramps, TWICE)
    assert (tmp_path / "out.mp4").read_text() == "precious"


def test_a_full_disk_leaves_nothing(
    ramps: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writer, "_to_yuv", full)
    with pytest.raises(VideoError, match=r"cannot write .*out\.mp4: No space left on device"):
        write_synced(tmp_path / "out.mp4", ramps, TWICE)
    assert list(tmp_path.iterdir()) == []
