from dataclasses import replace
from pathlib import Path

import pytest

from cycleback.annotations import Annotation, Event, Moment, Segment
from cycleback.annotations.text_formats import read_csv, read_frames, write_csv, write_frames
from cycleback.data.labels import read_labels
from cycleback.errors import DataError


def test_the_labels_of_a_data_set_are_read() -> None:
    (video,) = read_csv("video,event,frame\na.mp4,top,12\na.mp4,impact,20\n", "labels.csv")
    assert video.video == "a.mp4"
    assert video.events == (Event("top", Moment(frame=12)), Event("impact", Moment(frame=20)))


def test_a_data_set_reads_what_is_written(drawn, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(write_csv([drawn(3)]), "utf-8")
    frames = {label.event: label.value for label in read_labels(tmp_path / "labels.csv")}
    assert {event.name: event.at.frame for event in drawn(3).events}.items() <= frames.items()


def test_semicolons_capitals_and_a_byte_order_mark_do_not_matter() -> None:
    (video,) = read_csv("\ufeffVideo;Event;Seconds;End_Seconds\na;swing;1.5;2\n\n", "x.csv")
    assert video.segments == (Segment("swing", Moment(1.5), Moment(2.0)),)


def test_commas_inside_cells_of_a_table_of_tabs_do_not_matter() -> None:
    (video,) = read_csv("video\tevent\tframe\na\tup, down, up, and on\t3\n", "x.tsv")
    assert video.events == (Event("up, down, up, and on", Moment(frame=3)),)


def test_a_cell_without_end_is_no_table() -> None:
    with pytest.raises(DataError, match=r"x\.csv, line \d+: not a table \(field larger"):
        read_csv('video,event,frame\n"' + "a\n" * 90_000, "x.csv")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("video,event,frame\na,top,1.5\n", r"x\.csv, line 2, frame: expected a whole number, got \"1\.5\""),
        ("video,event,seconds\na,top,soon\n", r"x\.csv, line 2, seconds: expected a number, got \"soon\""),
        ("video,event,frame\na,,3\n", r"x\.csv, line 2, event: expected a text"),
        ("video,event\na,top\n", r"x\.csv, line 2: no frame and no seconds"),
        (
            "video,event,frame\n\na,top\n",
            r"x\.csv, line 3: 2 cells, expected 3 \(video,event,frame\)",
        ),
        ("file,label,time\na,top,1\n", r"x\.csv: no column 'video' in its first line 'file,label,time'"),
    ],
)
def test_a_wrong_row_names_its_line(rows: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_csv(rows, "x.csv")


def test_runs_of_equal_lines_are_segments_and_background_is_none() -> None:
    (video,) = read_frames("background\npour\npour\nlift\nbackground\n", "folder/a.txt")
    assert (video.video, video.num_frames) == ("a", 5)
    found = [(each.name, each.start.frame, each.end.frame) for each in video.segments]
    assert found == [("pour", 1, 3), ("lift", 3, 4)]


def test_events_alone_open_stretches_that_last_until_the_next() -> None:
    events = (Event("b", Moment(0.3)), Event("a", Moment(0.1)))
    lines = write_frames([Annotation("x", events, fps=10, num_frames=5)]).split()
    assert lines == ["background", "a", "a", "b", "b"]


def test_a_line_without_a_label_is_named() -> None:
    with pytest.raises(DataError, match=r"a\.txt, line 2: empty, expected a label"):
        read_frames("x\n\ny\n", "a.txt")


def test_the_length_must_be_known(drawn) -> None:
    with pytest.raises(DataError, match=r"v: one label per frame needs the number of frames"):
        write_frames([replace(drawn(1), video="v", num_frames=None)])


def test_an_event_that_shares_its_frame_is_not_dropped_in_silence() -> None:
    events = tuple(Event(name, Moment(frame=frame)) for name, frame in (("a", 1), ("b", 1), ("c", 3)))
    with pytest.warns(UserWarning, match=r"v: 'a' is left out, as another event is at its frame 1"):
        text = write_frames([Annotation("v", events, num_frames=4)])
    assert text.splitlines() == ["background", "b", "b", "c"]
