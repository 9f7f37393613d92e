"""Frame retrieval: the share of the K nearest frames of all other videos that are in the phase of the query.

Papers print this as AP@K; it is precision at K, with the query's own video left out. Every frame is a query
and the mean is over queries. Of frames at equal distance the first wins, in the order of the videos.

Distances are matrix products in single precision, one block of rows at a time. The smallest distances of 128
groups of frames bound the nearest ones, so few frames need sorting. Rows where rounding could change the
result are computed again in double precision.

Shapes: M frames of all videos, n queries of a block, C frames that may be among the nearest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import squared_distances
from cycleback.evaluation.neighbors import Floats, margin, scale_points
from cycleback.evaluation.phases import LabelledFrames, pool_frames

PRECISION_AT = (5, 10, 15)
BLOCK_CELLS = 1 << 22  # distances computed at once: 16 MB
GROUPS = 128


@dataclass(frozen=True)
class RetrievalPrecision:
    """Precision by number K of frames retrieved, mean over `queries` frames; too large K are left out."""

    at: Mapping[int, float]
    queries: int


def retrieval_precision(
    videos: Sequence[LabelledFrames], *, at: Sequence[int] = PRECISION_AT
) -> RetrievalPrecision:
    """Return the share of the K nearest frames of other videos that are in the phase of the query.

    A video is (embeddings (N, D), phases (N,)); `at` are the numbers K.
    """
    if not at or min(at) < 1:
        raise ValueError(f"expected K >= 1, got {tuple(at)}")
    lengths = [len(block) for block, _ in videos]
    ranks = [k for k in at if len(videos) > 1 and k <= sum(lengths) - max(lengths)]
    if not ranks:
        return RetrievalPrecision({}, 0)
    features, phases = pool_frames(videos)
    is_same = phases[_retrieve(features, lengths, ranks)] == phases[:, None]  # (M, K)
    return RetrievalPrecision({k: float(is_same[:, :k].mean()) for k in ranks}, len(phases))


def _retrieve(
    features: NDArray[np.float64], lengths: Sequence[int], ranks: Sequence[int]
) -> NDArray[np.int64]:
    """Return the nearest frames of other videos (M, K) of each frame, see `nearest_columns`."""
    points, starts = scale_points(features), np.cumsum([0, *lengths])
    across, norms = -2 * points.coarse.T, points.norms.astype(np.float32)  # (D, M), (M,)
    nearest = np.empty((len(features), max(ranks)), dtype=np.int64)
    is_doubtful = np.zeros(len(features), dtype=bool)
    for rows in _blocks(len(features), len(features)):
        scores = points.coarse[rows] @ across  # (n, M), squared distance less the query's own norm
        scores += norms
        _exclude_own(scores, np.arange(rows.start, rows.stop), starts)
        doubt = margin(points[rows], points, np.float32)
        nearest[rows], is_doubtful[rows] = nearest_columns(scores, ranks, within=doubt)
    again = np.flatnonzero(is_doubtful)
    for part in _blocks(len(again), len(features)):
        precise = squared_distances(features[again[part]], features)
        _exclude_own(precise, again[part], starts)
        nearest[again[part]] = nearest_columns(precise, ranks)[0]
    return nearest


def _blocks(rows: int, width: int) -> Iterator[slice]:
    """Split the rows of a matrix into blocks of at most BLOCK_CELLS cells."""
    step = max(1, BLOCK_CELLS // width)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def _exclude_own(scores: Floats, queries: NDArray[np.int64], starts: NDArray[np.int64]) -> None:
    """Set the scores of a query's own video (columns of `scores` (n, M)) to infinity."""
    videos = np.searchsorted(starts, queries, side="right") - 1
    for video in np.unique(videos):
        scores[videos == video, starts[video] : starts[video + 1]] = np.inf


def nearest_columns(
    scores: Floats, ranks: Sequence[int], *, within: Floats | float = 0.0
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the columns (n, K) of the smallest `scores` (n, M) of each row, in order, the first of equals.

    K is the largest of `ranks`. Also return for which rows (n,) the smallest k are uncertain, for any k of
    `ranks`, given scores that may be off by `within` (n, 1).
    """
    largest = max(ranks)
    rows, columns = np.divmod(np.flatnonzero(scores <= _bound(scores, largest + 1) + within), scores.shape[1])
    counts = np.bincount(rows, minlength=len(scores))
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = (len(scores), max(int(counts.max()), largest + 1))
    values, names = np.full(shape, np.inf, dtype=scores.dtype), np.zeros(shape, dtype=np.int64)  # (n, C)
    values[rows, place], names[rows, place] = scores[rows, columns], columns
    order = np.argsort(values, axis=1, kind="stable")[:, : largest + 1]
    smallest = np.take_along_axis(values, order, axis=1)  # (n, K + 1)
    last = np.array(ranks) - 1
    is_doubtful: NDArray[np.bool_] = np.any(smallest[:, last + 1] <= smallest[:, last] + within, axis=1)
    return np.take_along_axis(names, order[:, :largest], axis=1), is_doubtful


def _bound(scores: Floats, count: int) -> Floats:
    """Return a bound (n, 1) that at least `count` scores of each row (n, M) do not exceed, and few others."""
    width = scores.shape[1]
    if count > min(GROUPS, width):
        return np.partition(scores, min(count, width) - 1, axis=1)[:, min(count, width) - 1, None]
    whole = width // GROUPS * GROUPS or width
    groups = scores[:, :whole].reshape(len(scores), -1, min(GROUPS, width)).min(axis=1)  # (n, groups)
    bound: Floats = np.partition(groups, count - 1, axis=1)[:, count - 1, None]
    return bound
