from pathlib import Path

import pytest

from cycleback.annotations import Event, Moment, Segment
from cycleback.annotations.text_formats import read, write
from cycleback.data.labels import read_labels
from cycleback.errors import DataError


def test_the_labels_of_a_data_set_are_read() -> None:
    (video,) = read("video,event,frame\na.mp4,top,12\na.mp4,impact,20\n", "labels.csv")
    assert video.video == "a.mp4"
    assert video.events == (Event("top", Moment(frame=12)), Event("impact", Moment(frame=20)))


def test_a_data_set_reads_what_is_written(drawn, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(write([drawn(3)]), "utf-8")
    frames = {label.event: label.value for label in read_labels(tmp_path / "labels.csv")}
    assert {event.name: event.at.frame for event in drawn(3).events}.items() <= frames.items()


def test_semicolons_capitals_and_a_byte_order_mark_do_not_matter() -> None:
    (video,) = read("\ufeffVideo;Event;Seconds;End_Seconds\na;swing;1.5;2\n\n", "x.csv")
    assert video.segments == (Segment("swing", Moment(1.5), Moment(2.0)),)


def test_commas_inside_cells_of_a_table_of_tabs_do_not_matter() -> None:
    (video,) = read("video\tevent\tframe\na\tup, down, up, and on\t3\n", "x.tsv")
    assert video.events == (Event("up, down, up, and on", Moment(frame=3)),)


def test_a_cell_without_end_is_no_table() -> None:
    with pytest.raises(DataError, match=r"x\.csv, line \d+: not a table \(field larger"):
        read('video,event,frame\n"' + "a\n" * 90_000, "x.csv")


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
        read(rows, "x.csv")
