"""Edit decisions, and what a real ffmpeg makes of them."""

import csv
import os
import re
import subprocess
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest

from cycleback.applications.edits import format_edit_list, format_time_code, write_edits
from cycleback.applications.pace import Pace, smooth_pace
from cycleback.applications.segments import Segment
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import OutputExistsError, UserError
from cycleback.video import probe, read_frames


@pytest.fixture
def pace(embeddings: EmbeddingSet) -> Pace:
    return smooth_pace(embeddings, ["slow", "fast"], reference="slow")


def run_script(script: Path, output: Path) -> np.ndarray:
    """Frames (T, H, W, 3) of the video that the script makes."""
    ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
    subprocess.run(["sh", script, output], env=os.environ | {"FFMPEG": ffmpeg}, check=True)
    return read_frames(output, np.arange(probe(output).num_frames))


def test_the_table_gives_each_video_s_second(pace: Pace, ramps: list[Path], tmp_path: Path) -> None:
    (path,) = write_edits(tmp_path / "edits.csv", pace, ramps)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert list(rows[0]) == ["output_seconds", "slow", "fast"]
    assert [float(row["fast"]) for row in rows] == pytest.approx(pace.sources[1].tolist(), abs=1e-6)


def test_in_turns_the_table_says_whose_turn_it_is(pace: Pace, ramps: list[Path], tmp_path: Path) -> None:
    (path,) = write_edits(tmp_path / "edits.csv", pace, ramps, layout="switch", switch_every=8)
    shown = [row["shown"] for row in csv.DictReader(path.read_text().splitlines())]
    assert shown == ["slow"] * 8 + ["fast"] * 8 + ["slow"] * 4


def test_an_edit_list_a_video(pace: Pace, ramps: list[Path], tmp_path: Path) -> None:
    slow, fast = write_edits(tmp_path / "edits.edl", pace, ramps)
    assert (slow.name, fast.name) == ("edits-slow.edl", "edits-fast.edl")
    assert "M2" not in slow.read_text()
    speeds = [float(found) for found in re.findall(r"M2 +AX +(\S+)", fast.read_text())]
    assert speeds == pytest.approx([20] * len(speeds), rel=0.15)  # twice the list's 10 frames a second


def test_turns_make_one_edit_list(pace: Pace, ramps: list[Path], tmp_path: Path) -> None:
    (path,) = write_edits(tmp_path / "edits.edl", pace, ramps, layout="switch", switch_every=8)
    clips = re.findall(r"CLIP NAME: (\S+)", path.read_text())
    assert list(dict.fromkeys(clips)) == ["slow.mp4", "fast.mp4"]
    assert "01:00:00:08" in path.read_text() and "01:00:02:00" in path.read_text()


def test_ffmpeg_plays_both_side_by_side(pace: Pace, ramps: list[Path], tmp_path: Path) -> None:
    (script,) = write_edits(tmp_path / "go.sh", pace, ramps, height=32)
    frames = run_script(script, tmp_path / "out.mp4")
    assert frames.shape == (20, 32, 96, 3)
    assert frames[:, 8:24, 8:40].mean((1, 2, 3)) == pytest.approx(20 + 4 * pace.positions[0], abs=4)
    assert frames[:, 8:24, 56:88].mean((1, 2, 3)) == pytest.approx(20 + 4 * pace.positions[1], abs=10)
    info = probe(tmp_path / "out.mp4")
    assert (info.duration_s, info.fps, info.has_audio) == (pytest.approx(2.0), pytest.approx(10), True)


def test_ffmpeg_cuts_from_one_to_the_other(pace: Pace, ramps: list[Path], tmp_path: Path) -> None:
    options = {"layout": "switch", "switch_every": 8, "height": 32, "sound": False}
    (script,) = write_edits(tmp_path / "go.sh", pace, ramps, **options)
    shown = run_script(script, tmp_path / "out.mp4").mean((1, 2, 3))
    turns = np.repeat([0, 1, 0], [8, 8, 4])
    assert shown == pytest.approx(20 + 4 * pace.positions[turns, np.arange(20)], abs=10)
    assert not probe(tmp_path / "out.mp4").has_audio


