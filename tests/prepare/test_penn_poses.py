from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cycleback.data import load_sequence, read_dataset
from cycleback.errors import ConfigError, DataError
from cycleback.prepare import prepare
from cycleback.prepare.penn_action import (
    HIPS,
    TORSO_PER_BOX,
    fill_boxes,
    fill_hidden,
    mirror_poses,
    pose_features,
)

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


@pytest.fixture
def pose() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Joints (6, 13, 2), all visible, and boxes round them."""
    xy = np.random.default_rng(0).uniform(50, 150, (6, 13, 2))
    return xy, np.ones((6, 13), bool), np.concatenate([xy.min(1), xy.max(1)], axis=1)


def test_features_do_not_change_when_the_person_is_moved_or_enlarged(pose: tuple[np.ndarray, ...]) -> None:
    xy, visible, boxes = pose
    for scale in ("box", "torso"):
        first = pose_features(xy, visible, boxes, scale=scale)
        second = pose_features(xy * 3 + 40, visible, boxes * 3 + 40, scale=scale)
        np.testing.assert_allclose(first, second, atol=1e-5)
    assert first.shape == (6, 26) and first.dtype == np.float32


def test_hips_are_the_centre_and_the_box_is_the_unit(pose: tuple[np.ndarray, ...]) -> None:
    xy, visible, boxes = pose
    joints = pose_features(xy, visible, boxes).reshape(6, 13, 2)
    np.testing.assert_allclose(joints[:, HIPS].mean(axis=1), 0, atol=1e-6)
    side = (boxes[:, 2:] - boxes[:, :2]).max()
    np.testing.assert_allclose(joints[:, 0] - joints[:, 9], (xy[:, 0] - xy[:, 9]) / side, atol=1e-5)


def test_hidden_joints_move_on_a_line_between_visible_frames(pose: tuple[np.ndarray, ...]) -> None:
    xy, visible, _ = pose
    visible[[1, 2], 5] = False
    visible[4:, 5] = False
    joint = fill_hidden(xy, visible)[:, 5]
    np.testing.assert_allclose(joint[1], xy[0, 5] + (xy[3, 5] - xy[0, 5]) / 3)
    np.testing.assert_allclose(joint[4:], xy[[3, 3], 5])


def test_a_joint_never_seen_takes_the_place_of_its_twin_else_the_centre(pose: tuple[np.ndarray, ...]) -> None:
    xy, visible, boxes = pose
    visible[:, [3, 9, 10]] = False
    joints = pose_features(xy, visible, boxes).reshape(6, 13, 2)
    np.testing.assert_array_equal(joints[:, 3], joints[:, 4])
    np.testing.assert_array_equal(joints[:, [9, 10]], 0)


def test_the_box_is_the_centre_where_hips_are_never_seen(pose: tuple[np.ndarray, ...]) -> None:
    xy, visible, boxes = pose
    visible[:, HIPS] = False
    np.testing.assert_array_equal(
        pose_features(xy, visible, boxes), pose_features(xy, visible, boxes, center="box")
    )


def test_torso_that_is_not_known_is_guessed_from_the_box(pose: tuple[np.ndarray, ...]) -> None:
    xy, visible, boxes = pose
    visible[:, HIPS] = False
    torso = pose_features(xy, visible, boxes, scale="torso")
    np.testing.assert_allclose(torso * TORSO_PER_BOX, pose_features(xy, visible, boxes), atol=1e-6)


def test_bad_boxes_are_filled_in(pose: tuple[np.ndarray, ...]) -> None:
    xy, visible, boxes = pose
    damaged = boxes.copy()
    damaged[2], damaged[5] = np.nan, 0
    filled = fill_boxes(damaged, xy, visible)
    np.testing.assert_allclose(filled[2], (boxes[1] + boxes[3]) / 2)
    np.testing.assert_allclose(filled[5], boxes[4])
    extent = fill_boxes(np.zeros_like(boxes), xy, visible)[0]
    np.testing.assert_allclose(extent, [*xy.min((0, 1)), *xy.max((0, 1))])


def test_mirror_twice_changes_nothing_and_once_swaps_sides(pose: tuple[np.ndarray, ...]) -> None:
    xy, visible, boxes = pose
    once = mirror_poses(xy, visible, boxes)
    for twice, original in zip(mirror_poses(*once), pose, strict=True):
        np.testing.assert_array_equal(twice, original)
    features, turned = (pose_features(*arrays).reshape(6, 13, 2) for arrays in (pose, once))
    np.testing.assert_allclose(turned[:, 1], features[:, 2] * (-1, 1), atol=1e-6)
