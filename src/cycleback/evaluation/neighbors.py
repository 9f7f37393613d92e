"""Nearest frames of many frames in many videos: the one expensive step of the alignment metrics.

Distances are a matrix product in single precision. Rows whose two nearest frames are too close for that are
compared again in double precision. Frames that are still too close are a tie, and the first one wins: a
collapsed video sends all frames to one frame, and not to frames chosen by rounding.

Shapes: M queries (or frames of all videos), S frames of the other video, D embedding size, V videos.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
BLOCK_CELLS = 1 << 17  # distances computed at once: they stay in the cache


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
    """The nearest frame in each video of every frame of all videos, which lie end to end."""

    frames: NDArray[np.int64]  # (V, M) index within the video of the row
    starts: NDArray[np.int64]  # (V + 1,) first of the M frames of each video, and M


def nearest_table(embeddings: Sequence[Floats]) -> NearestTable:
    """Find the nearest frames among all videos, (N, D) per video."""
    starts = np.cumsum([0, *map(len, embeddings)])
    return NearestTable(nearest_frames(np.concatenate(embeddings), embeddings), starts)


def nearest_frames(queries: Floats, references: Sequence[Floats]) -> NDArray[np.int64]:
    """Return the index (V, M) of the frame of each reference (S, D) that is nearest to each query (M, D)."""
    points, *others = _center([queries, *references])
    nearest = np.empty((len(references), len(queries)), dtype=np.int64)
    for row, other in zip(nearest, others, strict=True):
        step = max(1, BLOCK_CELLS // len(other.norms))
        for start in range(0, len(queries), step):
            row[start : start + step] = _nearest(points[start : start + step], other)
    return nearest


def _center(blocks: Sequence[Floats]) -> list[Points]:
    """Center the rows on the mean of the references and scale to [-1, 1]: order stays, rounding shrinks."""
    shapes = [block.shape for block in blocks]
    if any(len(shape) != 2 or 0 in shape or shape[1] != shapes[0][1] for shape in shapes):
        raise ValueError(f"embeddings must be (N >= 1, D) with one D for all, got shapes {shapes}")
    if not all(np.isfinite(block).all() for block in blocks):
        raise ValueError("embeddings must be finite, got NaN or infinity")
    sums = [block.sum(axis=0, dtype=np.float64) for block in blocks[1:]]
    centred = [block - sum(sums) / sum(map(len, blocks[1:])) for block in blocks]
    scale = max(float(np.abs(block).max()) for block in centred) or 1.0
    scaled = [block / scale for block in centred]
    return [Points(rows, rows.astype(np.float32), np.einsum("nd,nd->n", rows, rows)) for rows in scaled]


def scale_points(rows: Floats) -> Points:
    """Center rows (M, D) on their mean and scale them to [-1, 1]."""
    return _center([rows, rows])[0]


def _nearest(queries: Points, reference: Points) -> NDArray[np.int64]:
    """Return the nearest row of `reference` for each query (M,)."""
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
    """Do the same in double precision; the first of equally near rows wins."""
    scores = reference.norms - 2 * (queries.precise @ reference.precise.T)  # (M, S)
    close = scores <= scores.min(axis=1, keepdims=True) + margin(queries, reference, np.float64)
    first: NDArray[np.int64] = close.argmax(axis=1)
    return first


def margin(queries: Points, reference: Points, dtype: type[np.floating[Any]]) -> Floats:
    """Return by how much (M, 1) two squared distances of `dtype` must differ to be more than rounding."""
    epsilon = 4 * queries.precise.shape[1] ** 0.5 * float(np.finfo(dtype).eps)
    apart: Floats = (epsilon * (queries.norms + reference.norms.max())).astype(dtype)
    return apart[:, None]
