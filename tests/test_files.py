"""A file is there whole, as it was, or not at all."""

import os
from pathlib import Path

import pytest

from cycleback.errors import OutputExistsError, UserError
from cycleback.files import check_output, whole_file, write_bytes, write_text


def test_writes_text_and_bytes_and_makes_the_folder(tmp_path: Path) -> None:
    assert write_text(tmp_path / "new" / "a.txt", "é").read_bytes() == "é".encode()
    assert write_bytes(tmp_path / "b.bin", b"\x00").read_bytes() == b"\x00"


def test_an_existing_file_is_kept_unless_it_may_be_replaced(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.txt", "old")
    with pytest.raises(OutputExistsError, match=r"a\.txt exists"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert write_text(path, "new", overwrite=True).read_text() == "new"


def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.txt", "old")
    with pytest.raises(KeyError), whole_file(path, overwrite=True) as draft:
        draft.write_text("half")
        raise KeyError
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]


def test_a_full_disk_is_one_line_that_names_the_file(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match=r"cannot write .*a\.txt: No space left"),
        whole_file(tmp_path / "a.txt"),
    ):
        raise OSError(28, "No space left on device")
    assert not list(tmp_path.iterdir())


def test_a_place_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"a\.txt: expected a name ending in \.csv or \.json"):
        check_output(tmp_path / "a.txt", suffixes=(".csv", ".json"))
    with pytest.raises(UserError, match=r"file/sub/a\.csv: .*file is a file, not a folder"):
        check_output(tmp_path / "file" / "sub" / "a.csv")
    assert check_output(str(tmp_path / "new" / "A.CSV"), suffixes=[".csv"]) == tmp_path / "new" / "A.CSV"
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UserError, match=rf"no permission to write in {tmp_path}"):
        check_output(tmp_path / "new" / "a.csv")
    assert [item.name for item in tmp_path.iterdir()] == ["file"]
