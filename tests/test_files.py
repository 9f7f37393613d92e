"""A file is there whole, as it was, or not at all."""

import os
from pathlib import Path

import pytest

from cycleback.errors import OutputExistsError, UserError
from cycleback.files import atomic_file, atomic_folder, check_output, write_bytes, write_text


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
    with pytest.raises(KeyError), atomic_file(path, overwrite=True) as draft:
        draft.write_text("half")
        raise KeyError
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]


def test_a_full_disk_is_one_line_that_names_the_file(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match=r"cannot write .*a\.txt: No space left"),
        atomic_file(tmp_path / "a.txt"),
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


def test_a_folder_appears_whole_and_replaces_the_old_one_only_when_asked(tmp_path: Path) -> None:
    target = tmp_path / "set"
    with atomic_folder(target) as draft:
        (draft / "a").write_text("1")
        assert not target.exists()
    with pytest.raises(OutputExistsError, match="set exists"), atomic_folder(target):
        pass
    with atomic_folder(target, overwrite=True) as draft:
        (draft / "b").write_text("2")
    assert [item.name for item in target.iterdir()] == ["b"]
    assert [item.name for item in tmp_path.iterdir()] == ["set"]


def test_a_failure_leaves_the_old_folder_and_no_draft(tmp_path: Path) -> None:
    target = tmp_path / "set"
    target.mkdir()
    (target / "a").touch()
    with pytest.raises(KeyError), atomic_folder(target, overwrite=True) as draft:
        (draft / "b").touch()
        raise KeyError
    assert [item.name for item in target.iterdir()] == ["a"]
    assert [item.name for item in tmp_path.iterdir()] == ["set"]


def test_the_old_folder_is_restored_when_the_swap_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, rename = tmp_path / "set", os.rename
    target.mkdir()
    (target / "a").touch()

    def fail_for_draft(source: Path, destination: Path) -> None:
        if (Path(source) / "b").exists():
            raise OSError(5, "Input/output error")
        rename(source, destination)

    monkeypatch.setattr(os, "rename", fail_for_draft)
    with (
        pytest.raises(UserError, match=r"cannot write .*set: Input/output error"),
        atomic_folder(target, overwrite=True) as draft,
    ):
        (draft / "b").touch()
    assert [item.name for item in target.iterdir()] == ["a"]
    assert [item.name for item in tmp_path.iterdir()] == ["set"]
