"""From a curve to spans: which stretches of a video stand out, and how often a good one would.

Shapes: N frames of a video.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Span = tuple[int, int]
"""First and last frame."""

LONGEST_GAP = 5  # frames below the threshold that do not end a span
SHORTEST_SPAN = 3  # frames; a shorter one is a flicker of one match


def running_mean(curve: Floats, *, window: int) -> Floats:
    """Mean (N,) over `window` frames around each, an odd number; the ends hold their value."""
    padded = np.pad(curve, window // 2, mode="edge")
    return np.convolve(padded, np.full(window, 1 / window), mode="valid")


def spans_above(curve: Floats, threshold: float) -> list[Span]:
    """Stretches of `curve` (N,) above the threshold: short gaps are closed, then short stretches dropped."""
    frames = np.flatnonzero(curve > threshold)
    if not len(frames):
        return []
    breaks = np.flatnonzero(np.diff(frames) > LONGEST_GAP + 1)
    firsts, lasts = frames[np.r_[0, breaks + 1]], frames[np.r_[breaks, len(frames) - 1]]
    found = zip(firsts.tolist(), lasts.tolist(), strict=True)
    return [(first, last) for first, last in found if last - first + 1 >= SHORTEST_SPAN]


def flags_of(spans: Sequence[Span], num_frames: int) -> Flags:
    """Whether each frame (N,) lies in one of the spans."""
    flags = np.zeros(num_frames, dtype=bool)
    for first, last in spans:
        flags[first : last + 1] = True
    return flags


def threshold_for(curves: Sequence[Floats], false_alarms: float) -> float:
    """The lowest threshold whose spans cover at most the share `false_alarms` of the frames of `curves`."""
    values = np.unique(np.concatenate(curves))
    total = sum(map(len, curves))

    def share(threshold: float) -> float:
        return sum(int(flags_of(spans_above(c, threshold), len(c)).sum()) for c in curves) / total

    low, high = 0, len(values) - 1  # nothing lies above the highest value, so it always fits
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if share(values[middle]) <= false_alarms else (middle + 1, high)
    return float(values[low])
