"""Approximate a pace by segments of constant speed, which is what editing programs know.

Shapes: T output frames, V videos.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.pace import Pace

TOLERANCE_FRAMES = 1.0  # output frames by which a segment may miss the time map


@dataclass(frozen=True)
class Segment:
    """A part of one video at constant speed."""

    video: int  # number of the video
    start: int  # first output frame
    end: int  # output frame after the last
    source_start_s: float  # second of the video at the first output frame
    source_end_s: float  # second of the video where the segment ends

    def speed(self, fps: float) -> float:
        """Return the seconds of video per second of output."""
        return (self.source_end_s - self.source_start_s) * fps / (self.end - self.start)


Tracks = Sequence[Sequence[Segment]]


def fit_tracks(pace: Pace, turns: NDArray[np.int64] | None = None) -> list[list[Segment]]:
    """Fit the segments of each video, one track each; videos shown in `turns` (T,) share one track."""
    if turns is None:
        return [
            fit_segments(source, video=number, fps=pace.fps) for number, source in enumerate(pace.sources)
        ]
    cuts = [0, *(np.flatnonzero(np.diff(turns)) + 1).tolist(), len(turns)]
    track: list[Segment] = []
    for start, end in pairwise(cuts):
        number = int(turns[start])
        track += fit_segments(pace.sources[number, start:end], video=number, fps=pace.fps, first=start)
    return [track]


def fit_segments(
    source: NDArray[np.float64],
    *,
    video: int,
    fps: float,
    first: int = 0,
    tolerance_frames: float = TOLERANCE_FRAMES,
) -> list[Segment]:
    """Approximate the time map `source` (T,), in seconds, by consecutive segments without jumps.

    Args:
        first: number of the first output frame.
        tolerance_frames: how far a segment may be from the map, in output frames.
    """
    knots = _find_knots(source, tolerance=tolerance_frames / fps)
    segments = []
    for start, end in pairwise(knots):
        is_last = end == len(source) - 1
        pace = (source[end] - source[start]) / (end - start)  # seconds per frame
        stop = end + 1 if is_last else end  # the last frame is shown, too
        source_end = float(source[start] + pace * (stop - start))
        segments.append(Segment(video, first + start, first + stop, float(source[start]), source_end))
    return segments or [Segment(video, first, first + 1, float(source[0]), float(source[0]) + 1 / fps)]


def _find_knots(values: NDArray[np.float64], *, tolerance: float) -> list[int]:
    """Choose points whose connecting lines miss no value (T,) by more than `tolerance` (Douglas-Peucker)."""
    knots = {0, len(values) - 1}
    spans = [(0, len(values) - 1)]
    while spans:
        start, end = spans.pop()
        line = np.interp(np.arange(start, end + 1), [start, end], [values[start], values[end]])
        misses = np.abs(values[start : end + 1] - line)
        worst = start + int(misses.argmax())
        if misses.max() > tolerance:
            knots.add(worst)
            spans += [(start, worst), (worst, end)]
    return sorted(knots)
