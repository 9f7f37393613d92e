"""Confidence of matches: the share of matches like these that are right.

First a score: the probability of all warps that put the match within the tolerance, 5 % of the length of b or
3 frames (`cycleback.alignment.posterior`). It is low where other moments of b are nearly as near. Where a and
the matched part of b do not even run alike (`cycleback.alignment.likeness`), the score is less, down to 0.

Then a `ConfidenceCurve`, fitted to matches known to be right or wrong, turns the score into the share of
matches that are right. Matches that never run backwards, as warping finds them, are right more often where
the score is low, and have their own curve. Equal videos have confidence 1, collapsed embeddings 0.

The built-in curves were fitted to several sets of videos. `benchmarks/confidence.py` fits them, and measures
each set by curves that were fitted to the others. With a few labels of your own, `ConfidenceCurve.fit` makes
your own curve, and `cycleback evaluate` measures the gap as `calibration_error`. Without labels,
`fit_without_labels` makes one (`cycleback.alignment.self_consistency`).

Shapes: T frames of video a, S frames of video b, D embedding size; M labelled matches.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from cycleback.alignment.bounds import Band
from cycleback.alignment.distances import Floats, Indices, pairwise_squared, spread_frames
from cycleback.alignment.likeness import measure_gain, trust_gain
from cycleback.alignment.posterior import Measure, find_posterior

TOLERANCE, TOLERANCE_FRAMES = 0.05, 3  # a match is right within a share of the video or so many frames
GAIN_FRAMES = 64  # per video by which both are compared as a whole
MIN_FRAMES = 8  # fewer cannot be compared as a whole


@dataclass(frozen=True)
class ConfidenceCurve:
    """A piecewise linear curve from score to confidence, from (0, 0) to (1, 1)."""

    scores: tuple[float, ...]  # (K,) in [0, 1], increasing
    # (K,) in [0, 1], never decreasing: the share of matches with such a score that are right
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.shares) or len(self.scores) < 2:
            counts = f"{len(self.scores)} scores and {len(self.shares)} shares"
            raise ValueError(f"expected as many scores as shares, two or more, got {counts}")
        for name, values in (("scores", self.scores), ("shares", self.shares)):
            if values[0] != 0 or values[-1] != 1 or (np.diff(values) < 0).any():
                raise ValueError(f"{name} must rise from 0 to 1, got {values}")

    def apply(self, scores: ArrayLike) -> Floats:
        """Return the share of right matches for each of `scores` (T,) in [0, 1]."""
        return np.interp(np.asarray(scores, dtype=np.float64), self.scores, self.shares)

    @classmethod
    def fit(cls, scores: ArrayLike, right: ArrayLike, *, bins: int = 20) -> Self:
        """Fit a curve by isotonic regression.

        Args:
            scores: (M,) in [0, 1], from `score_matches`.
            right: (M,), whether each match was right.
            bins: Number of groups of equal size the scores are put into first, for a curve of few corners.
        """
        known, truth = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=np.float64)
        if known.ndim != 1 or known.shape != truth.shape or not len(known):
            raise ValueError(f"expected scores and right of one length, got {known.shape} and {truth.shape}")
        if not (known.min() >= 0 and known.max() <= 1):  # NaN is neither
            raise ValueError(f"scores must lie in [0, 1], got {known.min()} to {known.max()}")
        if not np.isin(truth, (0.0, 1.0)).all():
            raise ValueError("right must hold True or False for each score")
        order = np.argsort(known, kind="stable")
        order = order[(known[order] > 0) & (known[order] < 1)]  # the ends of the curve are fixed
        groups = np.array_split(order, min(bins, len(order))) if len(order) else []
        weights = np.array([len(group) for group in groups], dtype=np.float64)
        means = np.array([known[group].mean() for group in groups])
        shares = pool_adjacent_violators(np.array([truth[group].mean() for group in groups]), weights)
        return cls((0.0, *means.tolist(), 1.0), (0.0, *shares.tolist(), 1.0))


def pool_adjacent_violators(values: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Return the never decreasing sequence (M,) with the least weighted squared distance to `values` (M,).

    Isotonic regression: neighbours that decrease are replaced by their mean until none do.
    """
    values = np.asarray(values, dtype=np.float64)
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    pools: list[tuple[float, float, int]] = []  # mean, weight, length
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (mean, heavy, long), (last, light, short) = pools[-2:]
            total = heavy + light
            pools[-2:] = [((mean * heavy + last * light) / total, total, long + short)]
    return np.repeat([mean for mean, _, _ in pools], [length for _, _, length in pools])


