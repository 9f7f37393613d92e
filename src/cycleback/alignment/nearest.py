"""Nearest neighbours: for each frame of one video the most similar frame of the other (paper 3.1).

Shapes: T frames of video a, S frames of video b, D embedding size.
"""

import numpy as np
from numpy.typing import ArrayLike

from cycleback.alignment.distances import pairwise_squared
from cycleback.alignment.inputs import Floats, Indices, as_pair


def nearest_neighbors(a: ArrayLike, b: ArrayLike, *, chunk_frames: int = 1024) -> Indices:
    """Index (T,) of the row of `b` (S, D) nearest to each row of `a` (T, D); the first of equals.

    Memory grows with `chunk_frames` x S, not with T x S.
    """
    rows, others = as_pair(a, b)
    if chunk_frames < 1:
        raise ValueError(f"chunk_frames must be at least 1, got {chunk_frames}")
    return nearest_rows(rows, others, chunk_frames=chunk_frames)


def nearest_rows(a: Floats, b: Floats, *, chunk_frames: int = 256) -> Indices:
    """`nearest_neighbors` of arrays already checked."""
    starts = range(0, len(a), chunk_frames)
    return np.concatenate([pairwise_squared(a[i : i + chunk_frames], b).argmin(axis=1) for i in starts])
