from pathlib import Path

import pytest

from cycleback.errors import DataError
from cycleback.selection import file_names, named_records, videos_to_show


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.mp4", "b.mp4", "c.mp4"):
        (tmp_path / name).write_bytes(b"x")
    return tmp_path


def test_files_are_named_by_their_stem_and_by_their_path_where_stems_clash() -> None:
    assert file_names([Path("x/a.mp4"), Path("b.mp4")]) == ["a", "b"]
    assert file_names([Path("x/a.mp4"), Path("y/a.mp4")]) == ["x/a.mp4", "y/a.mp4"]


def test_the_same_file_twice_is_one_video(folder: Path) -> None:
    records, events = named_records([folder / "a.mp4", folder / "a.mp4"])
    assert [record.name for record in records] == ["a"]
    assert list(events) == []


def test_a_folder_stands_for_its_videos(folder: Path) -> None:
    assert [record.name for record in named_records(folder)[0]] == ["a", "b", "c"]
    assert videos_to_show([str(folder)], most=2) == [folder / "a.mp4", folder / "b.mp4"]


def test_the_reference_comes_first(folder: Path) -> None:
    shown = videos_to_show([str(folder)], reference="c", most=2)
    assert shown == [folder / "c.mp4", folder / "a.mp4"]


def test_a_folder_among_files_is_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="is a folder; give video files, or this folder alone"):
        named_records([folder, folder / "a.mp4"])


def test_a_missing_file_is_refused_by_name(folder: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.mp4 does not exist; check the spelling"):
        named_records([folder / "a.mp4", folder / "gone.mp4"])


def test_a_folder_of_two_actions_is_not_shown_together(folder: Path) -> None:
    for name in ("golf", "tennis"):
        (folder / name).mkdir()
        (folder / f"{name[0]}.mp4").touch()
        (folder / name / "d.mp4").write_bytes(b"x")
    for name in "abcgt":
        (folder / f"{name}.mp4").unlink()
    with pytest.raises(DataError, match="holds golf, tennis: name the folder of one action"):
        videos_to_show([str(folder)])
