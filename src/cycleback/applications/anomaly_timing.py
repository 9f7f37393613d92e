"""Find the parts of a take that are slow, fast or missing, by how long good takes spend in them.

The alignment with good takes tells where in the action each frame of a take is. The action is cut into parts,
and the time that a take spends in each run of parts is compared with that of the good takes, as a ratio.

Shapes: N frames of a take, K good takes, P parts, R runs of parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PARTS = 20
LEAST_S = 0.1  # added to every duration, or the mean of a part if that is more: alignment is not exact
MIN_DEVIATION = 0.1  # of the logarithm of a duration
OWN_SHARE = 0.5  # of a run of parts in its deviation; the rest is that of all runs
_FIRST, _LAST = np.triu_indices(PARTS)  # (R,), of each run of parts


@dataclass(frozen=True)
class PaceChange:
    """A part of a take that takes longer or shorter than in good takes."""

    first: int  # frame of the take
    last: int
    difference_s: float  # longer than usual; below 0 is shorter
    ratio: float  # duration over the usual duration
    score: float  # deviations from usual


@dataclass(frozen=True, eq=False)
class PaceModel:
    """How long good takes spend in each run of parts."""

    mean: Floats  # (R,), of the logarithm of the duration
    deviation: Floats  # (R,)
    usual_s: Floats  # (R,), median duration
    least_s: float  # added to every duration

    @classmethod
    def fit(cls, durations: Sequence[Floats]) -> Self:
        """Learn from the durations (R,) of good takes."""
        usual = np.median(durations, axis=0)
        least = max(LEAST_S, float(usual.max()) / PARTS)
        logs = np.log(np.array(durations) + least)  # (K, R)
        own = logs.std(axis=0, ddof=1)
        deviation = OWN_SHARE * own + (1 - OWN_SHARE) * np.sqrt((own**2).mean())
        return cls(logs.mean(axis=0), np.maximum(deviation, MIN_DEVIATION), usual, least)

    def standardize(self, durations: Floats) -> Floats:
        """Return how many deviations the durations (R,) of a take lie above those of good takes."""
        result: Floats = (np.log(durations + self.least_s) - self.mean) / self.deviation
        return result

    def peak(self, durations: Floats) -> float:
        """Return the greatest deviation of a take from good takes."""
        return float(np.abs(self.standardize(durations)).max())

    def find_changes(self, progress: Floats, seconds: Floats, *, threshold: float) -> list[PaceChange]:
        """Find the runs of parts of a take that deviate most, none of which overlap."""
        durations = sum_runs(progress, seconds)
        scores = self.standardize(durations)
        changes: list[PaceChange] = []
        taken = np.zeros(PARTS, dtype=bool)
        for run in np.argsort(-np.abs(scores)):
            if abs(scores[run]) <= threshold:
                break
            parts = slice(_FIRST[run], _LAST[run] + 1)
            if taken[parts].any():
                continue
            taken[parts] = True
            first, last = _find_frames(progress, _FIRST[run] / PARTS, (_LAST[run] + 1) / PARTS)
            spent, usual = float(durations[run]), float(self.usual_s[run])
            ratio = (spent + LEAST_S) / (usual + LEAST_S)
            changes.append(PaceChange(first, last, spent - usual, ratio, abs(float(scores[run]))))
        return changes


def sum_runs(progress: Floats, seconds: Floats) -> Floats:
    """Return the seconds (R,) that a take spends in each run of parts.

    Args:
        progress: (N,) in [0, 1], where in the action each frame is.
        seconds: (N,) of the frames.
    """
    parts = np.clip((progress * PARTS).astype(int), 0, PARTS - 1)
    each = np.bincount(parts, weights=np.gradient(seconds), minlength=PARTS)
    sums = np.cumsum(np.r_[0, each])
    result: Floats = np.maximum(sums[_LAST + 1] - sums[_FIRST], 0)
    return result


def _find_frames(progress: Floats, low: float, high: float) -> tuple[int, int]:
    """Return the first and the last frame between two values of progress, or twice the nearest frame."""
    inside = np.flatnonzero((progress >= low) & (progress < high))
    if len(inside):
        return int(inside[0]), int(inside[-1])
    nearest = int(np.abs(progress - (low + high) / 2).argmin())
    return nearest, nearest
