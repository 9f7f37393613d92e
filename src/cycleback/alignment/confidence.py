"""Confidence of matches: the share of matches with such distances that are right.

First a score from the distances alone,

    score = focus x (margin x agreement)^(1/4), all in [0, 1]

    focus       share of the weights w_j = exp(-(d(i, j) - min_j d(i, j)) / u) that lies within 5 % of the
                length of b, or 3 frames, of the match. u is the median distance to a nearest frame: the size
                of differences that mean nothing. Low where frames far apart in b are nearly as near.
    margin      1 - d(i, match) / median_j d(i, j): how much nearer the match is than a typical frame of b.
                0 when it is no nearer, or when all frames of b are alike.
    agreement   exp(-|back(match) - i| / (0.1 T)): whether the way back to a, by the nearest neighbour of the
                match (paper 3.1), lands at i. 1 when it does, 0.37 when it misses by a tenth of the video.

Then a `ConfidenceCurve`, fitted to matches known to be right or wrong, turns the score into the share of
matches that are right: within 5 % of the length of b, or 3 frames. Matches that never run backwards, as
warping finds them, are right more often and have their own curve. Equal videos have confidence 1, collapsed
embeddings 0.

The built-in curves were fitted to rendered pouring videos. On other videos, trust the ranking more than the
value; `cycleback evaluate` measures the gap as `calibration_error`. With a few labels, `ConfidenceCurve.fit`
makes your own curve.

Shapes: T frames of video a, S frames of video b, D embedding size; R rows at a time; M labelled matches.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from cycleback.alignment.bounds import Band
from cycleback.alignment.distances import Floats, Indices, matched_squared, pairwise_squared, spread_frames

REACH = 0.1  # share of the video; a phase of an action is seldom shorter, so a larger miss is another moment
TOLERANCE, TOLERANCE_FRAMES = 0.05, 3  # a match is right within a share of the video or so many frames
SAMPLED_FRAMES = 2048  # per video, where all frames would be too many


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


# Fitted by the command in benchmarks/confidence.py to rendered easy and hard videos, embedded by the
# pretrained encoder and by that of `cycleback demo`. Calibration error on other videos: 0.07 and 0.03.
WARPED = ConfidenceCurve(
    (0.0, 0.002, 0.013, 0.025, 0.044, 0.066, 0.097, 0.15, 0.306, 0.58, 0.777, 0.893, 0.963, 1.0),
    (0.0, 0.245, 0.347, 0.347, 0.418, 0.44, 0.537, 0.628, 0.628, 0.652, 0.727, 0.789, 0.832, 1.0),
)
NEAREST = ConfidenceCurve(
    (0.0, 0.016, 0.029, 0.049, 0.068, 0.089, 0.125, 0.21, 0.429, 0.639, 0.798, 0.901, 0.966, 1.0),
    (0.0, 0.139, 0.139, 0.171, 0.252, 0.335, 0.462, 0.482, 0.482, 0.627, 0.696, 0.775, 0.826, 1.0),
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
    frames, columns = map(np.arange, distances.shape)
    unit = float(np.median(distances.min(axis=1)))
    focus, landing = np.empty(len(frames)), np.empty(len(frames), np.int64)
    for rows, allowed in _split_rows(within, distances.shape):
        part, found = distances[rows, allowed], indices[rows]
        focus[rows] = match_focus(
            part, found, columns=columns[allowed], reach=tolerance(len(columns)), unit=unit
        )
        landing[rows] = rows.start + part.argmin(axis=0)[found - allowed.start]
    matched = distances[frames, indices]  # (T,)
    is_nearest = matched <= distances[landing, indices]  # of equally near frames, the start itself
    agreement = cycle_agreement(np.where(is_nearest, 0, np.abs(landing - frames)))
    return focus * (match_margin(matched, np.median(distances, axis=1)) * agreement) ** 0.25


def sample_confidence(
    a: Floats, b: Floats, indices: Indices, *, chunk_frames: int = 1024, within: Band | None = None
) -> Floats:
    """Return the confidence (T,) of matches of `a` (T, D) in `b` (S, D) from at most 2,048 frames of each.

    `within` limits the frames of b that each frame may match.
    """
    starts, columns = spread_frames(len(a), SAMPLED_FRAMES), spread_frames(len(b), SAMPLED_FRAMES)
    few_a, few_b = a[starts], b[columns]
    unit, reach = float(np.median(pairwise_squared(few_a, few_b).min(axis=1))), tolerance(len(b))
    matched = matched_squared(a, b, indices)
    typical, errors, focus = np.empty(len(a)), np.zeros(len(a)), np.ones(len(a))
    for rows, allowed in _split_rows(within, (len(a), len(b))):
        home = slice(*np.searchsorted(starts, (rows.start, rows.stop)))
        seen = slice(*np.searchsorted(columns, (allowed.start, allowed.stop)))
        for i in range(rows.start, rows.stop, chunk_frames):
            part = slice(i, min(i + chunk_frames, rows.stop))
            distances = pairwise_squared(a[part], few_b)
            typical[part] = np.median(distances, axis=1)
            if seen.start < seen.stop:
                near = distances[:, seen]
                focus[part] = match_focus(near, indices[part], columns=columns[seen], reach=reach, unit=unit)
            if home.start < home.stop:
                back = pairwise_squared(b[indices[part]], few_a[home])
                landing = starts[home][back.argmin(axis=1)]
                misses = np.abs(landing - np.arange(part.start, part.stop))
                errors[part] = misses * (back.min(axis=1) < matched[part])
    score = focus * (match_margin(matched, typical) * cycle_agreement(errors)) ** 0.25
    return _built_in(indices).apply(score)


def _split_rows(within: Band | None, shape: tuple[int, ...]) -> list[tuple[slice, slice]]:
    """Return the runs of frames of a that may match the same frames of b, and these frames of b."""
    num_rows, num_columns = shape
    if within is None:
        return [(slice(0, num_rows), slice(0, num_columns))]
    bounds = np.stack(within, axis=1)
    changes = np.flatnonzero((np.diff(bounds, axis=0) != 0).any(axis=1)) + 1
    edges = [0, *changes.tolist(), num_rows]
    return [(slice(first, last), slice(*bounds[first])) for first, last in pairwise(edges)]


def match_focus(
    distances: Floats, indices: Indices, *, columns: Indices, reach: float, unit: float
) -> Floats:
    """Return the focus (R,) of matches: the share of all weight within `reach` frames of the match.

    Args:
        distances: (R, C), squared distances to frames `columns` of b.
        indices: (R,), the match of each frame.
        columns: (C,), increasing.
        reach: In frames of b.
        unit: The u above.
    """
    excess = distances - distances.min(axis=1, keepdims=True)
    with np.errstate(over="ignore"):  # a unit of 0, as for equal videos, counts the nearest alone
        weights = np.exp(-(excess / max(unit, np.finfo(np.float64).tiny)))
    upto = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(weights, axis=1)], axis=1)
    rows = np.arange(len(weights))
    first = np.searchsorted(columns, indices - reach, side="left")
    last = np.searchsorted(columns, indices + reach, side="right")
    focus: Floats = np.clip((upto[rows, last] - upto[rows, first]) / upto[:, -1], 0.0, 1.0)
    return focus


def match_margin(matched: Floats, typical: Floats) -> Floats:
    """Return the margin (T,) from the distances (T,) to the matches and the median distances (T,)."""
    nearer = np.maximum(typical - matched, 0)
    return np.divide(nearer, typical, out=np.zeros_like(nearer), where=typical > 0)


def cycle_agreement(errors: Floats | Indices) -> Floats:
    """Return the agreement (T,) from the frames (T,) by which the way back misses the start."""
    agreement: Floats = np.exp(-errors / (REACH * len(errors)))
    return agreement


def tolerance(num_frames: int) -> float:
    """Return by how many frames a match in a video of `num_frames` may be off and still be right."""
    return max(TOLERANCE_FRAMES, TOLERANCE * num_frames)


def _built_in(indices: Indices) -> ConfidenceCurve:
    return WARPED if (np.diff(indices) >= 0).all() else NEAREST
