"""Frame retrieval: of the K nearest frames of all other videos, how many are in the phase of the query?

The field prints this as AP@K; it is precision at K, with the query's own video left out. Every frame is a
query and the mean is over queries. Of frames at equal distance the first wins, in the order of the videos.

Distances are products of matrices in single precision, a block of rows at a time. Few frames can be among
the nearest: the smallest of each of 128 groups of frames bounds them. Rows in which rounding could change who
is in and who is out are done again in double precision.

Shapes: M frames of all videos, n queries of a block, C frames that may be among the nearest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import squared_distances
from cycleback.evaluation.neighbors import Floats, margin, scaled_points
from cycleback.evaluation.phases import LabelledFrames, pooled_frames

PRECISION_AT = (5, 10, 15)
BLOCK_CELLS = 1 << 22  # distances held at once: 16 MB
GROUPS = 128


@dataclass(frozen=True)
class RetrievalPrecision:
    """Precision by number K of frames retrieved, mean over `queries` frames; no K beyond what there is."""

    at: Mapping[int, float]
    queries: int


def retrieval_precision(
    videos: Sequence[LabelledFrames], *, at: Sequence[int] = PRECISION_AT, stride: int = 1
) -> RetrievalPrecision:
    """Share of the K nearest frames of other videos that are in the phase of the query.

    Args:
        videos: (embeddings (N, D), phases (N,)) of each video.
        at: the numbers K.
        stride: keep every so many frames of each video, as queries and as answers.
    """
    if stride < 1 or not at or min(at) < 1:
        raise ValueError(f"expected stride >= 1 and K >= 1, got {stride} and {tuple(at)}")
    videos = [(block[::stride], phases[::stride]) for block, phases in videos]
    lengths = [len(block) for block, _ in videos]
    ranks = [k for k in at if len(videos) > 1 and k <= sum(lengths) - max(lengths)]
    if not ranks:
        return RetrievalPrecision({}, 0)
    features, phases = pooled_frames(videos)
    is_same = phases[_retrieved(features, lengths, ranks)] == phases[:, None]  # (M, K)
    return RetrievalPrecision({k: float(is_same[:, :k].mean()) for k in ranks}, len(phases))


def _retrieved(
    features: NDArray[np.float64], lengths: Sequence[int], ranks: Sequence[int]
) -> NDArray[np.int64]:
    """The nearest frames of other videos (M, K) of each frame, see `nearest_columns`."""
    points, starts = scaled_points(features), np.cumsum([0, *lengths])
    across, norms = -2 * points.coarse.T, points.norms.astype(np.float32)  # (D, M), (M,)
    found = np.empty((len(features), max(ranks)), dtype=np.int64)
    is_doubtful = np.zeros(len(features), dtype=bool)
    for rows in _blocks(len(features), len(features)):
        scores = points.coarse[rows] @ across  # (n, M), squared distance less the query's own norm
        scores += norms
        _leave_out_own(scores, np.arange(rows.start, rows.stop), starts)
        doubt = margin(points[rows], points, np.float32)
        found[rows], is_doubtful[rows] = nearest_columns(scores, ranks, within=doubt)
    again = np.flatnonzero(is_doubtful)
    for part in _blocks(len(again), len(features)):
        precise = squared_distances(features[again[part]], features)
        _leave_out_own(precise, again[part], starts)
        found[again[part]] = nearest_columns(precise, ranks)[0]
    return found


def _blocks(rows: int, width: int) -> Iterator[slice]:
    """The rows of a matrix, as many at a time as may be held."""
    step = max(1, BLOCK_CELLS // width)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def _leave_out_own(scores: Floats, queries: NDArray[np.int64], starts: NDArray[np.int64]) -> None:
    """Put the frames of a query's own video (columns of `scores` (n, M)) out of reach."""
    videos = np.searchsorted(starts, queries, side="right") - 1
    for video in np.unique(videos):
        scores[videos == video, starts[video] : starts[video + 1]] = np.inf


def nearest_columns(
    scores: Floats, ranks: Sequence[int], *, within: Floats | float = 0.0
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Columns (n, K) of the smallest `scores` (n, M) of each row, the smallest first, the first of equals.

    K is the largest of `ranks`. Also says for which rows (n,) it is in doubt which are the smallest k, for
    any k of `ranks`, given scores that may be off by `within` (n, 1).
    """
    most = max(ranks)
    rows, columns = np.divmod(np.flatnonzero(scores <= _bound(scores, most + 1) + within), scores.shape[1])
    counts = np.bincount(rows, minlength=len(scores))
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = (len(scores), max(int(counts.max()), most + 1))
    values, names = np.full(shape, np.inf, dtype=scores.dtype), np.zeros(shape, dtype=np.int64)  # (n, C)
    values[rows, place], names[rows, place] = scores[rows, columns], columns
    order = np.argsort(values, axis=1, kind="stable")[:, : most + 1]
    smallest = np.take_along_axis(values, order, axis=1)  # (n, K + 1)
    last = np.array(ranks) - 1
    is_doubtful: NDArray[np.bool_] = np.any(smallest[:, last + 1] <= smallest[:, last] + within, axis=1)
    return np.take_along_axis(names, order[:, :most], axis=1), is_doubtful


def _bound(scores: Floats, count: int) -> Floats:
    """A bound (n, 1) that at least `count` scores of each row (n, M) do not exceed, and few others."""
    width = scores.shape[1]
    if count > min(GROUPS, width):
        return np.partition(scores, min(count, width) - 1, axis=1)[:, min(count, width) - 1, None]
    whole = width // GROUPS * GROUPS or width
    groups = scores[:, :whole].reshape(len(scores), -1, min(GROUPS, width)).min(axis=1)  # (n, groups)
    bound: Floats = np.partition(groups, count - 1, axis=1)[:, count - 1, None]
    return bound
