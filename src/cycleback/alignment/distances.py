"""Distances between the frames of two videos.

Shapes: T frames of video a, S frames of video b, D embedding size.
"""

import numpy as np
from numpy.typing import ArrayLike

from cycleback.alignment.inputs import Floats, Indices, as_pair


def squared_distances(a: ArrayLike, b: ArrayLike) -> Floats:
    """Squared L2 distances (T, S), float64, of the rows of `a` (T, D) and `b` (S, D); 0 for equal rows."""
    return pairwise_squared(*as_pair(a, b))


def pairwise_squared(a: Floats, b: Floats) -> Floats:
    """`squared_distances` of arrays already checked.

    ||a||^2 + ||b||^2 - 2ab is one matrix product, but it cancels. A shift changes no distance, so the rows
    are first moved near zero; and what rounding alone can explain becomes 0. Otherwise equal frames would lie
    at tiny random distances, and a collapsed embedding would have a random order instead of none.
    """
    origin = b[0]
    a, b = a - origin, b - origin
    norms = np.einsum("td,td->t", a, a)[:, None] + np.einsum("sd,sd->s", b, b)[None, :]  # (T, S)
    squared: Floats = norms - 2 * (a @ b.T)
    rounding = 4 * np.finfo(np.float64).eps * a.shape[1] ** 0.5
    squared[squared <= rounding * norms] = 0
    return squared


def matched_squared(a: Floats, b: Floats, indices: Indices, *, chunk_frames: int = 4096) -> Floats:
    """Squared L2 distance (T,) of each row of `a` (T, D) to its match `indices` (T,) in `b` (S, D)."""
    distances = np.empty(len(a))
    for i in range(0, len(a), chunk_frames):
        part = slice(i, i + chunk_frames)
        distances[part] = np.square(a[part] - b[indices[part]]).sum(axis=1)
    return distances
