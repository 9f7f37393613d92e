import shutil
from pathlib import Path

import pytest

from cycleback.comparison.plan import make_plan
from cycleback.data import read_dataset, split_dataset
from cycleback.errors import DataError


def test_the_split_is_the_one_a_run_would_draw(poses: Path) -> None:
    plan = make_plan(poses, methods=["tcc"], seed=4, overrides=["data.held_out=0.4"])
    drawn = split_dataset(read_dataset(poses).records, 0.4, 4)
    assert set(plan.held_out.names) == {record.name for record in drawn if record.split == "val"}
    assert set(plan.train.names) | set(plan.held_out.names) == set(plan.dataset.names)


def test_a_given_split_is_kept_and_other_splits_are_parts(videos: Path) -> None:
    plan = make_plan(videos, methods=["tcc"])
    assert plan.held_out.names == ("pouring_003", "pouring_004")
    assert plan.other_splits == ("val_slow",)
    assert plan.is_labelled
    assert plan.has_pictures


def test_a_test_folder_is_held_out_where_there_is_no_other(poses: Path, tmp_path: Path) -> None:
    for number in range(8):
        folder = tmp_path / ("test" if number < 2 else "train")
        folder.mkdir(exist_ok=True)
        shutil.copy(poses / f"clip_{number}.npz", folder)
    assert make_plan(tmp_path, methods=[]).held_out.names == ("test/clip_0", "test/clip_1")


def test_labels_and_settings_change_what_a_row_depends_on(poses: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    data = shutil.copytree(poses, tmp_path / "data", dirs_exist_ok=True)
    before = make_plan(data, methods=["tcc"])
    (data / "labels.csv").write_text("video,event,frame\nclip_0,top,3\n")
    after = make_plan(data, methods=["tcc"])
    assert before.videos != after.videos
    method = before.methods[0]
    other = make_plan(poses, methods=["tcc"], protocol="paper")
    assert other.training_settings(method) == before.training_settings(method)
    assert other.row_settings(method) != before.row_settings(method)


def test_a_video_on_both_sides_is_refused_before_any_learning(poses: Path, tmp_path: Path) -> None:
    data = shutil.copytree(poses, tmp_path / "data")
    shutil.copy(data / "clip_0.npz", data / "copy.npz")
    rows = [f"clip_{number},{'val' if number < 2 else 'train'}" for number in range(8)]
    (data / "splits.csv").write_text("\n".join(["video,split", *rows, "copy,train"]))
    with pytest.raises(DataError, match=r"'clip_0' \(val\) is the same file as the training video 'copy'"):
        make_plan(data, methods=["tcc"])


def test_a_person_on_both_sides_is_refused_unless_it_is_allowed(poses: Path, tmp_path: Path) -> None:
    poses = shutil.copytree(poses, tmp_path / "data")
    names = [path.stem for path in sorted(poses.glob("*.npz"))]
    split = [f"{name},{'val' if i < 2 else 'train'}" for i, name in enumerate(names)]
    (poses / "splits.csv").write_text("\n".join(["video,split", *split]))
    (poses / "people.csv").write_text(f"video,person\n{names[0]},Ann\n{names[-1]},Ann\n")
    message = rf"'{names[0]}' \(val\) shows Ann, as does the training video '{names[-1]}'"
    with pytest.raises(DataError, match=message):
        make_plan(poses, methods=["tcc"])
    assert make_plan(poses, methods=["tcc"], allow_overlap=True).dataset.persons[names[0]] == "Ann"
