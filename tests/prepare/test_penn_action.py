import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from cycleback.data import check_dataset, phases_from_events, read_dataset
from cycleback.errors import ConfigError, DataError
from cycleback.prepare import prepare
from cycleback.prepare.penn_action import check_actions, find_label_files, read_annotation, read_frame_labels

SQUAT = [0, 0, 1, 1, 2, 3]


@pytest.fixture
def penn(write_penn: Callable[..., Path]) -> Path:
    write_penn("0001", "squat", frames=6, train=1)
    write_penn("0002", "squat", frames=9, train=-1)
    write_penn("0003", "bowl", frames=4, train=1)
    return write_penn("0004", "jump_rope", frames=4, train=1)


@pytest.fixture
def labels(penn_labels: Callable[..., Path]) -> Path:
    penn_labels("train", "squat", "0001", SQUAT)
    penn_labels("train", "squat", "0002", SQUAT)
    return penn_labels("train", "bowl", "0003", [0, 2, 1, 2])


def test_actions_splits_and_frames_are_read_back(penn: Path, tmp_path: Path) -> None:
    report = prepare("penn-action", penn, tmp_path / "out")
    dataset = read_dataset(tmp_path / "out")
    assert [(record.name, record.action, record.split, record.kind) for record in dataset] == [
        ("bowl/0003", "bowl", "train", "frames"),
        ("squat/0001", "squat", "train", "frames"),
        ("squat/0002", "squat", "val", "frames"),
    ]
    assert report.videos == {"bowl": {"train": 1}, "squat": {"train": 1, "val": 1}}
    assert [row.num_frames for row in check_dataset(dataset).rows] == [4, 6, 9]


def test_frame_labels_become_events(penn: Path, labels: Path, tmp_path: Path) -> None:
    report = prepare("penn-action", penn.parent, tmp_path / "out", options={"labels": labels})
    squat = read_dataset(tmp_path / "out")["squat/0001"]
    assert list(squat.events) == ["hips at knees (going down)", "hips at floor", "hips at knee (going up)"]
    assert phases_from_events(list(squat.events.values()), 6).tolist() == SQUAT
    assert report.labelled == 2


def test_what_is_odd_about_labels_is_told(penn: Path, labels: Path, tmp_path: Path) -> None:
    text = "\n".join(prepare("penn-action", penn, tmp_path / "out", options={"labels": labels}).warnings)
    assert "squat/0002: 6 labels, 9 frames" in text
    assert "squat/0002: val, its label file is in train" in text
    assert "bowl/0003: labels decrease from 2 to 1 at frame 2" in text


def test_what_the_paper_has_more_is_listed(penn: Path, tmp_path: Path) -> None:
    missing = prepare("penn-action", penn, tmp_path / "out").missing
    assert "squat train: 1 of the paper's 114 videos" in missing
    assert "tennis_serve val: 0 of the paper's 69 videos" in missing and len(missing) == 26


def test_actions_can_be_chosen(penn: Path, tmp_path: Path) -> None:
    report = prepare("penn-action", penn, tmp_path / "out", options={"actions": ("jump_rope",)})
    assert report.videos == {"jump_rope": {"train": 1}} and report.missing == ()


@pytest.mark.parametrize("link", [True, False])
def test_images_are_linked_or_copied(penn: Path, tmp_path: Path, link: bool) -> None:
    prepare("penn-action", penn, tmp_path / "out", options={"link": link})
    written = tmp_path / "out" / "squat" / "0001" / "000001.jpg"
    original = penn / "frames" / "0001" / "000001.jpg"
    assert written.read_bytes() == original.read_bytes()
    assert os.path.samefile(written, original) is link


def test_videos_without_or_with_other_frames_are_told(
    penn: Path, write_penn: Callable[..., Path], tmp_path: Path
) -> None:
    write_penn("0005", "bowl", frames=1, train=1)
    write_penn("0006", "bowl", frames=5, train=1, annotated=7)
    text = "\n".join(prepare("penn-action", penn, tmp_path / "out").warnings)
    assert "left out, because they have no frames: 1 (bowl/0005: 1 in" in text
    assert "bowl/0006: 5 images, 7 annotated" in text


@pytest.mark.parametrize("folder", ["frames", "labels"])
def test_a_missing_folder_is_named(penn: Path, tmp_path: Path, folder: str) -> None:
    (penn / folder).rename(tmp_path / "elsewhere")
    with pytest.raises(
        DataError, match=rf"no folder '{folder}' in .*Penn_Action. Expected frames/0001/000001.jpg"
    ):
        prepare("penn-action", penn, tmp_path / "out")


def test_no_annotations_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "in" / "frames").mkdir(parents=True)
    (tmp_path / "in" / "labels").mkdir()
    with pytest.raises(DataError, match=r"no annotations in .*labels. Expected files such as 0001\.mat"):
        prepare("penn-action", tmp_path / "in", tmp_path / "out")


def test_annotation_is_read(write_penn: Callable[..., Path]) -> None:
    root = write_penn("0007", "squat", frames=3, train=-1, annotated=5)
    found = read_annotation(root / "labels" / "0007.mat")
    assert (found.video_id, found.action, found.num_frames, found.split) == ("0007", "squat", 5, "val")


def test_another_mat_file_is_named_with_what_it_holds(tmp_path: Path) -> None:
    savemat(tmp_path / "0001.mat", {"golfDB": 1, "action": "squat"})
    with pytest.raises(
        DataError, match=r"0001\.mat: not an annotation.*no 'nframes' in it, only golfDB, action"
    ):
        read_annotation(tmp_path / "0001.mat")


def test_a_number_that_is_a_table_is_refused(tmp_path: Path) -> None:
    savemat(tmp_path / "0001.mat", {"action": "squat", "nframes": np.ones(3), "train": 1})
    with pytest.raises(DataError, match=r"cannot read .*0001\.mat"):
        read_annotation(tmp_path / "0001.mat")


def hdf5_header() -> bytes:
    return b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(600)


@pytest.mark.parametrize("content", [b"", b"not a mat file at all" * 30, hdf5_header()])
def test_files_that_are_not_matlab_5_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "0001.mat").write_bytes(content)
    with pytest.raises(DataError, match=r"cannot read .*0001\.mat as a MATLAB 5 file"):
        read_annotation(tmp_path / "0001.mat")


def test_label_files_are_found_by_the_four_digits(penn_labels: Callable[..., Path]) -> None:
    penn_labels("train", "squat", "0007", [0, 1])
    folder = penn_labels("val", "bowl", "0009_bowl", [0, 2])
    files = find_label_files(folder)
    assert {video: path.parts[-3] for video, path in files.items()} == {"0007": "train", "0009": "val"}
    assert read_frame_labels(files["0009"]).tolist() == [0, 2]


def test_a_folder_without_label_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no folder of frame labels at .*gone"):
        find_label_files(tmp_path / "gone")
    with pytest.raises(DataError, match=r"no frame labels in .*train/squat/0001\.npy"):
        find_label_files(tmp_path)


def test_pickles_and_tables_are_not_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object))
    np.save(tmp_path / "b.npy", np.zeros((3, 2)))
    with pytest.raises(DataError, match=r"cannot read the labels .*a\.npy"):
        read_frame_labels(tmp_path / "a.npy")
    with pytest.raises(DataError, match=r"b\.npy: labels of shape \(3, 2\)"):
        read_frame_labels(tmp_path / "b.npy")


def test_unknown_action_is_refused_with_a_guess() -> None:
    with pytest.raises(ConfigError, match=r"no action 'squats'\. Did you mean 'squat'"):
        check_actions(("bowl", "squats"))
