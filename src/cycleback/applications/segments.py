"""A time map as few stretches of constant speed, as editing programs want it.

Shapes: T output frames.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

TOLERANCE_FRAMES = 1.0  # output frames by which a stretch may miss the map


@dataclass(frozen=True)
class Segment:
    """A stretch of one video at one speed.

    Attributes:
        video: number of the video.
        start: first output frame.
        end: output frame after the last.
        source_start_s: second of the video at the first output frame.
        source_end_s: second of the video where the stretch ends.
    """

    video: int
    start: int
    end: int
    source_start_s: float
    source_end_s: float

    def speed(self, fps: float) -> float:
        """Seconds of the video a second of output."""
        return (self.source_end_s - self.source_start_s) * fps / (self.end - self.start)


def fit_segments(
    source: NDArray[np.float64],
    *,
    video: int,
    fps: float,
    first: int = 0,
    tolerance_frames: float = TOLERANCE_FRAMES,
) -> list[Segment]:
    """Stretches of the time map `source` (T,), in seconds, that follow one another without a jump.

    Args:
        first: number of the first output frame.
        tolerance_frames: how far a stretch may be from the map, in output frames.
    """
    knots = _knots(source, tolerance=tolerance_frames / fps)
    segments = []
    for start, end in pairwise(knots):
        is_last = end == len(source) - 1
        pace = (source[end] - source[start]) / (end - start)  # seconds a frame
        stop = end + 1 if is_last else end  # the last frame is shown, too
        source_end = float(source[start] + pace * (stop - start))
        segments.append(Segment(video, first + start, first + stop, float(source[start]), source_end))
    return segments or [Segment(video, first, first + 1, float(source[0]), float(source[0]) + 1 / fps)]


def _knots(values: NDArray[np.float64], *, tolerance: float) -> list[int]:
    """Points such that lines between them miss no value (T,) by more than `tolerance` (Douglas-Peucker)."""
    knots = {0, len(values) - 1}
    stretches = [(0, len(values) - 1)]
    while stretches:
        start, end = stretches.pop()
        inside = np.arange(start, end + 1)
        line = np.interp(inside, [start, end], [values[start], values[end]])
        misses = np.abs(values[start : end + 1] - line)
        worst = start + int(misses.argmax())
        if misses.max() > tolerance:
            knots.add(worst)
            stretches += [(start, worst), (worst, end)]
    return sorted(knots)
