"""Find all of one video somewhere inside a longer one, at a pace between two limits.

A free warping path may squeeze a whole video into a few frames of the other, or spread it over minutes. Here
frame i of a goes with frame j(i) of b, and from one frame of a to the next, j stays or runs on by whole
frames,

    total(i, j) = c(i, j) + min over m of  total(i - 1, j - m),      m = 0 .. ceil(fastest)

where j stays at most ceil(1 / slowest) - 1 times in a row. Of the cheapest parts that end at each frame of b,
those more than `fastest` or less than `slowest` times as long as a are left out. Each frame of a counts once,
so parts of different length compare.

Shapes: T frames of video a, S frames of video b, ... any axes before them, Z = ceil(1 / slowest).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment.distances import Floats, Indices

Pace = tuple[float, float]  # least and greatest number of frames of b per frame of a
PACE: Pace = (0.4, 2.5)


class Ends(NamedTuple):
    """The best part of b that ends at each frame of b; its cost is `inf` where it is outside the limits."""

    cost: Floats  # (..., S), mean over the frames of a
    start: Indices  # (..., S), first frame of that part


def find_ends(costs: Floats, *, pace: Pace = PACE) -> Ends:
    """Return for each frame of b how well a part that ends there shows all of a.

    Args:
        costs: (..., T, S), between every frame of a and every frame of b.
        pace: frames of b per frame of a, at least and at most.
    """
    check_pace(pace)
    num_rows, num_columns = costs.shape[-2:]
    steps = range(1, math.ceil(pace[1]) + 1)
    num_states = math.ceil(1 / pace[0])  # Z, by how often j has just stayed
    shape = costs[..., 0, :].shape
    totals = [costs[..., 0, :].copy(), *(np.full(shape, np.inf) for _ in range(num_states - 1))]
    starts = [np.broadcast_to(np.arange(num_columns, dtype=np.int32), shape).copy() for _ in totals]
    for row in range(1, num_rows):
        best, origin = _choose_state(totals, starts)
        moved, came_from = np.full_like(best, np.inf), origin.copy()
        for step in steps:
            if step >= num_columns:
                break
            is_less = best[..., :-step] < moved[..., step:]
            moved[..., step:] = np.where(is_less, best[..., :-step], moved[..., step:])
            came_from[..., step:] = np.where(is_less, origin[..., :-step], came_from[..., step:])
        cost = costs[..., row, :]
        totals = [cost + moved, *(cost + total for total in totals[:-1])]
        starts = [came_from, *starts[:-1]]
    best, origin = _choose_state(totals, starts)
    lengths = np.arange(num_columns) + 1 - origin
    is_allowed = (lengths >= pace[0] * num_rows - 1) & (lengths <= pace[1] * num_rows + 1)
    return Ends(np.where(is_allowed, best / num_rows, np.inf), origin.astype(np.int64))


def _choose_state(
    totals: Sequence[Floats], starts: Sequence[NDArray[np.int32]]
) -> tuple[Floats, NDArray[np.int32]]:
    """Return the least total of Z states at each frame of b (..., S), and where its part begins."""
    best, origin = totals[0], starts[0]
    for total, start in zip(totals[1:], starts[1:], strict=True):
        is_less = total < best
        best, origin = np.where(is_less, total, best), np.where(is_less, start, origin)
    return best, origin


def find_part(costs: Floats, *, pace: Pace = PACE) -> slice | None:
    """Return the part of b that shows all of a best, for `costs` (T, S); None if b is too short."""
    ends = find_ends(costs, pace=pace)
    last = int(ends.cost.argmin())
    return slice(int(ends.start[last]), last + 1) if np.isfinite(ends.cost[last]) else None


def check_pace(pace: Pace) -> None:
    """Refuse limits that leave no pace."""
    low, high = pace
    if not 0 < low <= high < math.inf:
        raise ValueError(f"pace must be two numbers above 0, the first not larger, got {low} and {high}")
