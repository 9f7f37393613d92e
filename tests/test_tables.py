import json
from pathlib import Path

import pytest

from cycleback.errors import DataError, UserError
from cycleback.tables import read_table, write_table


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_what_a_spreadsheet_saves_is_read(tmp_path: Path, delimiter: str) -> None:
    lines = [["Video ", "SPLIT", "note"], ["a", " val", "x"], ["", "", ""], ["b", "train", ""]]
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(delimiter.join(line) for line in lines).encode())
    rows = read_table(path, ("video", "split"))
    assert rows == [
        (2, {"video": "a", "split": "val", "note": "x"}),
        (4, {"video": "b", "split": "train", "note": ""}),
    ]


def test_quoted_cells_may_hold_commas(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('video,event\na,"pour, then stop"\n')
    assert read_table(path, ("video",))[0][1]["event"] == "pour, then stop"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,role\n1,train\n", r"t\.csv: no column 'video' in its first line 'id,role'.*video,split"),
        ("", r"no column 'video' in its first line ''"),
        ("video,split\na\n", r"t\.csv, line 2: 1 cells, expected 2"),
    ],
)
def test_a_table_that_is_not_what_is_needed_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / "t.csv", ("video", "split"))


def test_a_file_that_is_no_text_or_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"video\xff\xfe\n")
    with pytest.raises(DataError, match=r"t\.csv: not a UTF-8 text file \(byte 5\)"):
        read_table(tmp_path / "t.csv", ("video",))
    with pytest.raises(DataError, match=r"cannot read .*none\.csv: No such file"):
        read_table(tmp_path / "none.csv", ("video",))


def test_tables_are_csv_or_json_by_their_suffix(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": "x,y"}, {"a": 2, "b": ""}]
    assert write_table(tmp_path / "t.csv", rows).read_text() == 'a,b\n1,"x,y"\n2,\n'
    assert json.loads(write_table(tmp_path / "t.json", rows).read_text()) == rows
    assert write_table(tmp_path / "none.csv", [], columns=("a", "b")).read_text() == "a,b\n"
    with pytest.raises(UserError, match=r"t\.txt: expected a name ending in \.csv or \.json"):
        write_table(tmp_path / "t.txt", rows)
