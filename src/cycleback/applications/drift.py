"""Measure how the repetitions of one video change in order: slower, smaller, less like the others.

Each whole repetition is read at equal phases and compared with the mean repetition.

    duration     seconds of a repetition
    amplitude    how large its movement is: 1 for the mean repetition, 0.5 for half of the way
    speed        amplitude per second, 1 for the mean of the video
    difference   squared distance from the mean of the other repetitions: 1 is usual, 4 is twice as far

A trend is told only if it is clear: Kendall's rank correlation of value and order with p below 0.05.

Shapes: K whole repetitions, Q phases, N frames of the video, D embedding size.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.applications.repetitions import Repetitions

Floats = NDArray[np.float64]
PHASES = 24  # at which repetitions are compared
MIN_REPETITIONS = 3
MIN_TREND = 5  # repetitions; fewer cannot show a clear trend
CLEAR = 0.05  # chance of such an order without a trend
DRIFT_COLUMNS = ("duration_s", "amplitude", "speed", "difference")


@dataclass(frozen=True, eq=False)
class Drift:
    """Measures of the whole repetitions of a video, in order; NaN for one that is cut off at an end."""

    durations: Floats  # (K,) seconds
    amplitudes: Floats  # (K,), 1 for the mean repetition
    differences: Floats  # (K,), 1 is usual

    @property
    def speeds(self) -> Floats:
        """Amplitude per second (K,), 1 for the mean of the video."""
        rates = self.amplitudes / self.durations
        speeds: Floats = rates / np.nanmean(rates)
        return speeds

    @property
    def best(self) -> int:
        """Number of the repetition that is most like the others, from 1."""
        return int(np.nanargmin(self.differences)) + 1

    @property
    def worst(self) -> int:
        """Number of the repetition that is least like the others, from 1."""
        return int(np.nanargmax(self.differences)) + 1

    @property
    def trends(self) -> dict[str, float | None]:
        """Change from the first to the last repetition in percent, None where there is no clear one."""
        values = {"duration": self.durations, "amplitude": self.amplitudes, "speed": self.speeds}
        return {name: find_trend(each) for name, each in values.items()}

    def columns(self) -> Mapping[str, Floats]:
        """Return the measures by the names of DRIFT_COLUMNS: (K,) each."""
        return dict(
            zip(
                DRIFT_COLUMNS,
                (self.durations, self.amplitudes, self.speeds, self.differences),
                strict=True,
            )
        )

    def to_json(self) -> dict[str, Any]:
        """Return all measures, the trends in percent, and the best and the worst repetition."""
        lists = {
            name: [round(value, 4) if np.isfinite(value) else None for value in values.tolist()]
            for name, values in self.columns().items()
        }
        trends = {f"{name}_trend_percent": value for name, value in self.trends.items()}
        return {**lists, **trends, "best": self.best, "worst": self.worst}


def measure_drift(embeddings: ArrayLike, found: Repetitions) -> Drift | None:
    """Measure the repetitions that were found in a video (N, D); None if fewer than three are complete."""
    parts = [part for part in found.whole if part.share == 1]
    if len(parts) < MIN_REPETITIONS:
        return None
    rows = np.asarray(embeddings, dtype=np.float64)
    read = np.stack([_read_phases(rows[part.start : part.stop]) for part in parts])
    moved = read - read.mean(axis=1, keepdims=True)
    mean = moved.mean(axis=0)
    amplitudes = np.einsum("kqd,qd->k", moved, mean) / max(float(np.square(mean).sum()), 1e-12)
    others = (len(read) * read.mean(axis=0) - read) / (len(read) - 1)
    distances = np.square(read - others).mean(axis=(1, 2))
    differences = distances / max(float(np.median(distances)), 1e-12)
    durations = np.array([part.end_s - part.start_s for part in parts])
    is_complete = np.array([part.share == 1 for part in found.whole])
    measures = [np.full(found.count, np.nan) for _ in range(3)]
    for measure, values in zip(measures, (durations, amplitudes, differences), strict=True):
        measure[is_complete] = values
    return Drift(*measures)


def _read_phases(rows: Floats) -> Floats:
    """Interpolate the frames (n, D) of one repetition at equal phases: (Q, D)."""
    places = (np.arange(PHASES) + 0.5) / PHASES * len(rows) - 0.5
    inside = places.clip(0, len(rows) - 1)
    before = np.floor(inside).astype(np.int64)
    share = (inside - before)[:, None]
    read: Floats = rows[before] * (1 - share) + rows[np.minimum(before + 1, len(rows) - 1)] * share
    return read


def find_trend(values: Floats) -> float | None:
    """Return the change of values (K,) from the first to the last in percent, or None if it is not clear.

    The line is that of Theil and Sen, which single odd values do not turn. NaN is left out.
    """
    from scipy.stats import kendalltau

    places = np.flatnonzero(np.isfinite(values))
    known = values[places]
    if len(known) < MIN_TREND or np.ptp(known) == 0 or not kendalltau(places, known).pvalue < CLEAR:
        return None
    slopes = [(known[j] - known[i]) / (places[j] - places[i]) for i, j in combinations(range(len(known)), 2)]
    slope = float(np.median(slopes))
    first = float(np.median(known - slope * places)) + slope * places[0]
    return round(100 * slope * float(places[-1] - places[0]) / first, 1) if first > 0 else None


def describe_drift(drift: Drift) -> str:
    """Say in words how repetitions change, and which is the most and the least like the others."""
    changes = []
    for name, (more, less) in {
        "duration": ("slower", "faster"),
        "amplitude": ("larger", "smaller"),
    }.items():
        change = drift.trends[name]
        if change is not None:
            changes.append(f"{more if change > 0 else less} towards the end ({name} {change:+.0f} %)")
    trend = " and ".join(changes) or "no clear trend"
    return f"{trend}; most like the others: {drift.best}, least: {drift.worst}"
