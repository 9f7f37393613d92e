from pathlib import Path

import pytest

from cycleback.data import Pin, read_pins, select_pairs, write_pins
from cycleback.data.pins import match_pins
from cycleback.errors import DataError

PINS = [Pin("a", 12, "b", 30), Pin("b", 71, "a", 40), Pin("c", 0, "a", 2)]


def test_pins_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_pins(tmp_path, [*PINS, PINS[0]])
    assert (tmp_path / "pins.csv").read_text().splitlines()[:2] == [
        "video_a,frame_a,video_b,frame_b",
        "a,12,b,30",
    ]
    assert read_pins(tmp_path) == PINS
    write_pins(tmp_path, [])
    assert read_pins(tmp_path) == [] and [path.name for path in tmp_path.iterdir()] == ["pins.csv"]


def test_a_folder_without_the_file_has_no_pins(tmp_path: Path) -> None:
    assert read_pins(tmp_path) == []


def test_a_table_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    (tmp_path / "pins.csv").write_text(
        "﻿Video_B;Frame_B;note;Video_A;Frame_A\n\nb.mp4;30;top;x/a;12.0\n", "utf-8"
    )
    (pin,) = read_pins(tmp_path)
    assert pin == Pin("x/a", 12, "b.mp4", 30)
    assert match_pins([pin], ["x/a", "b", "c"]) == [Pin("x/a", 12, "b", 30)]
    assert match_pins([pin], ["x/a", "c"]) == []


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,x,b,30", r'line 3, frame_a: expected a number, got "x"'),
        ("a,1.5,b,30", "line 3, frame_a: expected a whole number"),
        ("a,12,b,-1", "line 3: a pin names frame -1; expected 0 or more"),
        ("a,12,a,30", "line 3: a pin joins a with itself; expected two videos"),
        (",12,b,30", "line 3, video_a: expected a text"),
        ("a,12,b", "line 3: 3 cells, expected 4"),
    ],
)
def test_a_damaged_row_is_named_in_one_line(tmp_path: Path, row: str, message: str) -> None:
    (tmp_path / "pins.csv").write_text(f"video_a,frame_a,video_b,frame_b\na,1,b,2\n{row}\n")
    with pytest.raises(DataError, match=message) as caught:
        read_pins(tmp_path)
    assert str(tmp_path / "pins.csv") in str(caught.value) and "\n" not in str(caught.value)


def test_select_pairs_two_videos_come_in_the_order_asked_for() -> None:
    assert select_pairs(PINS, "a", "b") == [(12, 30), (40, 71)]
    assert select_pairs(PINS, "b", "a") == [(30, 12), (71, 40)]
    assert select_pairs(PINS, "b", "c") == []
