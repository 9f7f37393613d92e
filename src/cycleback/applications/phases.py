"""Find the phases of an action without labels: where all clips of it change at the same moment.

All clips are put on one clock (`alignment.align_many`, along the directions in which moments differ), and
their frames at one tick are averaged. A phase ends where this mean trajectory changes most: at the peaks of

    change(k) = |mean of the window before k - mean of the window from k on|^2 x n m / (n + m)

for n and m points in the two windows, which is how much better two constants fit than one. Points are spread
evenly along the way of the trajectory, not in time: fast parts have short phases, and stillness is one phase.
The window is the shortest part of the way that is worth a name, so it decides how many phases there are;
asked for a number, it is shortened until there are enough. A change counts only if it is found again when
any clip is left out.

Shapes: V clips of N frames, D embedding size, K ticks of their clock, P points of the way, M changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment import ALIGNED_AXES, MultiAlignment, align_many, discriminant_axes
from cycleback.alignment.distances import spread_frames
from cycleback.errors import DataError

POINTS = 200  # along the way of the mean trajectory
MAX_STEP = 3.0  # medians of all steps
WINDOW = 14  # points; a phase that covers less of the way is not told apart
MIN_WINDOW = 3  # points
MIN_CHANGE = 0.35  # of the largest change
MIN_STABILITY = 0.9  # share of the clips that may be left out
MAX_LEFT_OUT = 30  # clips, spread over all
SHRINK = 0.85  # of the window, while it finds too few phases

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Phases:
    """The changes that all clips share, on one clock."""

    clock: MultiAlignment
    changes: Indices  # (M,), the first tick of each phase but the first
    stability: Floats  # (M,) in [0, 1], how often a change is found again when one clip is left out

    @property
    def starts(self) -> Indices:
        """(V, M), the first frame of each phase but the first, in each clip."""
        return self.clock.indices[:, self.changes]


def discover_phases(clips: Sequence[ArrayLike], *, count: int | None = None) -> Phases:
    """Find the phases of clips (N, D) of one action.

    Args:
        clips: embeddings of at least two clips.
        count: how many phases; by default as many as the clips show.
    """
    videos = [np.asarray(clip, dtype=np.float64) for clip in clips]
    if count is not None and count < 2:
        raise DataError(f"an action has at least 2 phases, got {count}")
    clock = put_on_clock(videos)
    warped = [video[frames] for video, frames in zip(videos, clock.indices, strict=True)]  # V times (K, D)
    total = np.sum(warped, axis=0)
    changes = find_changes(total, count=count)
    again = _leave_out(changes, total, warped, count=count)
    if count is None:
        changes, again = changes[again >= MIN_STABILITY], again[again >= MIN_STABILITY]
    elif len(changes) < count - 1:
        raise DataError(
            f"only {len(changes) + 1} phases can be told apart in these clips, not {count}: ask for fewer"
        )
    return Phases(clock, changes, again)


def put_on_clock(videos: Sequence[Floats]) -> MultiAlignment:
    """Put videos (N, D) on one clock along the directions in which moments differ and videos agree."""
    axes = discriminant_axes(videos, max_axes=ALIGNED_AXES)
    return align_many([video @ axes for video in videos])


def find_changes(trajectory: Floats, *, count: int | None = None) -> Indices:
    """Return the ticks (M,) at which a trajectory (K, D) changes most, in order.

    Args:
        count: how many phases, for M + 1; the window is shortened until there are so many, if it can be.
    """
    places = spread_along(trajectory, POINTS)  # (P,)
    points = _interpolate(trajectory, places)
    window, least = WINDOW, MIN_CHANGE if count is None else 0.0
    found = _pick_peaks(measure_change(points, window), gap=window, least=least)
    while count is not None and len(found) < count - 1 and window > MIN_WINDOW:
        window = max(MIN_WINDOW, int(SHRINK * window))
        found = _pick_peaks(measure_change(points, window), gap=window, least=0.0)
    kept = found if count is None else found[: count - 1]
    ticks = np.unique(places[kept].round().astype(np.int64))
    return ticks[(ticks > 0) & (ticks < len(trajectory))]


def spread_along(trajectory: Floats, count: int) -> Floats:
    """Return ticks (P,), with fractions, that are evenly spread along the way of a trajectory (K, D).

    A sudden step counts as MAX_STEP usual ones, so that it does not take up the whole way.
    """
    steps = np.linalg.norm(np.diff(trajectory, axis=0), axis=1)
    if steps.any():
        steps = np.minimum(steps, MAX_STEP * np.median(steps[steps > 0]))
    way = np.concatenate([[0.0], np.cumsum(steps)])
    if way[-1] <= 0:
        return np.linspace(0, len(trajectory) - 1, count)
    return np.interp(np.linspace(0, way[-1], count), way, np.arange(len(way)))


def _interpolate(trajectory: Floats, places: Floats) -> Floats:
    """Return the trajectory (K, D) at ticks (P,) with fractions: (P, D)."""
    before = np.minimum(places.astype(np.int64), max(len(trajectory) - 2, 0))
    after = np.minimum(before + 1, len(trajectory) - 1)
    share = (places - before)[:, None]
    between: Floats = (1 - share) * trajectory[before] + share * trajectory[after]
    return between


def measure_change(trajectory: Floats, window: int) -> Floats:
    """Measure how much a trajectory (P, D) changes at each point (P,), by the formula above."""
    num_points = len(trajectory)
    sums = np.concatenate([np.zeros((1, trajectory.shape[1])), np.cumsum(trajectory, axis=0)])
    ticks = np.arange(1, num_points)
    first, stop = np.maximum(ticks - window, 0), np.minimum(ticks + window, num_points)
    before, after = ticks - first, stop - ticks  # (K - 1,) each
    means = (sums[ticks] - sums[first]) / before[:, None], (sums[stop] - sums[ticks]) / after[:, None]
    change = np.square(means[0] - means[1]).sum(axis=1) * before * after / (before + after)
    return np.concatenate([[0.0], change])


def _pick_peaks(strength: Floats, *, gap: int, least: float) -> Indices:
    """Return the peaks of `strength` (P,), the highest first, at least `gap` points from each other."""
    inner = np.arange(1, len(strength) - 1)
    is_peak = (strength[inner] >= strength[inner - 1]) & (strength[inner] >= strength[inner + 1])
    peaks = inner[is_peak & (strength[inner] > least * strength.max())]
    kept: list[int] = []
    for peak in peaks[np.argsort(-strength[peaks], kind="stable")].tolist():
        if all(abs(peak - other) >= gap for other in kept):
            kept.append(peak)
    return np.array(kept, dtype=np.int64)


def _leave_out(changes: Indices, total: Floats, warped: Sequence[Floats], *, count: int | None) -> Floats:
    """Return how often each change (M,) is found again when one clip is left out.

    Found again is a change within half a window, counted along the way.
    """
    again = np.zeros(len(changes))
    chosen = spread_frames(len(warped), MAX_LEFT_OUT)
    way = np.interp(np.arange(len(total)), spread_along(total, POINTS), np.arange(POINTS))  # (K,) in points
    for clip in chosen:
        found = find_changes(total - warped[clip], count=count)
        if len(found):
            again += np.abs(way[changes][:, None] - way[found]).min(axis=1) <= WINDOW / 2
    return again / len(chosen)
