import numpy as np
import pytest

from cycleback.prepare.poses import HIPS, TORSO_PER_BOX, fill_boxes, fill_hidden, mirror_poses, pose_features


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
