"""Nearest frames of many frames in many videos: the one heavy step of the alignment metrics.

Distances are a product of matrices in single precision. Rows whose two nearest frames are too close for that
are looked at again in double precision, where what still cannot be told apart is a tie and the first frame
wins: a collapsed video sends all frames to one frame, and not to the noise of the arithmetic.

Shapes: M queries (or frames of all videos), S frames of the other video, D embedding size, V videos.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
BLOCK_CELLS = 1 << 17  # distances held at once: they stay in the cache


@dataclass(frozen=True)
class Points:
    """Rows (n, D) in single and in double precision, with their squared norms (n,)."""

    precise: NDArray[np.float64]
    coarse: NDArray[np.float32]
    norms: NDArray[np.float64]

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> "Points":
        return Points(self.precise[rows], self.coarse[rows], self.norms[rows])


@dataclass(frozen=True)
class NearestTable:
    """The nearest frame in each video of every frame of all videos, which lie end to end.

    Attributes:
        frames: (V, M) index within the video of the row.
        starts: (V + 1,) where each video begins among the M frames, and where the last one ends.
    """

    frames: NDArray[np.int64]
    starts: NDArray[np.int64]


def nearest_table(embeddings: Sequence[Floats]) -> NearestTable:
    """Nearest frames among all videos, one (N, D) each."""
    starts = np.cumsum([0, *map(len, embeddings)])
    return NearestTable(nearest_frames(np.concatenate(embeddings), embeddings), starts)


def nearest_frames(queries: Floats, references: Sequence[Floats]) -> NDArray[np.int64]:
    """Index (V, M) of the frame of each reference (S, D) that lies nearest to each query (M, D)."""
    points, *others = _centred([queries, *references])
    nearest = np.empty((len(references), len(queries)), dtype=np.int64)
    for row, other in zip(nearest, others, strict=True):
        step = max(1, BLOCK_CELLS // len(other.norms))
        for start in range(0, len(queries), step):
            row[start : start + step] = _nearest(points[start : start + step], other)
    return nearest


def _centred(blocks: Sequence[Floats]) -> list[Points]:
    """The rows about the mean of the references, within [-1, 1]: distances keep order, errors shrink."""
    shapes = [block.shape for block in blocks]
    if any(len(shape) != 2 or 0 in shape or shape[1] != shapes[0][1] for shape in shapes):
        raise ValueError(f"embeddings must be (N >= 1, D) with one D for all, got shapes {shapes}")
    if not all(np.isfinite(block).all() for block in blocks):
        raise ValueError("embeddings must be finite, got NaN or infinity")
    sums = [block.sum(axis=0, dtype=np.float64) for block in blocks[1:]]
    moved = [block - sum(sums) / sum(map(len, blocks[1:])) for block in blocks]
    scale = max(float(np.abs(block).max()) for block in moved) or 1.0
    return [_points(block / scale) for block in moved]


def scaled_points(rows: Floats) -> Points:
    """Rows (M, D) about their mean, within [-1, 1]."""
    return _centred([rows, rows])[0]


def _points(rows: NDArray[np.float64]) -> Points:
    return Points(rows, rows.astype(np.float32), np.einsum("nd,nd->n", rows, rows))


def _nearest(queries: Points, reference: Points) -> NDArray[np.int64]:
    """Nearest row of `reference` for each query (M,)."""
    scores = queries.coarse @ (-2 * reference.coarse.T)  # (M, S), squared distance less the query's own norm
    scores += reference.norms.astype(np.float32)
    nearest: NDArray[np.int64] = scores.argmin(axis=1)
    lowest = np.take_along_axis(scores, nearest[:, None], axis=1)  # (M, 1)
    close = scores <= lowest + margin(queries, reference, np.float32)
    if np.count_nonzero(close) > len(close):
        doubtful = np.flatnonzero(close.sum(axis=1) > 1)
        nearest[doubtful] = _nearest_or_first(queries[doubtful], reference)
    return nearest


def _nearest_or_first(queries: Points, reference: Points) -> NDArray[np.int64]:
    """The same in double precision, and the first of those rows that are equally near."""
    scores = reference.norms - 2 * (queries.precise @ reference.precise.T)  # (M, S)
    close = scores <= scores.min(axis=1, keepdims=True) + margin(queries, reference, np.float64)
    first: NDArray[np.int64] = close.argmax(axis=1)
    return first


def margin(queries: Points, reference: Points, dtype: type[np.floating[Any]]) -> Floats:
    """By how much (M, 1) two squared distances of that precision must differ to be more than rounding."""
    epsilon = 4 * queries.precise.shape[1] ** 0.5 * float(np.finfo(dtype).eps)
    apart: Floats = (epsilon * (queries.norms + reference.norms.max())).astype(dtype)
    return apart[:, None]
