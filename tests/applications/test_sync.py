import errno
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from cycleback.applications import sync, write_synced
from cycleback.applications.sync import (
    LAYOUTS,
    Cell,
    arrange,
    average_images,
    read_frames_at,
    tint_colours,
    tint_images,
)
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
    monkeypatch.setattr(sync, "MAX_OPEN_FILES", most_open)
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


def brightness_at(path: Path, positions: list[float], **options: object) -> np.ndarray:
    frames = read_frames_at(path, np.array(positions, dtype=float), size=(32, 48), **options)
    return np.array([frame.mean() for frame in frames])


@pytest.mark.parametrize("stay_open", [True, False])
def test_the_nearest_frame_is_shown(ramps: list[Path], stay_open: bool) -> None:
    shown = brightness_at(ramps[0], [0, 0.4, 0.6, 7, 7, 18.7], stay_open=stay_open)
    assert shown == pytest.approx(20 + 4 * np.array([0, 0, 1, 7, 7, 19]), abs=2)


@pytest.mark.parametrize("stay_open", [True, False])
def test_between_frames_both_are_mixed(ramps: list[Path], stay_open: bool) -> None:
    positions = [0, 0.25, 3.5, 3.75, 9, 18.5, 19]
    shown = brightness_at(ramps[0], positions, stay_open=stay_open, blend=True)
    assert shown == pytest.approx(20 + 4 * np.array(positions), abs=1.5)


def test_positions_may_run_backwards(ramps: list[Path]) -> None:
    assert brightness_at(ramps[1], [30, 2, 17]) == pytest.approx(20 + 4 * np.array([30, 2, 17]), abs=2)


def test_chunks_make_no_difference(ramps: list[Path]) -> None:
    positions = list(np.linspace(0, 39, 33))
    whole = brightness_at(ramps[1], positions, blend=True)
    assert brightness_at(ramps[1], positions, blend=True, stay_open=False, chunk_frames=1) == pytest.approx(
        whole
    )


def test_a_file_shorter_than_promised_holds_its_last_frame(ramps: list[Path]) -> None:
    assert brightness_at(ramps[0], [18, 25])[-1] == pytest.approx(20 + 4 * 19, abs=2)


def shown(value: int, size: tuple[int, int] = (80, 100), caption: str = "take") -> Cell:
    return Cell(np.full((*size, 3), value, np.uint8), caption, 1.25, 0.5)


def test_an_onion_skin_is_the_mean() -> None:
    picture = average_images([shown(10).image, shown(20).image, shown(60).image])
    assert (picture == 30).all()


@pytest.mark.parametrize("count", [2, 3, 5])
def test_tints_sum_to_white_so_that_agreement_is_grey(count: int) -> None:
    assert tint_colours(count).sum(axis=0) == pytest.approx(np.ones(3), abs=1e-5)
    assert np.abs(tint_images([shown(100).image] * count).astype(int) - 100).max() <= 1


def test_two_tints_are_orange_and_blue() -> None:
    orange, blue = tint_colours(2)
    assert orange[0] > orange[2] and blue[2] > blue[0]
    difference = tint_images([shown(200).image, shown(0).image])[0, 0]
    assert difference[0] > 150 > difference[2]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_keeps_its_size_from_frame_to_frame(layout: str) -> None:
    first = arrange([shown(10), shown(90, (100, 60))], layout=layout)
    later = arrange([shown(50, caption="a much longer name " * 4), shown(9, (100, 60))], layout=layout)
    assert first.shape == later.shape


def test_a_row_is_one_row_and_a_grid_is_not() -> None:
    row = arrange([shown(10)] * 5, layout="row", words=False)
    grid = arrange([shown(10)] * 5, layout="grid", words=False)
    assert row.shape[1] > 500 > grid.shape[1] > 300
    assert row.shape[0] < 100 < grid.shape[0]


@pytest.mark.parametrize("layout", ["overlay", "tinted", "switch"])
def test_without_words_only_the_picture_is_left(layout: str) -> None:
    assert arrange([shown(10), shown(30)], layout=layout, words=False).shape == (80, 100, 3)


def test_names_too_small_to_read_are_left_out() -> None:
    tiny = arrange([shown(10, (30, 40))] * 2, layout="grid")
    assert tiny.shape[0] < 30 + 18


def test_a_minute_reads_as_one() -> None:
    a, b = (arrange([Cell(shown(1).image, "", second, 0)], layout="switch") for second in (59.99, 61.5))
    assert (a != b).any()


def write_wide(path: Path) -> Path:
    """A video of 64 x 48 pixels, each twice as wide as high."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.sample_aspect_ratio = Fraction(2)
        for level in range(5):
            picture = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 40 * level, np.uint8))
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return path


def test_pixels_that_are_not_square_are_shown_in_their_proportions(tmp_path: Path) -> None:
    wide = write_wide(tmp_path / "wide.mp4")
    options = {"layout": "row", "height": 48, "captions": [], "sound": False}
    info = probe(write_synced(tmp_path / "out.mp4", [wide, wide], [range(5)] * 2, **options))
    assert info.width == pytest.approx(2 * 128, abs=16)
