"""One video against many at once: one matrix product for the distances, one compiled call for the paths.

Paths and costs are those of `cycleback.alignment.warp`, to which it turns where numba is not installed.

Shapes: T frames of video a, S frames of another video, M of all others together, P pairs, D embedding size.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from cycleback.alignment.distances import pairwise_squared
from cycleback.alignment.ends import fixed_ends
from cycleback.alignment.inputs import Floats, Indices
from cycleback.alignment.kernels import compiled
from cycleback.alignment.warp import Warp, warp_cost

BATCH_CELLS = 2_000_000  # of distances at once: 16 MB


def warp_to_many(a: Floats, others: Sequence[Floats], *, workers: int | None = None) -> list[Warp]:
    """Path and cost of `a` (T, D) with each of `others` (S, D), both ends fixed; one thread a processor."""
    batches = [others[part] for part in _parts([len(a) * len(other) for other in others])]
    if len(batches) == 1:
        return _warp_batch(a, batches[0])
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        return [warp for warps in pool.map(lambda batch: _warp_batch(a, batch), batches) for warp in warps]


def paths_cells(cost: Floats, bounds: Indices, paths: Indices, prices: Floats) -> Indices:
    """Cheapest paths through columns bounds[p] to bounds[p + 1] - 1 of `cost` (T, M), for each p.

    The sums and their order are those of `sweep_cells` with fixed ends and no band.

    Args:
        cost: (T, M), one matrix (T, S) beside the other.
        bounds: (P + 1,), first column of each, and M.
        paths: (P T + M, 2), of which T + S rows belong to each p; its path is written to the last of them.
        prices: (P,), filled with the cost of each.

    Returns:
        (P,), first row of each path in `paths`.
    """
    num_rows, starts = cost.shape[0], np.empty(len(prices), dtype=np.int64)
    for p in range(len(prices)):
        costs, num_columns = cost[:, bounds[p] : bounds[p + 1]], bounds[p + 1] - bounds[p]
        steps = np.empty((num_rows, num_columns), dtype=np.uint8)
        total = np.full(num_columns, np.inf)
        for i in range(num_rows):
            both, in_b = 0.0 if i == 0 else np.inf, np.inf
            for j in range(num_columns):
                in_a = total[j]
                least, step = both, 0
                if in_a < least:
                    least, step = in_a, 1
                if in_b < least:
                    least, step = in_b, 2
                both, in_b = in_a, costs[i, j] + least
                total[j], steps[i, j] = in_b, step
        prices[p] = in_b
        i, j, position = num_rows - 1, num_columns - 1, (p + 1) * num_rows + bounds[p + 1]
        while i >= 0 and j >= 0:
            position -= 1
            paths[position, 0], paths[position, 1] = i, j
            step = steps[i, j]
            if step != 2:
                i -= 1
            if step != 1:
                j -= 1
        starts[p] = position
    return starts


def _warp_batch(a: Floats, others: Sequence[Floats]) -> list[Warp]:
    cost = pairwise_squared(a, np.concatenate(others))  # (T, M)
    bounds = np.cumsum([0, *map(len, others)])  # (P + 1,)
    kernel = compiled(paths_cells)
    if kernel is None:
        return [
            warp_cost(cost, ends=fixed_ends(len(a), len(other)), column=int(column))
            for column, other in zip(bounds[:-1], others, strict=True)
        ]
    prices, paths = np.empty(len(others)), np.empty((len(others) * len(a) + len(cost[0]), 2), np.int64)
    starts = kernel(cost, bounds, paths, prices).tolist()
    ends = (bounds[1:] + len(a) * np.arange(1, len(bounds))).tolist()
    return [
        (paths[start:end], price) for start, end, price in zip(starts, ends, prices.tolist(), strict=True)
    ]


def _parts(cells: Sequence[int]) -> list[slice]:
    """Consecutive stretches of at most BATCH_CELLS, or of one video."""
    starts, held = [0], 0
    for position, count in enumerate(cells):
        if held and held + count > BATCH_CELLS:
            starts.append(position)
            held = 0
        held += count
    return [slice(i, j) for i, j in zip(starts, [*starts[1:], len(cells)], strict=True)]
