from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cycleback.data import load_sequence, read_dataset
from cycleback.errors import ConfigError, DataError
from cycleback.prepare import prepare

LENGTHS = (5, 7, 6)


@pytest.fixture
def archive(tmp_path: Path) -> dict[str, np.ndarray]:
    xy = np.random.default_rng(0).uniform(50, 150, (sum(LENGTHS), 13, 2)).astype(np.float32)
    arrays = {
        "xy": xy,
        "visibility": np.ones((len(xy), 13), np.uint8),
        "bbox": np.concatenate([xy.min(1), xy.max(1)], axis=1),
        "num_frames": np.array(LENGTHS, np.int32),
        "action": np.array(["squat", "squat", "strum_guitar"]),
        "train": np.array([1, -1, 1], np.int8),
        "view": np.array(["left", "right", "front"]),
        "video_id": np.array(["0001", "0002", "0003"]),
    }
    np.savez(tmp_path / "penn_action_poses.npz", **arrays)
    return arrays


def features(folder: Path, name: str) -> np.ndarray:
    return load_sequence(read_dataset(folder)[name]).features


def test_sequences_actions_and_splits_are_read_back(archive: object, tmp_path: Path) -> None:
    report = prepare("penn-poses", tmp_path / "penn_action_poses.npz", tmp_path / "out", options={"fps": 25})
    dataset = read_dataset(tmp_path / "out")
    assert [(record.name, record.kind, record.split) for record in dataset] == [
        ("squat/0001", "sequence", "train"),
        ("squat/0002", "sequence", "val"),
    ]
    sequence = load_sequence(dataset["squat/0002"])
    assert sequence.features.shape == (7, 26) and sequence.times[1] == 1 / 25
    assert "squat train: 1 of the paper's 114 videos" in report.missing and report.labelled == 0


def test_only_views_from_the_right_are_mirrored(archive: object, tmp_path: Path) -> None:
    prepare("penn-poses", tmp_path, tmp_path / "plain")
    prepare("penn-poses", tmp_path, tmp_path / "mirrored", options={"mirror": True})
    left, right = "squat/0001", "squat/0002"
    np.testing.assert_array_equal(features(tmp_path / "plain", left), features(tmp_path / "mirrored", left))
    plain, mirrored = (
        features(tmp_path / folder, right).reshape(7, 13, 2) for folder in ("plain", "mirrored")
    )
    np.testing.assert_allclose(mirrored[:, 1], plain[:, 2] * (-1, 1), atol=1e-6)


def test_frame_labels_become_events(
    archive: object, penn_labels: Callable[..., Path], tmp_path: Path
) -> None:
    folder = penn_labels("train", "squat", "0001", [0, 1, 1, 2, 3])
    report = prepare("penn-poses", tmp_path, tmp_path / "out", options={"labels": folder})
    assert list(read_dataset(tmp_path / "out")["squat/0001"].events.values()) == [1, 3, 4]
    assert "videos without frame labels: 1 (squat/0002)" in report.warnings


def test_a_video_without_any_visible_joint_is_left_out(
    archive: dict[str, np.ndarray], tmp_path: Path
) -> None:
    archive["visibility"][:5] = 0
    np.savez(tmp_path / "penn_action_poses.npz", **archive)
    report = prepare("penn-poses", tmp_path, tmp_path / "out")
    assert report.videos == {"squat": {"val": 1}}
    assert any("no joint of any frame is visible: 1 (squat/0001)" in line for line in report.warnings)


def test_other_archives_are_refused(archive: dict[str, np.ndarray], tmp_path: Path) -> None:
    np.savez(tmp_path / "features.npz", xy=np.ones(3))
    with pytest.raises(DataError, match=r"features\.npz: no array 'visibility', only xy"):
        prepare("penn-poses", tmp_path / "features.npz", tmp_path / "out")
    np.savez(tmp_path / "short.npz", **archive | {"xy": archive["xy"][1:]})
    with pytest.raises(DataError, match=r"short\.npz: xy is \(17, 13, 2\), expected \(18, 13, 2\)"):
        prepare("penn-poses", tmp_path / "short.npz", tmp_path / "out")


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off"])
def test_files_that_are_no_archive_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "penn_action_poses.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"cannot read .*penn_action_poses\.npz"):
        prepare("penn-poses", tmp_path, tmp_path / "out")


def test_unknown_choices_are_refused(archive: object, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="center must be 'hips' or 'box', got 'head'"):
        prepare("penn-poses", tmp_path, tmp_path / "out", options={"center": "head"})


def test_real_poses_are_read_back(shared_data: Path, tmp_path: Path) -> None:
    options = {"actions": ("clean_and_jerk",)}
    report = prepare("penn-poses", shared_data / "penn_action_poses", tmp_path / "out", options=options)
    dataset = read_dataset(tmp_path / "out")
    assert report.videos == {"clean_and_jerk": {"train": 43, "val": 45}} and dataset.actions == (
        "clean_and_jerk",
    )
    assert report.missing == () and "train 43, paper 40" in report.warnings[-1]
    values = np.concatenate([load_sequence(record).features for record in dataset])
    assert np.isfinite(values).all() and np.abs(values).max() < 1
