from dataclasses import replace

import pytest

from cycleback.annotations import Annotation, Event, Moment
from cycleback.annotations.frame_lines import read, write
from cycleback.errors import DataError


def test_runs_of_equal_lines_are_segments_and_background_is_none() -> None:
    (video,) = read("background\npour\npour\nlift\nbackground\n", "folder/a.txt")
    assert (video.video, video.num_frames) == ("a", 5)
    found = [(each.name, each.start.frame, each.end.frame) for each in video.segments]
    assert found == [("pour", 1, 3), ("lift", 3, 4)]


def test_events_alone_open_stretches_that_last_until_the_next() -> None:
    events = (Event("b", Moment(0.3)), Event("a", Moment(0.1)))
    lines = write([Annotation("x", events, fps=10, num_frames=5)]).split()
    assert lines == ["background", "a", "a", "b", "b"]


def test_a_line_without_a_label_is_named() -> None:
    with pytest.raises(DataError, match=r"a\.txt, line 2: empty, expected a label"):
        read("x\n\ny\n", "a.txt")


def test_the_length_must_be_known(drawn) -> None:
    with pytest.raises(DataError, match=r"v: one label a frame needs the number of frames"):
        write([replace(drawn(1), video="v", num_frames=None)])
