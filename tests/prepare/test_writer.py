import errno
import os
from pathlib import Path

import pytest

from cycleback.data import read_dataset
from cycleback.errors import DataError, OutputExistsError, UserError
from cycleback.prepare.writer import DatasetWriter, new_dataset, place_file


def fill(writer: DatasetWriter) -> None:
    for name in ("cup/a", "cup/b"):
        writer.add(name, split="train", events={"touch": 0}).with_suffix(".npz").write_bytes(b"")


def write(destination: Path, *, overwrite: bool = False) -> None:
    with new_dataset(destination, source=destination.parent / "in", overwrite=overwrite) as writer:
        fill(writer)


def test_folder_appears_when_it_is_whole(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "out")
    assert read_dataset(tmp_path / "deep" / "out").names == ("cup/a", "cup/b")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_a_failure_leaves_nothing_and_keeps_the_old(tmp_path: Path) -> None:
    write(tmp_path / "out")
    with (
        pytest.raises(KeyboardInterrupt),
        new_dataset(tmp_path / "out", source=tmp_path / "in", overwrite=True) as writer,
    ):
        writer.add("c", split="val", events={})
        raise KeyboardInterrupt
    assert read_dataset(tmp_path / "out").names == ("cup/a", "cup/b")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_exists_is_not_overwritten_unasked(tmp_path: Path) -> None:
    write(tmp_path / "out")
    with pytest.raises(OutputExistsError, match=r"out exists\. Add --overwrite"):
        write(tmp_path / "out")
    write(tmp_path / "out", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_empty_folder_may_be_used_and_a_file_may_not(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write(tmp_path / "out")
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputExistsError, match="file is a file"):
        write(tmp_path / "file", overwrite=True)


def test_a_folder_that_was_not_prepared_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("x")
    with pytest.raises(OutputExistsError, match=r"out has no prepared\.json, so this program did"):
        write(tmp_path / "out", overwrite=True)


@pytest.mark.parametrize("added", ["mine.mp4", "cup/mine.mp4", "pins.csv"])
def test_a_prepared_folder_to_which_something_was_added_is_not_replaced(tmp_path: Path, added: str) -> None:
    write(tmp_path / "out")
    (tmp_path / "out" / added).write_text("mine")
    with pytest.raises(OutputExistsError, match="which this program did not write"):
        write(tmp_path / "out", overwrite=True)
    assert (tmp_path / "out" / added).read_text() == "mine"


@pytest.mark.parametrize("destination", [".", "in", "in/.."])
def test_the_source_is_never_replaced(tmp_path: Path, destination: str) -> None:
    (tmp_path / "in").mkdir()
    with (
        pytest.raises(DataError, match=r"contains the source .*in"),
        new_dataset(tmp_path / destination, source=tmp_path / "in", overwrite=True),
    ):
        pass


@pytest.mark.parametrize("name", ["../a", "/a", "a//b", ".a", "a\\b", "a/.."])
def test_names_that_leave_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="cannot be the name of a video"):
        DatasetWriter(tmp_path).add(name, split="train", events={})


def test_two_videos_of_one_name_are_refused(tmp_path: Path) -> None:
    writer = DatasetWriter(tmp_path)
    writer.add("a", split="train", events={})
    with pytest.raises(DataError, match="two videos named 'a'"):
        writer.add("a", split="val", events={})


def test_links_fall_back_to_symbolic_links_and_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EXDEV, "another disk")

    (tmp_path / "a").write_text("content")
    monkeypatch.setattr(os, "link", fails)
    place_file(tmp_path / "a", tmp_path / "b", link=True)
    monkeypatch.setattr(os, "symlink", fails)
    place_file(tmp_path / "a", tmp_path / "c", link=True)
    assert (tmp_path / "b").is_symlink() and not (tmp_path / "c").is_symlink()
    assert (tmp_path / "b").read_text() == (tmp_path / "c").read_text() == "content"


@pytest.mark.parametrize("link", [True, False])
def test_a_missing_file_makes_no_dangling_link(tmp_path: Path, link: bool) -> None:
    with pytest.raises(FileNotFoundError):
        place_file(tmp_path / "gone", tmp_path / "b", link=link)
    assert not os.path.lexists(tmp_path / "b")


def test_errors_of_the_disk_become_one_line(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match=r"cannot write .*out: No such file"),
        new_dataset(tmp_path / "out", source=tmp_path / "in", overwrite=False),
    ):
        place_file(tmp_path / "gone", tmp_path / "b", link=True)


def test_each_kind_of_warning_is_one_line_with_its_count_and_first_case(tmp_path: Path) -> None:
    writer = DatasetWriter(tmp_path)
    writer.warn("videos without labels", "a")
    writer.warn("videos without labels", "b")
    writer.warn("odd names", "c")
    assert writer.warnings == ("videos without labels: 2 (first: a)", "odd names: 1 (c)")
