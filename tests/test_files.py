"""A file is there whole, as it was, or not at all."""

import errno
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from cycleback.errors import OutputExistsError, UserError
from cycleback.files import (
    atomic_file,
    atomic_files,
    atomic_folder,
    check_output,
    remove_drafts,
    replace_folder,
    write_bytes,
    write_text,
)


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
    monkeypatch.setattr("cycleback.files._exchange", lambda *_: False)  # as on systems that cannot
    with (
        pytest.raises(UserError, match=r"cannot write .*set: Input/output error"),
        atomic_folder(target, overwrite=True) as draft,
    ):
        (draft / "b").touch()
    assert [item.name for item in target.iterdir()] == ["a"]
    assert [item.name for item in tmp_path.iterdir()] == ["set"]


def write_half_and_die(folder: Path, overwrite: bool) -> None:
    with atomic_folder(folder / "set", overwrite=overwrite) as draft:
        (draft / "half").touch()
        with atomic_file(folder / "table.csv") as table:
            table.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)


def write_and_wait(folder: Path, is_ready: object, may_end: object) -> None:
    with atomic_file(folder / "slow.txt") as draft:
        draft.write_text("whole")
        is_ready.set()  # type: ignore[attr-defined]
        may_end.wait(60)  # type: ignore[attr-defined]


def test_drafts_of_killed_processes_are_removed_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    start = multiprocessing.get_context("spawn")
    ready, end = start.Event(), start.Event()
    killed = start.Process(target=write_half_and_die, args=(tmp_path, False))
    living = start.Process(target=write_and_wait, args=(tmp_path, ready, end))
    living.start()
    assert ready.wait(60)
    killed.start()
    killed.join(60)
    assert killed.exitcode == -signal.SIGKILL
    left = sorted(path.name[len(".draft-01234567.") :] for path in tmp_path.iterdir())
    assert left == ["set", "slow.txt", "table.csv"]
    write_text(tmp_path / "next.txt", "the next run that writes there")
    (slow,) = tmp_path.glob(".draft-*")
    assert slow.name.endswith("slow.txt")
    end.set()
    living.join(60)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["next.txt", "slow.txt"]
    assert (tmp_path / "slow.txt").read_text() == "whole"


def test_hidden_files_of_other_programs_stay(tmp_path: Path) -> None:
    names = [".hidden", ".draft", ".draft-notes.txt", ".01234567.a.txt", "draft-01234567.a"]
    for name in names:
        (tmp_path / name).touch()
    remove_drafts(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_a_folder_that_was_moved_away_by_a_killed_swap_is_put_back(tmp_path: Path) -> None:
    (tmp_path / ".old-01234567.set").mkdir()
    (tmp_path / ".old-01234567.set" / "a").touch()
    (tmp_path / "there").mkdir()
    (tmp_path / ".old-89abcdef.there").mkdir()
    remove_drafts(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set", "there"]
    assert [path.name for path in (tmp_path / "set").iterdir()] == ["a"]


@pytest.mark.parametrize("can_exchange", [True, False])
def test_folders_swap_with_and_without_help_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr("cycleback.files._exchange", lambda *_: False)
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    replace_folder(tmp_path / "new", tmp_path / "old")
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["old", "old/new"]


def write_some(folder: Path, *, fail: bool = False, overwrite: bool = False) -> None:
    names = ["a.txt", "deep/b.txt", "c.txt"]
    with atomic_files(folder, names, overwrite=overwrite) as drafts:
        for draft, name in zip(drafts, names, strict=True):
            if fail and name == "c.txt":
                raise OSError(28, "No space left on device")
            draft.write_text(f"new {name}")


def read_all(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def test_several_files_appear_together_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No space left"):
        write_some(tmp_path / "set", fail=True)
    assert read_all(tmp_path) == {}
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.txt").write_text("old")
    with pytest.raises(OutputExistsError, match=r"a\.txt exists"):
        write_some(tmp_path / "set")
    with pytest.raises(UserError, match="No space left"):
        write_some(tmp_path / "set", fail=True, overwrite=True)
    assert read_all(tmp_path / "set") == {"a.txt": "old"}
    write_some(tmp_path / "set", overwrite=True)
    assert read_all(tmp_path / "set") == {name: f"new {name}" for name in ("a.txt", "deep/b.txt", "c.txt")}


@pytest.mark.parametrize("last", ["c.txt", "deep/b.txt"])
def test_files_that_were_renamed_are_taken_back_when_another_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    replace: Callable[..., None] = os.replace

    def fail(source: Path, target: Path) -> None:
        if Path(target) == tmp_path / last:
            raise OSError(5, "Input/output error")
        replace(source, target)

    (tmp_path / "a.txt").write_text("old")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(UserError, match="Input/output error"):
        write_some(tmp_path, overwrite=True)
    assert read_all(tmp_path) == {"a.txt": "old"}


def test_of_two_writers_without_overwrite_the_second_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputExistsError, match=r"a\.txt exists"), atomic_file(tmp_path / "a.txt") as draft:
        draft.write_text("second")
        write_text(tmp_path / "a.txt", "first")
    with (
        pytest.raises(OutputExistsError, match="set exists"),
        atomic_folder(tmp_path / "set"),
        atomic_folder(tmp_path / "set") as draft,
    ):
        (draft / "first").touch()
    assert read_all(tmp_path) == {"a.txt": "first", "set/first": ""}


def test_errors_inside_name_the_file_and_not_its_draft(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match=rf"cannot write {tmp_path}/a\.txt: No space"),
        atomic_file(tmp_path / "a.txt") as draft,
    ):
        raise UserError(f"cannot write {draft}: No space left on device")


def test_of_files_only_those_are_replaced_that_are_as_they_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, foreign, empty = (tmp_path / name for name in ("own.csv", "foreign.csv", "empty.csv"))
    write_text(own, "ours")
    if not hasattr(os, "getxattr") or not os.listxattr(own):
        pytest.skip("no extended attributes here")
    foreign.write_text("mine")
    empty.touch()
    for path in (own, empty):
        assert check_output(path, overwrite=True, only_own=True) == path
    with pytest.raises(OutputExistsError, match=r"foreign\.csv is not as this program wrote it"):
        check_output(foreign, overwrite=True, only_own=True)
    with atomic_files(tmp_path, ["one.csv"]) as (draft,):
        draft.write_text("ours")
    check_output(tmp_path / "one.csv", overwrite=True, only_own=True)
    moved = own.rename(tmp_path / "moved.csv")
    check_output(moved, overwrite=True, only_own=True)
    moved.write_text("ours, changed")
    with pytest.raises(OutputExistsError, match="not as this program wrote it"):
        check_output(moved, overwrite=True, only_own=True)

    def fail(*_: object) -> bytes:
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(os, "getxattr", fail)  # a file system without attributes: nobody can tell
    assert check_output(foreign, overwrite=True, only_own=True) == foreign
