"""Describe the parts of each frame one by one: what is there, what has changed, and how it moves.

An embedding says in one vector what a frame shows. A spill beside a glass hardly changes it, but it fills one
cell of a grid. Cells are compared at aligned moments, to find where takes differ.

    appearance   each cell of a feature map, less what it showed at the start: what is new, (49, 32) at 112 px
    change       the length of that difference: how much is new, (49, 1)
    motion       the motion in each cell of the frame, in four directions, (64, 4)
    pose         place and velocity of each joint, where a person is seen, (12, 4)

The scene itself is the same at the start, so takes of different scenes stay comparable.

Shapes: N frames of a take, F feature channels, h w feature map, G cells, V size of the vector of a cell.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.models.streams import mirror, pose_vectors, smooth_over_time

VECTOR_SIZES: Mapping[str, int] = {"appearance": 32, "change": 1, "motion": 4, "pose": 4}
"""Size V of the vector of a cell by stream; distances of feature maps survive a random projection."""
START_FRAMES = 3  # whose mean is the scene before the action
PROJECTION_SEED = 0
MOTION_GAIN = 20.0  # log(1 + gain * motion): fast motion must not hide slow motion
SIGMA = 1.0  # frames, of the Gaussian over time

Floats = NDArray[np.float32]


def describe_cells(
    raw: Mapping[str, NDArray[Any]], times: NDArray[np.float64], *, is_mirrored: bool = False
) -> dict[str, Floats]:
    """Describe each cell of the frames of a take by stream, (N, G, V) each.

    Args:
        raw: "maps" (N, F, h, w), "motion" (N, 4, 8, 8) and, perhaps, "pose" (N, 17, 3).
        times: (N,) seconds of the frames.
        is_mirrored: turn the take round.
    """
    turned = mirror(raw) if is_mirrored else dict(raw)
    maps = np.asarray(raw["maps"], dtype=np.float32)
    new = subtract_start(maps[..., ::-1] if is_mirrored else maps)  # (N, F, h, w)
    vectors = new.reshape(*new.shape[:2], -1).swapaxes(1, 2)  # (N, G, F)
    cells = {
        "appearance": vectors @ projection(vectors.shape[2]),
        "change": measure_change(vectors),
        "motion": describe_motion(turned["motion"]),
    }
    if "pose" in turned:
        joints = pose_vectors(turned["pose"], times).reshape(len(times), 2, -1, 2)
        cells["pose"] = joints.swapaxes(1, 2).reshape(len(times), -1, VECTOR_SIZES["pose"])
    return cells


def subtract_start(maps: Floats) -> Floats:
    """Subtract from maps (N, F, h, w) what the first frames show."""
    difference: Floats = maps - maps[:START_FRAMES].mean(axis=0)
    return difference


def measure_change(vectors: Floats) -> Floats:
    """Return the lengths of vectors (N, G, F) as shares of their median: (N, G, 1)."""
    lengths = np.sqrt((vectors**2).sum(axis=2, keepdims=True))
    usual = float(np.median(lengths[lengths > 0])) if lengths.any() else 1.0
    return smooth_over_time(lengths / usual, SIGMA)


def describe_motion(motion: NDArray[np.floating[Any]]) -> Floats:
    """Return the motion (N, 4, 8, 8) of each cell (N, 64, 4), less what moves everywhere, compressed."""
    cells = np.asarray(motion, dtype=np.float32)
    cells = np.maximum(cells - np.median(cells, axis=(2, 3), keepdims=True), 0)
    smooth = smooth_over_time(np.log1p(MOTION_GAIN * cells), 2 * SIGMA)
    vectors: Floats = smooth.reshape(*smooth.shape[:2], -1).swapaxes(1, 2)
    return vectors


@cache
def projection(channels: int) -> Floats:
    """Return a random matrix (F, V) with orthogonal columns, or rows for few channels; always the same."""
    size = VECTOR_SIZES["appearance"]
    rng = np.random.default_rng(PROJECTION_SEED)
    longer, shorter = max(channels, size), min(channels, size)
    columns, _ = np.linalg.qr(rng.normal(size=(longer, shorter)))
    matrix = columns if channels >= size else columns.T
    scaled: Floats = (matrix * (channels / shorter) ** 0.5).astype(np.float32)
    return scaled