def test_ffmpeg_lays_one_over_the_other(pace: Pace, ramps: list[Path], tmp_path: Path) -> None:
    (script,) = write_edits(tmp_path / "go.sh", pace, ramps, layout="overlay", height=32)
    shown = run_script(script, tmp_path / "out.mp4").mean((1, 2, 3))
    assert shown == pytest.approx(20 + 4 * pace.positions.mean(axis=0), abs=8)


def test_ffmpeg_holds_a_video_that_stands_still(pace: Pace, ramps: list[Path], tmp_path: Path) -> None:
    still = np.stack([pace.sources[0], np.full(20, 1.03)])
    held = Pace(pace.names, pace.fps, pace.seconds, still, still * 10)
    (script,) = write_edits(tmp_path / "go.sh", held, ramps, height=32)
    frames = run_script(script, tmp_path / "out.mp4")
    assert frames[:, 8:24, 56:88].mean((1, 2, 3)) == pytest.approx(np.full(20, 60), abs=6)


def test_ffmpeg_makes_a_grid_of_odd_names(pace: Pace, ramps: list[Path], tmp_path: Path) -> None:
    odd = tmp_path / "it's a 'take'; $x.mp4"
    odd.write_bytes(ramps[1].read_bytes())
    rows = [0, 1, 1, 1, 0]
    four = Pace(tuple("abcde"), pace.fps, pace.seconds, pace.sources[rows], pace.positions[rows])
    (script,) = write_edits(
        tmp_path / "go.sh", four, [ramps[0], odd, ramps[1], odd, ramps[0]], height=32, columns=2
    )
    assert run_script(script, tmp_path / "out.mp4").shape == (20, 96, 96, 3)


@pytest.mark.parametrize(
    ("name", "layout", "message"),
    [
        ("x.txt", "grid", "x.txt: expected a name ending in .csv, .edl, .otio, .fcpxml or .sh"),
        ("x.sh", "tinted", "no ffmpeg script for layout 'tinted': expected grid, row, overlay, switch"),
    ],
)
def test_what_cannot_be_written_is_one_line(
    pace: Pace, ramps: list[Path], tmp_path: Path, name: str, layout: str, message: str
) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        write_edits(tmp_path / name, pace, ramps, layout=layout)
    assert list(tmp_path.iterdir()) == []


def test_no_list_is_written_where_one_exists(pace: Pace, ramps: list[Path], tmp_path: Path) -> None:
    (tmp_path / "edits-fast.edl").write_text("precious")
    with pytest.raises(OutputExistsError, match=r"edits-fast\.edl exists"):
        write_edits(tmp_path / "edits.edl", pace, ramps)
    assert [path.name for path in tmp_path.iterdir()] == ["edits-fast.edl"]


VIDEOS = [Path("/takes/a.mp4"), Path("/takes/b.mp4")]


def test_an_event_has_source_and_record_times_and_its_speed() -> None:
    segments = [Segment(0, 0, 50, 1.0, 3.0), Segment(1, 50, 75, 4.0, 4.5)]
    lines = format_edit_list(segments, VIDEOS, fps=25, title="two takes").splitlines()
    assert lines[:2] == ["TITLE: two takes", "FCM: NON-DROP FRAME"]
    assert lines[3] == "001  AX       V     C        00:00:01:00 00:00:03:00 01:00:00:00 01:00:02:00"
    assert lines[4] == "* FROM CLIP NAME: a.mp4"  # at full speed: no M2
    assert lines[5] == "002  AX       V     C        00:00:04:00 00:00:04:12 01:00:02:00 01:00:03:00"
    assert lines[6].split() == ["M2", "AX", "012.5", "00:00:04:00"]
    assert lines[7] == "* FROM CLIP NAME: b.mp4"


def test_a_still_uses_one_frame() -> None:
    line = format_edit_list([Segment(0, 0, 10, 2.0, 2.0)], VIDEOS, fps=25, title="x").splitlines()[3]
    assert "00:00:02:00 00:00:02:01 01:00:00:00 01:00:00:10" in line


@pytest.mark.parametrize(
    ("frame", "fps", "code"),
    [(0, 30, "00:00:00:00"), (30, 29.97, "00:00:01:00"), (25 * 60, 25, "00:01:00:00")],
)
def test_time_codes_count_without_drops(frame: int, fps: float, code: str) -> None:
    assert format_time_code(frame, fps) == code
