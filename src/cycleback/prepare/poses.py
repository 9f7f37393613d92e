"""Poses of Penn Action as features: hidden joints filled in, centred and scaled.

Letters: N frames; J = 13 joints: head, then left and right shoulder, elbow, wrist, hip, knee, ankle.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TWINS = np.array([0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11])  # the same joint of the other side
SHOULDERS, HIPS = [1, 2], [7, 8]
TORSO_PER_BOX = 0.26  # median over Penn Action of torso length / largest side of the box


def pose_features(
    xy: Array, visible: NDArray[np.bool_], boxes: Array, *, center: str = "hips", scale: str = "box"
) -> NDArray[np.float32]:
    """Features (N, 26) of one video: x and y of each joint in turn, in bodies from the centre.

    A hidden joint moves on a straight line between the frames that show it; one that no frame shows takes the
    place of its twin, else the centre.

    Args:
        xy: (N, J, 2) pixels.
        visible: (N, J); at least one joint of one frame.
        boxes: (N, 4) left, top, right, bottom of the person; where they are empty or NaN they are filled in.
        center: "hips", the middle of the hips of each frame (the box where hips are never seen), or "box".
        scale: "box", the largest side of the box in the video, or "torso", the median distance from shoulders
            to hips. One number a video, so that a squat stays small.
    """
    joints = fill_hidden(xy, visible)  # (N, J, 2)
    boxes = fill_boxes(boxes, xy, visible)  # (N, 4)
    centers = (boxes[:, :2] + boxes[:, 2:]) / 2  # (N, 2)
    hips = joints[:, HIPS].mean(axis=1)  # (N, 2)
    if center == "hips" and np.isfinite(hips).all():
        centers = hips
    size = float((boxes[:, 2:] - boxes[:, :2]).max())
    if scale == "torso":
        size = torso_length(joints, default=size * TORSO_PER_BOX)
    features = (joints - centers[:, None]) / size
    return np.nan_to_num(features, nan=0.0).reshape(len(xy), -1).astype(np.float32)


def fill_hidden(xy: Array, visible: NDArray[np.bool_]) -> Array:
    """The joints (N, J, 2), hidden ones interpolated in time; NaN where both twins are never seen."""
    frames = np.arange(len(xy))
    joints = np.full(xy.shape, np.nan)
    for joint in np.flatnonzero(visible.any(axis=0)):
        seen = visible[:, joint]
        for axis in (0, 1):
            joints[:, joint, axis] = np.interp(frames, frames[seen], xy[seen, joint, axis])
    return np.where(np.isnan(joints), joints[:, TWINS], joints)


def fill_boxes(boxes: Array, xy: Array, visible: NDArray[np.bool_]) -> Array:
    """The boxes (N, 4), bad ones interpolated in time; the extent of visible joints where none is good."""
    with np.errstate(invalid="ignore"):
        good = np.isfinite(boxes).all(axis=1) & (boxes[:, 2:] - boxes[:, :2] > 1).all(axis=1)  # (N,)
    if not good.any():
        points = xy[visible]  # (visible joints of all frames, 2)
        low, high = points.min(axis=0), points.max(axis=0)
        return np.tile(np.concatenate([low, np.maximum(high, low + 1)]), (len(boxes), 1))
    frames = np.arange(len(boxes))
    columns = [np.interp(frames, frames[good], boxes[good, side]) for side in range(4)]
    return np.stack(columns, axis=1)


def torso_length(joints: Array, *, default: float) -> float:
    """Median distance from mid-shoulders to mid-hips; `default` where that is not known."""
    length = np.linalg.norm(joints[:, SHOULDERS].mean(axis=1) - joints[:, HIPS].mean(axis=1), axis=-1)  # (N,)
    middle = float(np.median(length))
    return middle if middle > default / 4 else default  # also False for NaN


def mirror_poses(
    xy: Array, visible: NDArray[np.bool_], boxes: Array
) -> tuple[Array, NDArray[np.bool_], Array]:
    """The same arrays as seen in a mirror: x is turned round, left and right joints change places."""
    turned = xy[:, TWINS] * (-1, 1)
    return turned, visible[:, TWINS], boxes[:, [2, 1, 0, 3]] * (-1, 1, -1, 1)
