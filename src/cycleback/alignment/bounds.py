"""The limits of a warping path: which cells it may visit, and where it may begin and end.

A `Band` limits the columns of each row. `Ends` price the frames that a path leaves out at its ends.

With fixed ends a path costs the sum of its cells. With free ends that would favour the shortest path, and a
single cell would win. So every frame of a and of b pays: a frame on the path pays the distance to its
partner, and a frame left out pays the skip cost,

    price = sum over path of w c(i, j)  +  skip_cost x (frames of a and of b before and after the path)

where a step in both videos has w = 2, one frame of each, and a step in one video has w = 1. The weights then
add up to the number of frames on every path, and extending the path pays off exactly where c < skip_cost.

By default the skip cost lies between the distance of a good match and that of any two frames,

    skip_cost = near + 0.25 (typical - near)

with near the median distance of a frame, of either video, to the nearest frame of the other, and typical the
median of all distances.

Shapes: T frames of video a, S frames of video b, D embedding size, L steps of a path.
"""

import math
from typing import NamedTuple

import numpy as np

from cycleback.alignment.distances import Floats, Indices, pairwise_squared, thin

SKIP_COST_FRAMES = 1024  # sampled from each video: more do not move a median


class Band(NamedTuple):
    """Columns `start` to `stop - 1` of each row. Neither ever decreases, and a row may be empty."""

    start: Indices  # (T,)
    stop: Indices  # (T,)

    @property
    def cells(self) -> int:
        """Number of cells in all rows."""
        return int((self.stop - self.start).sum())


def whole_band(num_rows: int, num_columns: int) -> Band:
    """Return every column of every row."""
    return Band(np.zeros(num_rows, np.int64), np.full(num_rows, num_columns, np.int64))


def check_width(width: float) -> None:
    """Refuse a width of a slanted band that is no share of the length."""
    if not 0 < width <= 1:
        raise ValueError(f"band must be a share of the length, above 0 and at most 1, got {width}")


def slanted_band(num_rows: int, num_columns: int, *, width: float) -> Band:
    """Return Sakoe and Chiba's band along the straight line from both first to both last frames.

    A path may stray by `width`, a share of the length of b in (0, 1], to either side of the line.
    """
    check_width(width)
    if num_rows == 1 or num_columns == 1:
        return whole_band(num_rows, num_columns)
    slope = (num_columns - 1) / (num_rows - 1)
    line = np.arange(num_rows) * slope
    start = np.maximum(np.ceil(line - width * num_columns), 0).astype(np.int64)
    stop = np.minimum(np.floor(line + width * num_columns) + 1, num_columns).astype(np.int64)
    if (start >= stop).any() or (start[1:] > stop[:-1]).any():
        least = math.ceil(1e4 * max(slope, 1) / 2 / num_columns) / 1e4  # neighbouring rows always touch
        raise ValueError(
            f"band {width} leaves no path through {num_rows} x {num_columns} frames: use at least {least:g}"
        )
    return Band(start, stop)


def band_around(path: Indices, *, scale: int, radius: int, shape: tuple[int, int]) -> Band:
    """Return all cells within `radius` rows and columns of `path` (L, 2), found at 1 / `scale` resolution."""
    num_rows, num_columns = shape
    rows, columns = path.T
    frames = np.arange(num_rows)
    first = np.searchsorted(rows, -((radius + scale - 1 - frames) // scale), side="left")
    last = np.searchsorted(rows, (frames + radius) // scale, side="right") - 1
    before, after = last < 0, first == len(path)  # rows out of reach of the path
    start = np.maximum(columns[np.minimum(first, len(path) - 1)] * scale - radius, 0)
    stop = np.minimum((columns[np.maximum(last, 0)] + 1) * scale + radius, num_columns)
    return Band(np.where(after, stop, start), np.where(before, start, stop))


def intersect(one: Band, other: Band) -> Band:
    """Return the cells that are in both bands."""
    start = np.maximum(one.start, other.start)
    return Band(start, np.maximum(np.minimum(one.stop, other.stop), start))


class FreeEnds(NamedTuple):
    """Which frames a path may leave out: those before it or after it, of a or of b."""

    lead_in_a: bool = False
    lead_in_b: bool = False
    tail_a: bool = False
    tail_b: bool = False


FIXED = FreeEnds()
FREE = {
    "subsequence": FreeEnds(lead_in_b=True, tail_b=True),
    "open_end": FreeEnds(tail_a=True, tail_b=True),
    "overlap": FreeEnds(lead_in_a=True, lead_in_b=True, tail_a=True, tail_b=True),
}


class Ends(NamedTuple):
    """The price of beginning and of ending a path at each frame; inf where it may not."""

    enter_a: Floats  # (T,)
    enter_b: Floats  # (S,)
    leave_a: Floats  # (T,)
    leave_b: Floats  # (S,)
    again: float  # 1 where a step in both videos pays its cell twice, once per video; else 0


def price_ends(
    num_rows: int,
    num_columns: int,
    *,
    free: FreeEnds = FIXED,
    skip_cost: float | tuple[Floats, Floats] = np.inf,
) -> Ends:
    """Return ends where every frame that `free` lets the path leave out pays `skip_cost`.

    The skip cost is one for all frames, or one per frame of a (T,) and of b (S,). By default no frame may be
    left out: the path runs from both first frames to both last frames.
    """
    of_a, of_b = skip_cost if isinstance(skip_cost, tuple) else (skip_cost, skip_cost)
    costs_a, costs_b = np.broadcast_to(of_a, num_rows), np.broadcast_to(of_b, num_columns)
    return Ends(
        _prices(costs_a, free.lead_in_a),
        _prices(costs_b, free.lead_in_b),
        _prices(costs_a[::-1], free.tail_a)[::-1].copy(),
        _prices(costs_b[::-1], free.tail_b)[::-1].copy(),
        again=float(any(free)),
    )


def default_skip_cost(a: Floats, b: Floats) -> float:
    """Return the skip cost above for embeddings `a` (T, D) and `b` (S, D); long videos are sampled evenly."""
    few_a, few_b = thin(a, SKIP_COST_FRAMES), thin(b, SKIP_COST_FRAMES)
    near_a, near_b = _nearest_distances(few_a, b), _nearest_distances(few_b, a)
    near = float(np.median(np.concatenate([near_a, near_b])))
    typical = float(np.median(pairwise_squared(few_a, few_b)))
    return near + 0.25 * max(0.0, typical - near)


def _prices(costs: Floats, is_free: bool) -> Floats:
    """Return what leaving out all frames before each frame costs, given the cost of each (N,)."""
    before = np.cumsum(costs[:-1]) if is_free else np.full(len(costs) - 1, np.inf)
    return np.concatenate([[0.0], before])


def _nearest_distances(rows: Floats, others: Floats, *, chunk: int = 4096) -> Floats:
    """Return the distance of each row to the nearest of `others`, computed chunk by chunk."""
    starts = range(0, len(others), chunk)
    parts = [pairwise_squared(rows, others[i : i + chunk]).min(axis=1) for i in starts]
    return np.min(parts, axis=0)  # type: ignore[no-any-return]
