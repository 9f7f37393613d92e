"""Confidence intervals of scores, by resampling the held-out videos.

Frames of one video are alike, and so are all pairs with one video in common: the videos are the independent
samples. So videos are drawn with replacement, and a score is computed again from those drawn. A video that is
drawn twice counts twice, and so do its pairs with other videos. A video is never paired with itself.

Shapes: V videos, R resamples, n values, L different values.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Numbers = NDArray[Any]  # floats, integers or booleans
RESAMPLES = 1000
LEVEL = 0.95
MIN_VIDEOS = 3  # two videos make one pair, and resampling them says nothing


def draw_counts(
    videos: int, *, resamples: int = RESAMPLES, seed: int | Sequence[int] = 0
) -> NDArray[np.float64]:
    """Draw resamples: how often (R, V) each video is drawn; none of fewer than three videos."""
    if videos < MIN_VIDEOS:
        return np.empty((0, videos))
    drawn = np.random.default_rng(seed).integers(videos, size=(resamples, videos))
    counts = np.zeros((resamples, videos))
    np.add.at(counts, (np.arange(resamples)[:, None], drawn), 1)
    return counts


def resample_means(sums: Numbers, totals: Numbers, counts: Floats) -> NDArray[np.float64]:
    """Return the ratio (R,) of `sums` to `totals`, both per video (V,) or per pair (V, V) with diagonal 0."""
    top, bottom = _weigh(sums.astype(np.float64), counts), _weigh(totals.astype(np.float64), counts)
    means = np.full(len(counts), np.nan)
    np.divide(top, bottom, out=means, where=bottom > 0)
    return means


def resample_medians(
    values: Numbers, counts: Floats, first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the median (R,) of `values` (n,), each of videos `first` and `second` (n,), or of one video."""
    levels, place = np.unique(values, return_inverse=True)
    weights = np.zeros((len(counts), len(levels)))  # (R, L)
    order = np.argsort(place, kind="stable")
    ends = np.cumsum(np.bincount(place, minlength=len(levels)))
    for level, members in enumerate(np.split(order, ends[:-1])):
        table = np.zeros((counts.shape[1],) * 2)
        np.add.at(table, (first[members], second[members]), 1)
        is_single = (first[members] == second[members]).all()
        weights[:, level] = _weigh(np.diag(table) if is_single else table, counts)
    if not len(levels):
        return np.full(len(counts), np.nan)
    reached = np.cumsum(weights, axis=1)
    total = reached[:, -1:]
    low = (reached <= (total - 1) // 2).sum(axis=1)  # the two middle values of an even number, or the one
    high = (reached <= total // 2).sum(axis=1)
    last = len(levels) - 1
    middle = (levels[np.minimum(low, last)] + levels[np.minimum(high, last)]) / 2
    return np.where(total[:, 0] > 0, middle, np.nan)


def middle_interval(samples: Floats) -> tuple[float, float] | None:
    """Return the middle 95 % of `samples` (R,) without NaN; None where all are NaN."""
    known = samples[~np.isnan(samples)]
    if not len(known):
        return None
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _weigh(values: Floats, counts: Floats) -> NDArray[np.float64]:
    """Sum `values` (V,) or (V, V) per resample (R,), each as often as its video or its two are drawn."""
    if values.ndim == 1:
        return counts @ values
    weighted: NDArray[np.float64] = np.einsum("rv,rv->r", counts @ values, counts)
    return weighted
