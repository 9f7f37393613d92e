from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from cycleback.errors import ConfigError, DataError
from cycleback.prepare.penn_annotations import (
    check_actions,
    find_label_files,
    read_annotation,
    read_frame_labels,
)


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
    assert {video: file.split for video, file in files.items()} == {"0007": "train", "0009": "val"}
    assert read_frame_labels(files["0009"].path).tolist() == [0, 2]


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


def test_unknown_action_is_refused_with_the_list() -> None:
    with pytest.raises(ConfigError, match=r"no action 'squats'\. Its actions: baseball_pitch.*strum_guitar"):
        check_actions(("bowl", "squats"))
