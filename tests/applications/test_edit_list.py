from pathlib import Path

import pytest

from cycleback.applications.edit_list import edit_list, time_code
from cycleback.applications.segments import Segment

VIDEOS = [Path("/takes/a.mp4"), Path("/takes/b.mp4")]


def test_an_event_has_source_and_record_times_and_its_speed() -> None:
    segments = [Segment(0, 0, 50, 1.0, 3.0), Segment(1, 50, 75, 4.0, 4.5)]
    lines = edit_list(segments, VIDEOS, fps=25, title="two takes").splitlines()
    assert lines[:2] == ["TITLE: two takes", "FCM: NON-DROP FRAME"]
    assert lines[3] == "001  AX       V     C        00:00:01:00 00:00:03:00 01:00:00:00 01:00:02:00"
    assert lines[4] == "* FROM CLIP NAME: a.mp4"  # at full speed: no M2
    assert lines[5] == "002  AX       V     C        00:00:04:00 00:00:04:12 01:00:02:00 01:00:03:00"
    assert lines[6].split() == ["M2", "AX", "012.5", "00:00:04:00"]
    assert lines[7] == "* FROM CLIP NAME: b.mp4"


def test_a_still_uses_one_frame() -> None:
    line = edit_list([Segment(0, 0, 10, 2.0, 2.0)], VIDEOS, fps=25, title="x").splitlines()[3]
    assert "00:00:02:00 00:00:02:01 01:00:00:00 01:00:00:10" in line


@pytest.mark.parametrize(
    ("frame", "fps", "code"),
    [(0, 30, "00:00:00:00"), (30, 29.97, "00:00:01:00"), (25 * 60, 25, "00:01:00:00")],
)
def test_time_codes_count_without_drops(frame: int, fps: float, code: str) -> None:
    assert time_code(frame, fps) == code
