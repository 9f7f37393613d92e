"""Dynamic time warping: the cheapest path through a matrix of costs that never runs backwards.

    total(i, j) = c(i, j) + min( total(i-1, j-1) + again c(i, j),      step 0, in both videos
                                 total(i-1, j),                        step 1, in a alone
                                 total(i, j-1),                        step 2, in b alone
                                 enter_a(i) + enter_b(j) + again c(i, j) )  step 3, the path begins here

The path ends where total(i, j) + leave_a(i) + leave_b(j) is least. Of equal steps the first is taken, and of
equal ends the one furthest on. So there is exactly one path. With fixed ends it runs from both first to both
last frames and costs the sum of its cells.

Three functions compute this recurrence:

    sweep_cells      cell by cell; numba (extra `fast`) compiles it at first use
    sweep_diagonals  the same sums in the same order in numpy: the cells of an anti-diagonal depend only on
                     the two anti-diagonals before it
    extend_row       one more row of totals with fixed beginning, for streams (no path)

A sweep keeps one byte per cell and one row of totals. Rows come in blocks, so the costs of a long video are
never all in memory.

Shapes: T frames of video a, S frames of video b, L steps of the path.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment.bounds import Band, Ends, price_ends, slanted_band, whole_band
from cycleback.alignment.distances import Floats, Indices, as_matrix
from cycleback.compilation import compile_loops

Block = tuple[int, int, Floats]  # first row, first column, costs
Warp = tuple[Indices, float]  # path (L, 2) and its price


def dtw_path(cost: ArrayLike, *, band: float | None = None) -> Indices:
    """Return the cheapest path (L, 2) through `cost` (T, S): pairs of a frame of a and a frame of b.

    `band` limits how far the path may stray from the straight line between the corners, as a share of S.
    """
    matrix = as_matrix("cost", cost, shape="(T, S)")
    allowed = None if band is None else slanted_band(*matrix.shape, width=band)
    return warp_cost(matrix, ends=price_ends(*matrix.shape), band=allowed)[0]


def match_frames(path: ArrayLike, *, num_frames: int | None = None) -> Indices:
    """Return one frame of b per frame of a (T,): the middle of those `path` (L, 2) pairs it with.

    The frames paired with one frame of a are consecutive, so their middle, rounded down, is their mean and
    their median. The result never runs backwards. Frames outside the path take the match of its first or
    last frame. `num_frames` is T; by default the path reaches the last frame of a.
    """
    rows, columns = as_matrix("path", path, shape="(L, 2)").astype(np.int64).T
    frames = np.clip(np.arange(rows[-1] + 1 if num_frames is None else num_frames), rows[0], rows[-1])
    first = columns[np.searchsorted(rows, frames, side="left")]
    last = columns[np.searchsorted(rows, frames, side="right") - 1]
    middle: Indices = (first + last) // 2
    return middle


def extend_row(totals: Floats | None, costs: Floats) -> Floats:
    """Return the row of totals (S,) after `totals` (S,), up to a constant that keeps it from growing.

    Steps in a and in both come from the row before. Steps in b alone run along the row: the cheapest k <= j
    to enter at, plus the costs from k + 1 to j, is a running minimum over running sums. `costs` (S,) belong
    to the new row; without `totals` it is the first.
    """
    along = np.cumsum(costs)
    if totals is None:
        return along
    entered = costs + np.minimum(totals, np.r_[np.inf, totals[:-1]])
    row: Floats = along + np.minimum.accumulate(entered - along)
    row -= row.min()
    return row


def warp_cost(cost: Floats, *, ends: Ends, band: Band | None = None, column: int = 0) -> Warp:
    """Return the cheapest path through the columns of `cost` (T, M) from `column` on, and its price."""
    band = band or whole_band(len(ends.enter_a), len(ends.enter_b))
    return warp_blocks([(0, -column, cost)], band, ends)


def warp_blocks(blocks: Iterable[Block], band: Band, ends: Ends, *, kernels: "Kernels | None" = None) -> Warp:
    """Sweep blocks (first row, first column, costs) in order, then trace the path back."""
    widths = band.stop - band.start
    upto = np.cumsum(widths)
    state = Sweep(
        start=band.start,
        stop=band.stop,
        offset=upto - widths - band.start,
        total=np.full(len(ends.enter_b) + 1, np.inf),
        best=np.array([np.inf, -1.0, -1.0]),
        steps=np.empty(upto[-1], dtype=np.uint8),
        **ends._asdict(),
    )
    sweep, trace = kernels or fastest_kernels()
    for row, column, cost in blocks:
        sweep(cost, row, column, state)
    return trace(state), float(state.best[0])


class Sweep(NamedTuple):
    """The inputs of a sweep besides the costs, and its state."""

    start: Indices  # (T,) first column of the band in each row; never decreases
    stop: Indices  # (T,) one past the last column; never decreases
    offset: Indices  # (T,) where in `steps` column 0 of each row would be
    enter_a: Floats  # (T,) price of beginning at each frame of a; inf where it is not allowed
    enter_b: Floats  # (S,)
    leave_a: Floats  # (T,) price of ending at each frame of a
    leave_b: Floats  # (S,)
    again: float  # 1 where a step in both videos pays its cell twice, once per video; else 0
    total: Floats  # (S + 1,) of the last row swept; its first entry stands before the first frame
    best: Floats  # (3,) price, row and column of the best end so far
    steps: NDArray[np.uint8]  # (cells of the band,)


Kernels = tuple[Callable[[Floats, int, int, Sweep], None], Callable[[Sweep], Indices]]


def sweep_cells(cost: Floats, row: int, column: int, s: Sweep) -> None:
    """Sweep the rows of `cost` cell by cell; its first cell is (row, column) of the whole matrix."""
    for i in range(row, row + cost.shape[0]):
        first, last = s.start[i], s.stop[i]
        both, in_b = s.total[first], np.inf
        if i > 0:
            s.total[s.start[i - 1] + 1 : first + 1] = np.inf
        costs, totals = cost[i - row, first - column : last - column], s.total[first + 1 : last + 1]
        steps = s.steps[s.offset[i] + first : s.offset[i] + last]
        enter, enter_b = s.enter_a[i], s.enter_b[first:last]
        leave, leave_b = s.leave_a[i], s.leave_b[first:last]
        for k in range(last - first):
            c, in_a = costs[k], totals[k]
            least, step = both + s.again * c, 0
            if in_a < least:
                least, step = in_a, 1
            if in_b < least:
                least, step = in_b, 2
            if enter < np.inf:
                begin = enter + enter_b[k] + s.again * c
                if begin < least:
                    least, step = begin, 3
            both, in_b = in_a, c + least
            totals[k] = in_b
            steps[k] = step
            if leave < np.inf:
                end = in_b + (leave + leave_b[k])
                further = i + first + k > s.best[1] + s.best[2]
                if end < s.best[0] or (end == s.best[0] and end < np.inf and further):
                    s.best[0], s.best[1], s.best[2] = end, i, first + k


def sweep_diagonals(cost: Floats, row: int, column: int, s: Sweep) -> None:
    """Do what `sweep_cells` does, one anti-diagonal at a time; entry k + 1 of a diagonal is in row k."""
    height, width = cost.shape
    rows = np.arange(row, row + height)
    begins, ends = s.start[rows] + rows, s.stop[rows] + rows  # increase: a diagonal's rows are consecutive
    above, flat = s.total.copy(), cost.ravel()
    apart = max(width - 1, 1)  # distance in `flat` between neighbouring cells of a diagonal
    in_steps = s.offset[rows] - rows
    may_enter, may_leave = s.enter_a[rows] < np.inf, s.leave_a[rows] < np.inf
    s.total[:] = np.inf
    older, old, new = (np.full(height + 1, np.inf) for _ in range(3))
    diagonals = np.arange(begins[0], ends[-1])
    tops, bottoms = (np.searchsorted(edges, diagonals, side="right").tolist() for edges in (ends, begins))
    for diagonal, top, bottom in zip(diagonals.tolist(), tops, bottoms, strict=True):
        new.fill(np.inf)
        if top < bottom:
            if top == 0:
                old[0], older[0] = above[diagonal - row + 1], above[diagonal - row]
            here, first = slice(top, bottom), top * width + diagonal - row - top - column
            c = flat[first : first + (bottom - top - 1) * apart + 1 : apart]
            again = s.again * c if s.again else 0.0
            ways = [older[here] + again, old[here], old[top + 1 : bottom + 1]]
            if may_enter[here].any():
                ways.append(s.enter_a[rows[here]] + s.enter_b[diagonal - rows[here]] + again)
            least, step = _least(ways)
            new[top + 1 : bottom + 1] = c + least
            s.steps[in_steps[here] + diagonal] = step
            if bottom == height:
                s.total[diagonal - rows[-1] + 1] = new[height]
            if may_leave[here].any():
                _keep_best(new[top + 1 : bottom + 1], rows[here], diagonal - rows[here], s)
        older, old, new = old, new, older


def _least(ways: Sequence[Floats]) -> tuple[Floats, NDArray[np.uint8]]:
    """Return the least of several arrays, entry by entry, and the position of the first that has it."""
    least, step = ways[0], np.zeros(len(ways[0]), dtype=np.uint8)
    for number, way in enumerate(ways[1:], start=1):
        step[way < least] = number
        least = np.minimum(least, way)
    return least, step


def _keep_best(total: Floats, rows: Indices, columns: Indices, s: Sweep) -> None:
    price = total + (s.leave_a[rows] + s.leave_b[columns])
    k = int(price.argmin())
    further = rows[k] + columns[k] > s.best[1] + s.best[2]
    if price[k] < s.best[0] or (price[k] == s.best[0] < np.inf and further):
        s.best[:] = price[k], rows[k], columns[k]


def trace_back(s: Sweep) -> Indices:
    """Return the path (L, 2), traced from its best end back to its beginning."""
    i, j = int(s.best[1]), int(s.best[2])
    path = np.empty((i + j + 1, 2), dtype=np.int64)
    position = i + j + 1
    while True:
        position -= 1
        path[position, 0], path[position, 1] = i, j
        step = s.steps[s.offset[i] + j]
        if step == 3:
            return path[position:]
        if step != 2:
            i -= 1
        if step != 1:
            j -= 1


@cache
def fastest_kernels() -> Kernels:
    """Return the sweep and the trace back, compiled where numba is installed."""
    return cast(Kernels, compile_loops(sweep_cells, trace_back) or (sweep_diagonals, trace_back))
