"""Dynamic time warping: the cheapest way through two videos that never runs backwards.

A path starts at both first frames, ends at both last frames, and each step moves on by one frame in a, in b,
or in both. It costs the sum of the cells it visits. Of equally cheap predecessors of a cell, the path takes
the step in both before the step in a alone, and that before the step in b alone. So there is one path, the
same with numba (extra `fast`), which compiles the loops at first use, and with numpy, which sweeps
anti-diagonals (`cycleback.alignment.kernels`).

Shapes: T frames of video a, S frames of video b, D embedding size, L steps of the path.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from cycleback.alignment.band import slanted
from cycleback.alignment.batch import warp_to_many
from cycleback.alignment.ends import fixed_ends
from cycleback.alignment.inputs import Floats, Indices, as_matrix, as_videos
from cycleback.alignment.warp import warp_cost


def dtw_path(cost: ArrayLike, *, band: float | None = None) -> Indices:
    """Cheapest path (L, 2) through `cost` (T, S): pairs of a frame of a and a frame of b, in order.

    Args:
        cost: (T, S), finite.
        band: How far the path may stray from the straight line between the corners, to either side, as a
            share of S; by default as far as it likes.
    """
    matrix = as_matrix("cost", cost, shape="(T, S)")
    allowed = None if band is None else slanted(*matrix.shape, width=band)
    return warp_cost(matrix, ends=fixed_ends(*matrix.shape), band=allowed)[0]


def dtw_to_many(a: ArrayLike, others: Sequence[ArrayLike], *, workers: int | None = None) -> list[Indices]:
    """Paths (L, 2) of `a` (T, D) with each of `others` (S, D), as `dtw_path` of their squared distances.

    Faster than one pair after the other: all distances are one matrix product, all paths one compiled call,
    and several threads share the work where there is much of it.

    Args:
        a: Embeddings (T, D) of one video.
        others: Embeddings (S, D) of each of the others; S may differ.
        workers: Threads; by default one a processor.
    """
    first, *rest = as_videos([a, *others], at_least=2)
    return [path for path, _ in warp_to_many(first, rest, workers=workers)]


def accumulated_cost(cost: ArrayLike) -> Floats:
    """Cost (T, S) of the cheapest path from the first cell of `cost` (T, S) to each cell, both included.

    Cells of one anti-diagonal depend only on the two before it, so each is one numpy operation. In a flat
    array of width S + 1 the cells of an anti-diagonal are S apart, and so are their predecessors.
    """
    matrix = as_matrix("cost", cost, shape="(T, S)")
    num_rows, num_columns = matrix.shape
    width = num_columns + 1
    total = np.full((num_rows + 1, width), np.inf)  # with a border before the first frames
    total[0, 0] = 0
    total[1:, 1:] = matrix
    flat = total.ravel()
    for diagonal in range(num_rows + num_columns - 1):
        first, last = max(0, diagonal - num_columns + 1), min(diagonal, num_rows - 1)  # rows of cost
        start = (first + 1) * width + diagonal - first + 1
        stop = start + (last - first) * num_columns + 1
        both = flat[start - width - 1 : stop - width - 1 : num_columns]
        in_a = flat[start - width : stop - width : num_columns]
        in_b = flat[start - 1 : stop - 1 : num_columns]
        flat[start:stop:num_columns] += np.minimum(np.minimum(both, in_a), in_b)
    return total[1:, 1:]


def dtw_indices(path: ArrayLike, *, num_frames: int | None = None) -> Indices:
    """One frame of b for each frame of a (T,): the middle of those `path` (L, 2) pairs it with, rounded down.

    The frames paired with one frame of a are consecutive, so their middle is their mean and their median; and
    it never runs backwards. Frames before and after the path take the match of its first or last frame.

    Args:
        path: (L, 2), from any frame of a on, without a gap.
        num_frames: T; by default the path reaches the last frame of a.
    """
    rows, columns = as_matrix("path", path, shape="(L, 2)").astype(np.int64).T
    frames = np.clip(np.arange(rows[-1] + 1 if num_frames is None else num_frames), rows[0], rows[-1])
    first = columns[np.searchsorted(rows, frames, side="left")]
    last = columns[np.searchsorted(rows, frames, side="right") - 1]
    middle: Indices = (first + last) // 2
    return middle
