"""Name what is odd about a take: slow, fast, missing, extra, a different path, or a different look.

    timing: a part takes much longer             slow, or extra if its frames are unlike those of good takes
    timing: a part takes much shorter            fast, or missing if hardly any of it is left
    frames unlike those of good takes            by the stream that is furthest from usual:
        motion, pose, embedding                  different path
        appearance                               different look
        change                                   missing if less has changed than in good takes,
                                                 else a different look

Shapes: N frames of a take.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.anomaly_timing import PaceChange

Kind = Literal["slow", "fast", "missing", "extra", "different path", "different look"]
Span = tuple[int, int]
"""First and last frame."""

TIMING = "timing"
"""The stream of oddities that the alignment shows, not any single frame."""
MISSING_RATIO = 0.45  # of the usual duration; less is left of a part that is missing
EXTRA_SHARE = 0.3  # of the frames of a part that takes too long and is extra stand out

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Oddity:
    """Something odd about a part of a take."""

    kind: Kind
    stream: str  # that shows it
    first: int  # frame of the take
    last: int
    difference_s: float | None = None  # longer than in good takes; None where that is not the point

    def describe(self, times: Floats) -> str:
        """Say it in a sentence, such as "1.20-1.80 s: different look (appearance)"; `times` are (N,)."""
        start, end = float(times[self.first]), float(times[self.last])
        where = f"{start:.2f}-{end:.2f} s"
        if self.difference_s is None:
            return f"{where}: {self.kind} ({self.stream})"
        length = f"{abs(self.difference_s):.2f} s"
        if self.kind == "missing":
            return f"{where}: missing, {length} of good takes are left out ({self.stream})"
        if self.difference_s > 0:
            return f"{where}: {self.kind}, {length} longer than good takes, late from then on ({self.stream})"
        return f"{where}: {self.kind}, {length} shorter than good takes, early from then on ({self.stream})"


def name_oddities(
    spans: Sequence[Span],
    changes: Sequence[PaceChange],
    streams: Mapping[str, Floats],
    *,
    is_missing: Flags | None = None,
) -> tuple[Oddity, ...]:
    """Name what is odd in a take.

    Args:
        spans: parts that stand out.
        changes: parts that take longer or shorter than usual.
        streams: the scores (N,) by stream.
        is_missing: whether less has changed in each frame (N,) than in good takes.
    """
    length = len(next(iter(streams.values())))
    stands_out = flag_frames(spans, length)
    found = [_name_change(change, stands_out) for change in changes]
    taken = flag_frames([(each.first, each.last) for each in found if each.kind == "extra"], length)
    for first, last in spans:
        part = slice(first, last + 1)
        if taken[part].mean() < 0.5:  # else the extra part says it
            stream = max(streams, key=lambda name: float(streams[name][part].mean()))
            found.append(Oddity(_name_span(stream, part, is_missing), stream, first, last))
    return tuple(sorted(found, key=lambda each: (each.first, each.last)))


def _name_change(change: PaceChange, stands_out: Flags) -> Oddity:
    """Name a part that takes longer or shorter than usual."""
    kind: Kind
    if change.difference_s > 0:
        share = float(stands_out[change.first : change.last + 1].mean())
        kind = "extra" if share >= EXTRA_SHARE else "slow"
    else:
        kind = "missing" if change.ratio < MISSING_RATIO else "fast"
    return Oddity(kind, TIMING, change.first, change.last, change.difference_s)


def _name_span(stream: str, part: slice, is_missing: Flags | None) -> Kind:
    """Name a part whose frames are unlike those of good takes by the stream that shows it best."""
    if stream == "appearance":
        return "different look"
    if stream == "change":
        is_less = is_missing is not None and is_missing[part].mean() > 0.5
        return "missing" if is_less else "different look"
    return "different path"


def flag_frames(spans: Sequence[Span], num_frames: int) -> Flags:
    """Tell whether each frame (N,) lies in one of the spans."""
    flags = np.zeros(num_frames, dtype=bool)
    for first, last in spans:
        flags[first : last + 1] = True
    return flags
