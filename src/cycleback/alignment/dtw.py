"""Dynamic time warping: the cheapest way through two videos that never runs backwards.

A path starts at both first frames, ends at both last frames, and each step moves on by one frame in a, in b,
or in both. It costs the sum of the cells it visits. Of equally cheap predecessors of a cell, the path takes
the step in both before the step in a alone, and that before the step in b alone. So there is one path, the
same with numba (extra `fast`), which compiles the loops at first use, and with numpy, which sweeps
anti-diagonals.

Shapes: T frames of video a, S frames of video b, L steps of the path.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module

import numpy as np
from numpy.typing import ArrayLike

from cycleback.alignment.inputs import Floats, Indices, as_matrix


def dtw_path(cost: ArrayLike) -> Indices:
    """Cheapest path (L, 2) through `cost` (T, S): pairs of a frame of a and a frame of b, in order."""
    matrix = as_matrix("cost", cost, shape="(T, S)")
    accumulate, backtrack = _kernels()
    return backtrack(accumulate(matrix))


def accumulated_cost(cost: ArrayLike) -> Floats:
    """Cost (T, S) of the cheapest path from the first cell of `cost` (T, S) to each cell, both included."""
    accumulate, _ = _kernels()
    return accumulate(as_matrix("cost", cost, shape="(T, S)"))[1:, 1:]


def dtw_indices(path: ArrayLike) -> Indices:
    """One frame of b for each frame of a (T,): the middle of those `path` (L, 2) pairs it with, rounded down.

    The frames paired with one frame of a are consecutive, so their middle is their mean and their median; and
    it never runs backwards.
    """
    rows, columns = as_matrix("path", path, shape="(L, 2)").astype(np.int64).T
    frames = np.arange(rows[-1] + 1)
    first = columns[np.searchsorted(rows, frames, side="left")]
    last = columns[np.searchsorted(rows, frames, side="right") - 1]
    middle: Indices = (first + last) // 2
    return middle


def accumulate_diagonals(cost: Floats) -> Floats:
    """Accumulated cost with a border, (T + 1, S + 1): row 0 and column 0 stand before the first frames.

    Cells of one anti-diagonal depend only on the two before it, so each is one numpy operation. In a flat
    array of width S + 1 the cells of an anti-diagonal are S apart, and so are their predecessors.
    """
    num_rows, num_columns = cost.shape
    width = num_columns + 1
    total = np.full((num_rows + 1, width), np.inf)
    total[0, 0] = 0
    total[1:, 1:] = cost
    flat = total.ravel()
    for diagonal in range(num_rows + num_columns - 1):
        first, last = max(0, diagonal - num_columns + 1), min(diagonal, num_rows - 1)  # rows of cost
        start = (first + 1) * width + diagonal - first + 1
        stop = start + (last - first) * num_columns + 1
        both = flat[start - width - 1 : stop - width - 1 : num_columns]
        in_a = flat[start - width : stop - width : num_columns]
        in_b = flat[start - 1 : stop - 1 : num_columns]
        flat[start:stop:num_columns] += np.minimum(np.minimum(both, in_a), in_b)
    return total


def accumulate_cells(cost: Floats) -> Floats:
    """`accumulate_diagonals` cell by cell: the same sums in the same order, for numba to compile."""
    num_rows, num_columns = cost.shape
    total = np.full((num_rows + 1, num_columns + 1), np.inf)
    total[0, 0] = 0
    for i in range(num_rows):
        for j in range(num_columns):
            total[i + 1, j + 1] = cost[i, j] + min(total[i, j], total[i, j + 1], total[i + 1, j])
    return total


def backtrack_cells(total: Floats) -> Indices:
    """Path (L, 2) back from the last cell of the bordered accumulated cost (T + 1, S + 1)."""
    i, j = total.shape[0] - 1, total.shape[1] - 1
    path = np.empty((i + j, 2), dtype=np.int64)
    position = i + j
    while i > 0 and j > 0:
        position -= 1
        path[position, 0], path[position, 1] = i - 1, j - 1
        both, in_a, in_b = total[i - 1, j - 1], total[i - 1, j], total[i, j - 1]
        if both <= in_a and both <= in_b:
            i, j = i - 1, j - 1
        elif in_a <= in_b:
            i -= 1
        else:
            j -= 1
    return path[position:]


@cache
def _kernels() -> tuple[Callable[[Floats], Floats], Callable[[Floats], Indices]]:
    """The two passes, forward and back: compiled where numba is installed."""
    try:
        njit = import_module("numba").njit
    except ImportError:
        return accumulate_diagonals, backtrack_cells
    try:
        return njit(cache=True)(accumulate_cells), njit(cache=True)(backtrack_cells)
    except RuntimeError:  # no writable folder for the compiled code: compile again in each process
        return njit(accumulate_cells), njit(backtrack_cells)
