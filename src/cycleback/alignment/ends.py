"""Find the part that two videos share: the frames between lead-ins and lead-outs.

A lead-in is what one video shows before the action of the other begins, and a lead-out what it shows after.
Both are left out, so that they bend no match. The rule needs no labels:

1. Leaving out frame i of a costs a price between the distance of a match and that of chance, at most twice
   what any frame of b needs; leaving out a frame of b likewise,

       price(i) = least + min( 0.75 (mean_j d(i, j) - least), 2 (max_j min_i' d(i', j) - least) )

   with least the smallest of all distances. The cheapest path is found that leaves out frames of at most one
   video at its beginning, and of at most one at its end (`cycleback.alignment.bounds` says what it costs).
2. Its common part is believed if it holds half of the frames of the shorter video, and if its best path beats
   chance by more than the best path of the whole videos does, or costs less than half as much above least.
   A pair (i, j) beats chance by mean_i' d(i', j) + mean_j' d(i, j') - mean d - d(i, j).
3. Frames at an end are left out too where one video stands still while the other runs on: where it runs more
   than 8 times as fast and 5 frames further.

With pins, all paths run through them, so frames are left out only before the first pin and after the last.

Shifting all distances by a constant, or scaling them, changes nothing.

Shapes: T frames of video a, S frames of video b, D embedding size, L steps of a path.
"""

import numpy as np

from cycleback.alignment.bounds import FIXED, FreeEnds, price_ends
from cycleback.alignment.distances import Floats, Indices, pairwise_squared
from cycleback.alignment.dtw import Warp, warp_cost
from cycleback.alignment.pins import NO_PINS, Rectangle, warp_through
from cycleback.alignment.warp import halve

CHANCE_SHARE = 0.75  # of the way from the best match to chance, where a frame is better left out
MAX_NEED = 2  # times the way from the best match to the worst that a frame of the other video needs
MIN_SHARE = 0.5  # of the shorter video that two videos of one action have in common at least
STILL_PACE, STILL_FRAMES = 8, 5  # nobody performs an action so much faster for so long
MAX_CELLS = 4_000_000  # of the matrix that decides; longer videos are halved until they fit
ONE_SIDED = [
    FreeEnds(lead_in_a=lead_a, lead_in_b=not lead_a, tail_a=tail_a, tail_b=not tail_a)
    for lead_a in (True, False)
    for tail_a in (True, False)
]


def find_common_part(
    a: Floats, b: Floats, distances: Floats | None = None, *, pins: Indices = NO_PINS
) -> tuple[slice, slice]:
    """Return the frames of `a` (T, D) and of `b` (S, D) that both show, by rules 1 and 2.

    `distances` (T, S) are computed unless given. Where the rules are in doubt, all frames are. The `pins`
    (K, 2) lie in the part, see `cycleback.alignment.pins`.
    """
    lengths, scale = (len(a), len(b)), 1
    while len(a) * len(b) > MAX_CELLS and min(len(a), len(b)) > 1:
        a, b, scale = halve(a), halve(b), 2 * scale
    if distances is None or scale > 1:
        distances = pairwise_squared(a, b)
    spans = zip(_common_spans(distances, pins // scale), lengths, strict=True)
    first, second = (slice(scale * start, min(scale * stop, length)) for (start, stop), length in spans)
    return first, second


def _common_spans(distances: Floats, pins: Indices) -> list[tuple[int, int]]:
    """Return first frame and frame after the last of the part in common, of a and of b."""
    whole = [(0, length) for length in distances.shape]
    means = distances.mean(axis=1), distances.mean(axis=0)
    least, needs = distances.min(), (distances.min(axis=0).max(), distances.min(axis=1).max())
    of_a, of_b = (
        least + np.minimum(CHANCE_SHARE * (mean - least), MAX_NEED * (need - least))
        for mean, need in zip(means, needs, strict=True)
    )
    ways = (_warp(distances, pins, free=free, skip_cost=(of_a, of_b)) for free in ONE_SIDED)
    path, _ = min(ways, key=lambda warp: warp[1])
    spans = [(int(first), int(last) + 1) for first, last in zip(path[0], path[-1], strict=True)]
    if spans == whole or min(stop - start for start, stop in spans) < MIN_SHARE * min(distances.shape):
        return whole
    cost, chance = _mean_costs(distances, spans, pins)
    whole_cost, whole_chance = _mean_costs(distances, whole, pins)
    is_cheap = cost - least < (whole_cost - least) / 2
    return spans if chance - cost > whole_chance - whole_cost or is_cheap else whole


def _mean_costs(distances: Floats, spans: list[tuple[int, int]], pins: Indices) -> tuple[float, float]:
    """Return the mean cost of the best path through a part of `distances` (T, S), and of chance on its way.

    Chance is mean_i d(i, j) + mean_j d(i, j), up to a constant.
    """
    rows, columns = (slice(*span) for span in spans)
    inside = distances[rows, columns]
    path, _ = _warp(inside, pins - np.array([rows.start, columns.start]))
    of_a, of_b = distances.mean(axis=1)[rows], distances.mean(axis=0)[columns]
    of_path = inside[path[:, 0], path[:, 1]]
    return float(of_path.mean()), float((of_a[path[:, 0]] + of_b[path[:, 1]]).mean())


def _warp(
    distances: Floats,
    pins: Indices,
    *,
    free: FreeEnds = FIXED,
    skip_cost: tuple[Floats, Floats] | None = None,
) -> Warp:
    """Return the cheapest path through `distances` (T, S) and all pins; frames left out pay `skip_cost`."""

    def warp(rectangle: Rectangle, loose: FreeEnds) -> Warp:
        cost = np.ascontiguousarray(distances[rectangle])
        rows, columns = rectangle
        price = np.inf if skip_cost is None else (skip_cost[0][rows], skip_cost[1][columns])
        ends = price_ends(*cost.shape, free=loose, skip_cost=price)
        return warp_cost(cost, ends=ends._replace(again=float(any(free))))

    return warp_through(pins, distances.shape, free=free, warp=warp)


def drop_standstills(path: Indices, *, pins: Indices = NO_PINS) -> Indices:
    """Return `path` (L, 2) without the steps at its ends in which one video stands still (rule 3).

    No pin is dropped.
    """
    head, tail = path, path
    if len(pins):
        at_first, at_last = (int((path == pin).all(axis=1).argmax()) for pin in pins[[0, -1]])
        head, tail = path[: at_first + 1], path[at_last:]
    first, last = _standstill(head - head[0]), len(path) - 1 - _standstill((tail[-1] - tail)[::-1])
    return path[first : last + 1] if first < last or len(pins) else path


def _standstill(advance: Indices) -> int:
    """Return how many steps pass before the slower video of `advance` (L, 2) moves on."""
    slow, fast = advance.min(axis=1), advance.max(axis=1)
    lead = fast - slow - STILL_PACE * slow
    step = int(lead.argmax())
    return step if lead[step] >= STILL_FRAMES else 0
