"""A clock that tells, for every second of one video, the second of another that shows the same moment.

Shapes: K points of the clock, L steps of a warping path, T and S frames of the two videos.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.applications.pace import Seconds, smoothed

SMOOTHING_S = 0.1  # catches of pitches land no better with more or with less
LEAST_PACE = 1e-3  # a clock that stands still would have no way back


@dataclass(frozen=True, eq=False)
class TimeMap:
    """`source_s` (K,) for `target_s` (K,), both rising; at full pace before the first and after the last.

    Example:
        >>> clock = TimeMap(target_s=np.array([0.0, 2.0]), source_s=np.array([1.0, 2.0]))
        >>> clock.source([1.0, 3.0]).tolist(), clock.target(1.5).tolist()
        ([1.5, 3.0], 1.0)
    """

    target_s: Seconds
    source_s: Seconds

    def __post_init__(self) -> None:
        shapes = np.shape(self.target_s), np.shape(self.source_s)
        if shapes[0] != shapes[1] or len(shapes[0]) != 1 or 0 in shapes[0]:
            raise ValueError(f"target_s and source_s must be (K >= 1,), got {shapes[0]} and {shapes[1]}")
        for name in ("target_s", "source_s"):
            if not (np.diff(getattr(self, name)) > 0).all():
                raise ValueError(f"{name} must rise from each point to the next")

    def source(self, target_s: ArrayLike) -> Seconds:
        """Seconds of the source, as many as `target_s`."""
        return _follow(np.asarray(target_s, dtype=np.float64), self.target_s, self.source_s)

    def target(self, source_s: ArrayLike) -> Seconds:
        """The way back: seconds of the target."""
        return _follow(np.asarray(source_s, dtype=np.float64), self.source_s, self.target_s)


def time_map(path: NDArray[np.int64], *, target_times: Seconds, source_times: Seconds) -> TimeMap:
    """The smooth clock of a warping path.

    Args:
        path: (L, 2), frames of target and source that go together, never running backwards.
        target_times: (T,) seconds of the target's frames.
        source_times: (S,) seconds of the source's frames.
    """
    counts = np.bincount(path[:, 0])
    matches = np.bincount(path[:, 0], weights=source_times[path[:, 1]]) / counts  # (T,)
    source = smoothed(target_times, matches, smoothing_s=SMOOTHING_S)
    return TimeMap(target_times, source + LEAST_PACE * (target_times - target_times[0]))


def _follow(seconds: Seconds, given: Seconds, wanted: Seconds) -> Seconds:
    """Linear between the points, at full pace outside of them."""
    inside = np.clip(seconds, given[0], given[-1])
    return np.asarray(np.interp(inside, given, wanted) + seconds - inside)
