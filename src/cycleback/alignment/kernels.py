"""The sweep of dynamic time warping: which step leads to each cell, for any band and any free ends.

    total(i, j) = c(i, j) + min( total(i-1, j-1) + again c(i, j),      step 0, in both videos
                                 total(i-1, j),                        step 1, in a alone
                                 total(i, j-1),                        step 2, in b alone
                                 enter_a(i) + enter_b(j) + again c(i, j) )  step 3, the path begins here

and the path ends where total(i, j) + leave_a(i) + leave_b(j) is least. Of equal steps the first is taken; of
equal ends the one furthest on. One byte a cell is kept, and one row of totals. The rows come in blocks, so
that the costs of a long video need never be in memory together.

Both versions do the same sums in the same order: `sweep_cells` for numba (extra `fast`) to compile at first
use, `sweep_diagonals` in numpy, where the cells of an anti-diagonal depend only on the two before it.

Shapes: T frames of video a, S frames of video b, L steps of the path.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment.inputs import Floats, Indices

BOTH, IN_A, IN_B, BEGIN = range(4)


class Sweep(NamedTuple):
    """All the sweep needs besides the costs, and what it leaves behind."""

    start: Indices  # (T,) first column of the band in each row; never falls
    stop: Indices  # (T,) one past the last; never falls
    offset: Indices  # (T,) where in `steps` column 0 of each row would be
    enter_a: Floats  # (T,) price of beginning at each frame of a; inf where it is not allowed
    enter_b: Floats  # (S,)
    leave_a: Floats  # (T,) price of ending at each frame of a
    leave_b: Floats  # (S,)
    again: float  # 1 where a step in both videos pays its cell twice, once for each video; else 0
    total: Floats  # (S + 1,) of the last row swept; its first entry stands before the first frame
    best: Floats  # (3,) price, row and column of the best end so far
    steps: NDArray[np.uint8]  # (cells of the band,)


Compilable = TypeVar("Compilable", bound=Callable[..., Any])
Kernels = tuple[Callable[[Floats, int, int, Sweep], None], Callable[[Sweep], Indices]]


def sweep_cells(cost: Floats, row: int, column: int, s: Sweep) -> None:
    """Sweep the rows of `cost`, whose first cell is (row, column) of the whole, cell by cell."""
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
    """`sweep_cells`, an anti-diagonal at a time. Entry k + 1 of a diagonal is its cell in row k of `cost`."""
    height, width = cost.shape
    rows = np.arange(row, row + height)
    begins, ends = s.start[rows] + rows, s.stop[rows] + rows  # both rise: rows of a diagonal are consecutive
    above, flat = s.total.copy(), cost.ravel()
    apart, in_steps = (
        max(width - 1, 1),
        s.offset[rows] - rows,
    )  # cells of a diagonal are so far apart in `flat`
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
    """The least of several arrays, entry by entry, and which it is: the first of equals."""
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


def backtrack_cells(s: Sweep) -> Indices:
    """Path (L, 2) back from the best end to where it began."""
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
    """The two passes, forth and back: compiled where numba is installed."""
    forth, back = compiled(sweep_cells), compiled(backtrack_cells)
    return (sweep_diagonals, backtrack_cells) if forth is None or back is None else (forth, back)


@cache
def compiled(function: Compilable) -> Compilable | None:
    """The function compiled, or None without numba.

    It lets go of the interpreter's lock, so that plain threads may work on several pairs; numba's own threads
    would end the process when it forks, or when two threads call them.
    """
    try:
        njit: Any = import_module("numba").njit
    except ImportError:
        return None
    try:
        result: Compilable = njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no writable folder for the compiled code: compile again in each process
        result = njit(nogil=True)(function)
    return result