# Fitted by the command in benchmarks/confidence.py.
WARPED = ConfidenceCurve(
    (
        0.0,
        0.290012,
        0.779689,
        0.920046,
        0.963934,
        0.985548,
        0.994376,
        0.998064,
        0.999377,
        0.999842,
        0.999969,
        0.999996,
        1.0,
    ),
    (0.0, 0.352, 0.645, 0.769, 0.849, 0.895, 0.938, 0.957, 0.963, 0.963, 0.978, 0.978, 1.0),
)
NEAREST = ConfidenceCurve(
    (
        0.0,
        0.094004,
        0.634348,
        0.867352,
        0.95293,
        0.983609,
        0.994607,
        0.99855,
        0.999653,
        0.999939,
        0.999994,
        1.0,
    ),
    (0.0, 0.331, 0.621, 0.735, 0.875, 0.891, 0.926, 0.952, 0.962, 0.981, 0.981, 1.0),
)


def estimate_confidence(
    distances: Floats,
    indices: Indices,
    *,
    curve: ConfidenceCurve | None = None,
    within: Band | None = None,
) -> Floats:
    """Return the confidence (T,) in [0, 1] of matches `indices` (T,), given squared `distances` (T, S).

    Args:
        distances: Between all frames of both videos.
        indices: The matches.
        curve: Fitted to `score_matches` of your own matches; it replaces the two built-in curves.
        within: The frames of b that each frame may match, if not all; no other frame is doubted.
    """
    return (curve or _built_in(indices)).apply(score_matches(distances, indices, within=within))


def score_matches(distances: Floats, indices: Indices, *, within: Band | None = None) -> Floats:
    """Return the score (T,) in [0, 1] of matches `indices` (T,), given squared `distances` (T, S).

    `within` limits the frames of b that each frame may match.
    """
    return _score(lambda rows, columns: distances[np.ix_(rows, columns)], distances.shape, indices, within)


def sample_confidence(a: Floats, b: Floats, indices: Indices, *, within: Band | None = None) -> Floats:
    """Return what `estimate_confidence` does for `a` (T, D) and `b` (S, D), without all their distances."""

    def measure(rows: Indices, columns: Indices) -> Floats:
        return pairwise_squared(a[rows], b[columns])

    return _built_in(indices).apply(_score(measure, (len(a), len(b)), indices, within))


def _score(measure: Measure, shape: tuple[int, ...], indices: Indices, within: Band | None) -> Floats:
    posterior = find_posterior(measure, shape, within=within)
    near = posterior.sum_near(np.arange(shape[0]), indices, tolerance(shape[1]))
    return near if len(indices) < MIN_FRAMES else near * _trust_part(measure, indices)


def _trust_part(measure: Measure, indices: Indices) -> float:
    """Return how far a and the matched part of b run alike, by warping the whole of both."""
    first, last = int(indices.min()), int(indices.max())
    frames = spread_frames(len(indices), GAIN_FRAMES)
    return trust_gain(measure_gain(measure(frames, first + spread_frames(last + 1 - first, GAIN_FRAMES))))


def tolerance(num_frames: int) -> float:
    """Return by how many frames a match in a video of `num_frames` may be off and still be right."""
    return max(TOLERANCE_FRAMES, TOLERANCE * num_frames)


def _built_in(indices: Indices) -> ConfidenceCurve:
    return WARPED if (np.diff(indices) >= 0).all() else NEAREST
