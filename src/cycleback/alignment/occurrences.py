"""Find every place where a long recording shows an action, given one or several examples of it.

The vectors of a video are normalised over that video, so what else is shown beside the action changes them.
A recording of hours has no such scale. So it is looked at in windows a few times as long as the action, each
normalised by itself, and every part found in one is normalised anew, by itself, and compared again.

    find_parts      the best parts of one window, by the recurrence of `find_ends`
    settle_part     moves the ends of a part to where the examples fit best once it has its own scale
    score_part      how well a part shows the action: 1 if it is the example, about 0.15 for anything else
    keep_apart      of parts that overlap, the best

Shapes: N frames of a recording or of a window, n of them that are compared, K examples of T frames, D size of
a vector.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment.distances import Floats, spread_frames
from cycleback.alignment.likeness import path_distance
from cycleback.alignment.subsequence import find_ends

Vectors = NDArray[np.float32]
Describe = Callable[[NDArray[Any], Floats], Vectors]
"""Turns measurements (N, ...) and their seconds (N,) into vectors (N, D), normalised over these frames."""

ROWS = 48  # of an example that are looked for, whatever its length
MAX_FRAMES = 256  # of an example and of a part that are compared in the end
MIN_FRAMES = 8  # of an example and of a part
APART = 0.33  # examples; ends of two parts of a window are this far apart
NEAR_RANDOM = 2.0  # mean squared distance of unrelated frames: both vectors have a mean squared length of 1
MARGIN = 0.3  # of a part, seen on both sides while its ends are moved
ROUNDS = 3  # of moving them, at most
SAME = 0.9  # of all frames of two parts that both hold: they are the same part


class Action(NamedTuple):
    """Several videos of one action, and nothing but the action, at one length."""

    rows: Vectors  # (K, ROWS, D), evenly spread over each example
    whole: tuple[Vectors, ...]  # K of (T, D)
    seconds: float  # mean length, from the first frame to the end of the last


class Part(NamedTuple):
    """Frames `start` to `stop`, without the last, and how well they show the action."""

    start: int
    stop: int
    likeness: float


def gather_action(examples: Sequence[tuple[Vectors, float]]) -> Action:
    """Make an action of the vectors (T, D) of each example, and its seconds."""
    rows = [vectors[np.linspace(0, len(vectors) - 1, ROWS).round().astype(int)] for vectors, _ in examples]
    whole = tuple(vectors[spread_frames(len(vectors), MAX_FRAMES)] for vectors, _ in examples)
    return Action(np.stack(rows), whole, float(np.mean([seconds for _, seconds in examples])))


def squared_gaps(a: Vectors, b: Vectors) -> Vectors:
    """Return squared distances (..., T, N) of `a` (..., T, D) and `b` (N, D), in 32 bits."""
    gaps: Vectors = a @ b.T
    gaps *= -2
    gaps += np.square(a).sum(axis=-1, keepdims=True)
    gaps += np.square(b).sum(axis=-1)
    return np.maximum(gaps, 0, out=gaps)


def match_ends(
    action: Action, vectors: Vectors, *, frame_s: float, max_stretch: float
) -> tuple[Floats, NDArray[np.int64], int]:
    """Return the likeness (K, n) of the best parts of a window (N, D) by their ends, their starts, a step.

    Number k of n ends at one of the frames k x step to (k + 1) x step - 1.

    Args:
        frame_s: seconds between frames of the window.
        max_stretch: how many times slower or faster than the examples a part may be.
    """
    spacing = action.seconds / frame_s / ROWS  # frames of the window per row
    step = max(1, round(spacing))
    pace = spacing / step
    gaps = squared_gaps(action.rows, vectors[::step])
    ends = find_ends(gaps, pace=(pace / max_stretch, pace * max_stretch))  # type: ignore[arg-type]
    return 1 - ends.cost / NEAR_RANDOM, ends.start * step, step


def find_parts(
    action: Action, vectors: Vectors, *, frame_s: float, max_stretch: float, least: float
) -> tuple[list[Part], NDArray[np.float32]]:
    """Return the best parts of a window (N, D), and the likeness (N,) of the best part over each frame.

    Args:
        frame_s, max_stretch: as in `match_ends`.
        least: likeness that a part must have.
    """
    each, starts, step = match_ends(action, vectors, frame_s=frame_s, max_stretch=max_stretch)
    nearest = each.argmax(axis=0)[None]  # the example that fits best
    likeness, start = (np.take_along_axis(values, nearest, axis=0)[0] for values in (each, starts))
    curve = np.zeros(len(vectors), dtype=np.float32)
    for last in np.flatnonzero(likeness > 0).tolist():
        over = curve[start[last] : (last + 1) * step]
        np.maximum(over, likeness[last], out=over)
    apart, parts = max(1, round(APART * action.seconds / frame_s / step)), list[Part]()
    while likeness[last := int(likeness.argmax())] >= least:
        stop = min((last + 1) * step, len(vectors))
        parts.append(Part(int(start[last]), stop, float(likeness[last])))
        likeness[max(0, last - apart + 1) : last + apart] = -np.inf
    return parts, curve


def settle_part(
    part: Part,
    measured: NDArray[Any],
    seconds: Floats,
    *,
    action: Action,
    describe: Describe,
    max_stretch: float,
) -> Part:
    """Move the ends of a part until they stay, and compare it at its own scale.

    Args:
        part: in frames of `measured` (N, ...), shown at `seconds` (N,).
    """
    start, stop = part.start, part.stop
    for _ in range(ROUNDS):
        margin = int(MARGIN * (stop - start))
        first, last = max(0, start - margin), min(len(measured), stop + margin)
        times = seconds[first:last]
        likeness, starts, step = match_ends(
            action,
            describe(measured[first:last], times),
            frame_s=float(times[-1] - times[0]) / max(len(times) - 1, 1),
            max_stretch=max_stretch,
        )
        best = likeness.argmax(axis=1)  # (K,)
        is_found = np.isfinite(likeness[np.arange(len(best)), best])
        if not is_found.any():
            break
        begins = starts[np.arange(len(best)), best][is_found]
        stops = np.minimum((best[is_found] + 1) * step, last - first)
        moved = first + int(np.median(begins)), first + int(np.median(stops))
        if moved == (start, stop) or moved[1] - moved[0] < MIN_FRAMES:
            break
        start, stop = moved
    return Part(start, stop, score_part(describe(measured[start:stop], seconds[start:stop]), action))


def score_part(vectors: Vectors, action: Action) -> float:
    """Return the mean likeness of a part (N, D) to the examples, warped from end to end."""
    part, values = vectors[spread_frames(len(vectors), MAX_FRAMES)], []
    for example in action.whole:
        gaps = squared_gaps(example, part).astype(np.float64)
        values.append(1 - path_distance(gaps) / NEAR_RANDOM)
    return float(np.mean(values))


def is_same(a: Part, b: Part) -> bool:
    """Whether two parts share most of their frames."""
    shared = min(a.stop, b.stop) - max(a.start, b.start)
    return shared >= SAME * (max(a.stop, b.stop) - min(a.start, b.start))


def keep_apart(parts: Sequence[Part], *, max_overlap: float) -> list[Part]:
    """Return the best parts in their order; of two that share more than `max_overlap` of the shorter, one."""
    kept: list[Part] = []
    for part in sorted(parts, key=lambda each: -each.likeness):
        place = bisect_left(kept, part)
        beside = kept[max(0, place - 1) : place + 1]  # kept parts barely overlap: no other can share much
        if all(_share(part, other) <= max_overlap for other in beside):
            kept.insert(place, part)
    return kept


def _share(a: Part, b: Part) -> float:
    """Return the share of the shorter of two parts that both hold."""
    return (min(a.stop, b.stop) - max(a.start, b.start)) / min(a.stop - a.start, b.stop - b.start)


def divide_shared(parts: Sequence[Part]) -> list[Part]:
    """Divide what neighbours share between them, for parts in order."""
    divided = list(parts)
    for number in range(1, len(divided)):
        before, after = divided[number - 1], divided[number]
        if before.stop > after.start:
            middle = (before.stop + after.start) // 2
            divided[number - 1], divided[number] = before._replace(stop=middle), after._replace(start=middle)
    return divided
