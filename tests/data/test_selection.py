from pathlib import Path

import pytest

from cycleback.data.selection import name_files, pick_videos, select_records
from cycleback.errors import DataError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.mp4", "b.mp4", "c.mp4"):
        (tmp_path / name).write_bytes(b"x")
    return tmp_path


def test_files_are_named_by_their_stem_and_by_their_path_where_stems_clash() -> None:
    assert name_files([Path("x/a.mp4"), Path("b.mp4")]) == ["a", "b"]
    assert name_files([Path("x/a.mp4"), Path("y/a.mp4")]) == ["x/a.mp4", "y/a.mp4"]


def test_the_same_file_twice_is_one_video(folder: Path) -> None:
    records, events = select_records([folder / "a.mp4", folder / "a.mp4"])
    assert [record.name for record in records] == ["a"]
    assert list(events) == []


def test_a_folder_stands_for_its_videos(folder: Path) -> None:
    assert [record.name for record in select_records(folder)[0]] == ["a", "b", "c"]
    assert pick_videos([str(folder)], max_videos=2) == [folder / "a.mp4", folder / "b.mp4"]


def test_the_reference_comes_first(folder: Path) -> None:
    shown = pick_videos([str(folder)], reference="c", max_videos=2)
    assert shown == [folder / "c.mp4", folder / "a.mp4"]


def test_a_folder_among_files_is_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="is a folder; give video files, or this folder alone"):
        select_records([folder, folder / "a.mp4"])


def test_a_missing_file_is_refused_by_name(folder: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.mp4 does not exist; check the spelling"):
        select_records([folder / "a.mp4", folder / "gone.mp4"])


def test_a_folder_of_two_actions_is_not_shown_together(folder: Path) -> None:
    for name in ("golf", "tennis"):
        (folder / name).mkdir()
        (folder / f"{name[0]}.mp4").touch()
        (folder / name / "d.mp4").write_bytes(b"x")
    for name in "abcgt":
        (folder / f"{name}.mp4").unlink()
    with pytest.raises(DataError, match="holds golf, tennis: name the folder of one action"):
        pick_videos([str(folder)])
