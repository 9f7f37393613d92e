"""Pins: pairs of frames that a person sets by hand. The path runs through all of them.

A pin (i, j) says that frame i of a and frame j of b show the same moment. Pins in order of time cut the
matrix of all pairs of frames into rectangles, from one pin to the next, and only these are searched:

        j1      j2
    +---+               the lead-in, up to the first pin; its beginning is as free as the method says
    |   |
 i1 +---o-------+       from pin to pin, with both corners fixed
        |       |
 i2     +-------o---+   the lead-out, from the last pin; its end is as free as the method says
                |   |
                +---+

The cheapest path through all pins is the cheapest path of each rectangle, one after the other. So pins cost
no exactness, and they save time.

Both frames must increase from pin to pin. Pins that cross contradict the order of time, and a frame with two
pins has no single match.

Several videos are aligned with one of them, the reference. Pins tie their frames together to moments: a frame
of a with one of b, and that with one of c. Where a moment has a frame of the reference, the other frames of
the moment are pinned to it. Where it has none, as with a pin between two other videos, it is placed at the
frame of the reference that the surest match of its frames gives, and then all its frames are pinned there.
So frames that a pin ties together are always shown together.

Shapes: T frames of video a, S frames of video b, K pins, L steps of a path, V videos of N frames, M moments.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import numpy as np

from cycleback.alignment.bounds import Band, FreeEnds, check_width
from cycleback.alignment.confidence import pool_adjacent_violators
from cycleback.alignment.distances import Floats, Indices, nearest_neighbors
from cycleback.alignment.dtw import Warp
from cycleback.errors import UserError

Pairs = Iterable[Sequence[int]]  # (frame of a, frame of b) each
Rectangle = tuple[slice, slice]  # frames of a, frames of b
Link = tuple[int, int, int, int]  # a pin between two of several videos: video, its frame, video, its frame
Moment = Mapping[int, int]  # video -> frame
# frame of the reference (N,) and confidence (N,) for each frame of a video, given its pins (K, 2) with it
Matcher = Callable[[int, Indices], tuple[Indices, Floats]]
NO_PINS: Indices = np.empty((0, 2), dtype=np.int64)


def check_pins(pins: Pairs, num_a: int, num_b: int, *, names: tuple[str, str] = ("a", "b")) -> Indices:
    """Return the pins (K, 2) in order of time, each once.

    Args:
        pins: (frame of a, frame of b) each, in any order.
        num_a: T.
        num_b: S.
        names: What messages call the two videos.

    Raises:
        UserError: A frame lies outside its video, a frame has two pins, or two pins cross.
    """
    table = np.array([tuple(pin) for pin in pins]) if not isinstance(pins, np.ndarray) else pins
    if not len(table):
        return NO_PINS
    if table.ndim != 2 or table.shape[1] != 2 or not np.issubdtype(table.dtype, np.integer):
        raise ValueError(f"pins must be pairs of frame numbers, (frame of a, frame of b), got {pins}")
    ordered: Indices = np.unique(table.astype(np.int64), axis=0)
    for i, j in ordered.tolist():
        for frame, length, name in ((i, num_a, names[0]), (j, num_b, names[1])):
            if not 0 <= frame < length:
                raise UserError(
                    f"pin {i}:{j} names frame {frame} of {name}, which has frames 0 to {length - 1}: "
                    "correct or remove the pin"
                )
    for before, after in pairwise(ordered.tolist()):
        _check_order(before, after, names)
    return ordered


def _check_order(before: list[int], after: list[int], names: tuple[str, str]) -> None:
    """Refuse two neighbouring pins, sorted by their frames of a, unless both frames increase."""
    (i, j), (k, m) = before, after
    both = f"pins {i}:{j} and {k}:{m} of {names[0]} and {names[1]}"
    if i == k or j == m:
        frame, name = (i, names[0]) if i == k else (j, names[1])
        raise UserError(f"{both} give frame {frame} of {name} two matches: remove one of the pins")
    if m < j:
        raise UserError(f"{both} cross, but both videos run forwards: move or remove one of the pins")


def split_at_pins(pins: Indices, shape: tuple[int, int]) -> list[Rectangle]:
    """Return the K + 1 rectangles of a matrix of `shape` (T, S) between `pins` (K, 2), corners included."""
    corners = [(0, 0), *map(tuple, pins.tolist()), (shape[0] - 1, shape[1] - 1)]
    return [(slice(i, k + 1), slice(j, m + 1)) for (i, j), (k, m) in pairwise(corners)]


def warp_through(
    pins: Indices,
    shape: tuple[int, int],
    *,
    free: FreeEnds,
    warp: Callable[[Rectangle, FreeEnds], Warp],
) -> Warp:
    """Return the cheapest path through `pins` (K, 2), and the sum of the prices of its rectangles.

    The price counts the cell of each pin in both rectangles that share it, on every path alike.

    Args:
        pins: In order of time; neither frame decreases.
        shape: (T, S).
        free: Which frames the whole path may leave out.
        warp: Finds path and price in one rectangle, given which frames may be left out there.
    """
    rectangles = split_at_pins(pins, shape)
    paths, total = [], 0.0
    for number, (rows, columns) in enumerate(rectangles):
        is_last = number == len(rectangles) - 1
        lead_in = free[:2] if number == 0 else (False, False)
        path, price = warp((rows, columns), FreeEnds(*lead_in, *(free[2:] if is_last else (False, False))))
        inside = path[min(number, 1) :]  # the pin at the corner is on the path before
        paths.append(inside + np.array([rows.start, columns.start]))
        total += price
    return np.concatenate(paths), total


def find_nearest(a: Floats, b: Floats, pins: Indices, *, chunk_frames: int = 256) -> Indices:
    """Return the frame of `b` (S, D) nearest to each frame of `a` (T, D), in the rectangle of its frame.

    A pinned frame takes its pin. With no `pins` (0, 2) the rectangle is the whole of b.
    """
    indices = np.empty(len(a), dtype=np.int64)
    for rows, columns in split_at_pins(pins, (len(a), len(b))):
        found = nearest_neighbors(a[rows], b[columns], chunk_frames=chunk_frames)
        indices[rows] = found + columns.start
    indices[pins[:, 0]] = pins[:, 1]
    return indices


def limit_matches(pins: Indices, shape: tuple[int, int]) -> Band:
    """Return which frames of b each frame of a may match: those of its rectangle, or its pin."""
    start, stop = np.empty(shape[0], np.int64), np.empty(shape[0], np.int64)
    for rows, columns in split_at_pins(pins, shape):
        start[rows], stop[rows] = columns.start, columns.stop
    start[pins[:, 0]], stop[pins[:, 0]] = pins[:, 1], pins[:, 1] + 1
    return Band(start, stop)


def fit_width(width: float, *, num_columns: int, rectangle: Rectangle) -> float:
    """Return the width of a slanted band in `rectangle` that is as wide, in frames, as in the whole matrix.

    `width` is a share of `num_columns`, the result a share of the columns of the rectangle. Where pins force
    the path to run faster than such a band allows, the band is as wide as the path needs.
    """
    check_width(width)
    height, across = (int(frames.stop - frames.start) for frames in rectangle)
    needed = max(1.0, (across - 1) / max(height - 1, 1)) / 2 + 1e-6
    return min(1.0, max(width * num_columns, needed) / across)


def place_pins(
    links: Iterable[Link],
    lengths: Sequence[int],
    *,
    reference: int,
    match: Matcher,
    names: Sequence[str] | None = None,
) -> list[Indices]:
    """Return the pins (K, 2) of each of V videos with the reference: its frame, and the video's frame.

    Args:
        links: The pins between any two of the videos.
        lengths: (V,), the number of frames of each video.
        reference: The video that all are aligned with.
        match: Aligns a video with the reference, for moments that have no frame of the reference.
        names: What messages call the videos.

    Raises:
        UserError: Two pins contradict each other, alone or through other videos.
    """
    names = names or [f"video {number}" for number in range(len(lengths))]
    links = list(links)
    for u, v in sorted({(min(u, v), max(u, v)) for u, _, v, _ in links}):
        check_pins(select_links(links, u, v), lengths[u], lengths[v], names=(names[u], names[v]))
    moments: Sequence[Moment] = _join_moments(links, names)
    guesses: dict[int, tuple[Indices, Floats]] = {}
    for video in sorted({video for moment in moments if reference not in moment for video in moment}):
        own = check_pins(select_links(links, reference, video), lengths[reference], lengths[video])
        guesses[video] = match(video, own)
    wishes = [_wish(moment, guesses, reference=reference) for moment in moments]
    moments, wishes = _order_moments(moments, wishes, names)
    frames = _place_moments(moments, wishes, reference=reference, num_frames=lengths[reference])
    placed = list(zip(frames, moments, strict=True))
    pins = [[(frame, moment[v]) for frame, moment in placed if v in moment] for v in range(len(lengths))]
    return [np.array(own, dtype=np.int64).reshape(-1, 2) for own in pins]


def select_links(links: Iterable[Link], u: int, v: int) -> list[tuple[int, int]]:
    """Return the pairs (frame of u, frame of v) of the pins between two of several videos."""
    pairs = [(i, j) for a, i, b, j in links if (a, b) == (u, v)]
    return pairs + [(j, i) for a, i, b, j in links if (a, b) == (v, u)]


def _join_moments(links: Iterable[Link], names: Sequence[str]) -> list[dict[int, int]]:
    """Return the M moments of all links; a moment has at most one frame of each video."""
    moments: list[dict[int, int]] = []
    for u, i, v, j in links:
        joined = {u: i, v: j}
        apart = []
        for moment in moments:
            if moment.get(u) != i and moment.get(v) != j:
                apart.append(moment)
                continue
            for video, frame in moment.items():
                if joined.setdefault(video, frame) != frame:
                    raise UserError(
                        f"pins tie frames {joined[video]} and {frame} of {names[video]} together, through "
                        "other videos: remove one of these pins"
                    )
        moments = [*apart, joined]
    return moments


def _wish(moment: Moment, guesses: Mapping[int, tuple[Indices, Floats]], *, reference: int) -> float:
    """Return the frame of the reference that goes with a moment, by the surest of its frames."""
    if reference in moment:
        return float(moment[reference])
    surest = max(moment, key=lambda video: guesses[video][1][moment[video]])
    return float(guesses[surest][0][moment[surest]])


def _order_moments(
    moments: Sequence[Moment], wishes: Sequence[float], names: Sequence[str]
) -> tuple[list[Moment], list[float]]:
    """Sort moments by `wishes` (M,), but never against the order of frames in a video."""
    graph: TopologicalSorter[int] = TopologicalSorter({number: () for number in range(len(moments))})
    for video in {video for moment in moments for video in moment}:
        own = [number for number, moment in enumerate(moments) if video in moment]
        for before, after in pairwise(sorted(own, key=lambda number: moments[number][video])):
            graph.add(after, before)
    try:
        graph.prepare()
    except CycleError as error:
        circle = [
            " = ".join(f"{names[video]} {frame}" for video, frame in moments[number].items())
            for number in error.args[1][1:]
        ]
        raise UserError(
            f"pins contradict each other, each of these moments would come before the next and the last "
            f"before the first: {', '.join(circle)}; remove one of these pins"
        ) from error
    order: list[int] = []
    ready: list[int] = []
    while graph.is_active():
        ready += graph.get_ready()
        order.append(min(ready, key=lambda number: wishes[number]))
        ready.remove(order[-1])
        graph.done(order[-1])
    return [moments[number] for number in order], [wishes[number] for number in order]


def _place_moments(
    moments: Sequence[Moment], wishes: Sequence[float], *, reference: int, num_frames: int
) -> list[int]:
    """Return a frame of the reference for each of M ordered moments: increasing, and as near to the wishes.

    Moments with a frame of the reference stay there.
    """
    fixed = [(number, moment[reference]) for number, moment in enumerate(moments) if reference in moment]
    frames = np.array(wishes, dtype=np.float64)
    for (k, low), (m, high) in pairwise([(-1, -1), *fixed, (len(moments), num_frames)]):
        count = m - k - 1
        if high - low - 1 < count:
            span = f"frames {max(low, 0)} and {min(high, num_frames - 1)}"
            raise UserError(
                f"{count} pins of other videos lie between {span} of the reference, where it has too few "
                "frames: remove some of them, or take another reference"
            )
        steps = np.arange(count)  # at least one frame apart
        rising = np.round(pool_adjacent_violators(frames[k + 1 : m] - steps))
        frames[k + 1 : m] = np.clip(rising, low + 1, high - count) + steps
    return [int(frame) for frame in frames]
