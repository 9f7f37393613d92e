"""From a score to a probability: a curve that never falls, fitted to scores known to be right or wrong.

Isotonic regression by pooling adjacent violators: scores in order, neighbours whose share of right ones falls
are put together until none does. The curve goes straight between the means of the pools.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cycleback.alignment.inputs import Floats


@dataclass(frozen=True)
class Calibration:
    """A curve through (scores, shares), straight between them; from (0, 0) to (1, 1).

    Attributes:
        scores: (K,) in [0, 1], rising.
        shares: (K,) in [0, 1], never falling: how many of the matches with such a score are right.
    """

    scores: tuple[float, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.shares) or len(self.scores) < 2:
            counts = f"{len(self.scores)} scores and {len(self.shares)} shares"
            raise ValueError(f"expected as many scores as shares, two or more, got {counts}")
        for name, values in (("scores", self.scores), ("shares", self.shares)):
            if values[0] != 0 or values[-1] != 1 or (np.diff(values) < 0).any():
                raise ValueError(f"{name} must rise from 0 to 1, got {values}")

    def apply(self, scores: ArrayLike) -> Floats:
        """The share of right matches for each of `scores` (T,) in [0, 1]."""
        return np.interp(np.asarray(scores, dtype=np.float64), self.scores, self.shares)

    @classmethod
    def fit(cls, scores: ArrayLike, right: ArrayLike, *, bins: int = 20) -> Self:
        """The curve for `scores` (M,) in [0, 1] of which `right` (M,) says whether each match was.

        Args:
            scores: Scores of matches.
            right: Whether each was right.
            bins: The scores are first put into so many groups of equal size: a curve of few corners.
        """
        known, truth = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=np.float64)
        _check_samples(known, truth)
        order = np.argsort(known, kind="stable")
        order = order[(known[order] > 0) & (known[order] < 1)]  # the ends of the curve are fixed
        groups = np.array_split(order, min(bins, len(order))) if len(order) else []
        weights = np.array([len(group) for group in groups], dtype=np.float64)
        means = np.array([known[group].mean() for group in groups])
        shares = pool_adjacent_violators(np.array([truth[group].mean() for group in groups]), weights)
        return cls((0.0, *means.tolist(), 1.0), (0.0, *shares.tolist(), 1.0))

    def to_dict(self) -> dict[str, list[float]]:
        """Plain lists, ready for JSON."""
        return {"scores": list(self.scores), "shares": list(self.shares)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Sequence[Any]]) -> Self:
        """The calibration that `to_dict` saved."""
        try:
            return cls(tuple(map(float, saved["scores"])), tuple(map(float, saved["shares"])))
        except KeyError as error:
            raise ValueError(f"a calibration needs scores and shares, got {sorted(saved)}") from error


def pool_adjacent_violators(values: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """The never falling sequence (M,) nearest to `values` (M,) by squares, each counted by its weight."""
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


def _check_samples(scores: Floats, right: Floats) -> None:
    if scores.ndim != 1 or scores.shape != right.shape or not len(scores):
        raise ValueError(f"expected scores and right of one length, got {scores.shape} and {right.shape}")
    if not (scores.min() >= 0 and scores.max() <= 1):  # NaN is neither
        raise ValueError(f"scores must lie in [0, 1], got {scores.min()} to {scores.max()}")
    if not np.isin(right, (0.0, 1.0)).all():
        raise ValueError("right must hold True or False for each score")


# Fitted by benchmarks/confidence.py, with the command its docstring gives: rendered easy and hard videos,
# embedded by the pretrained encoder and by that of `cycleback demo`. Videos not fitted to: ECE 0.07 and 0.03.
WARPED = Calibration(
    (0.0, 0.002, 0.013, 0.025, 0.044, 0.066, 0.097, 0.15, 0.306, 0.58, 0.777, 0.893, 0.963, 1.0),
    (0.0, 0.245, 0.347, 0.347, 0.418, 0.44, 0.537, 0.628, 0.628, 0.652, 0.727, 0.789, 0.832, 1.0),
)
NEAREST = Calibration(
    (0.0, 0.016, 0.029, 0.049, 0.068, 0.089, 0.125, 0.21, 0.429, 0.639, 0.798, 0.901, 0.966, 1.0),
    (0.0, 0.139, 0.139, 0.171, 0.252, 0.335, 0.462, 0.482, 0.482, 0.627, 0.696, 0.775, 0.826, 1.0),
)
