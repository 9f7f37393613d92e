"""Alignment once more, cell by cell and frame by frame, from the definitions."""

import math
from itertools import pairwise, permutations

import numpy as np


def dtw(cost):
    """Total cost and path by recursion over cells; of equals: both, then a, then b."""
    num_rows, num_columns = len(cost), len(cost[0])
    total, came_from = {}, {}
    for i in range(num_rows):
        for j in range(num_columns):
            steps = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
            best = min(steps, key=lambda cell: total.get(cell, math.inf))  # min keeps the first of equals
            total[i, j] = cost[i][j] + (total.get(best, math.inf) if (i, j) != (0, 0) else 0)
            came_from[i, j] = best
    path = [(num_rows - 1, num_columns - 1)]
    while path[-1] != (0, 0):
        path.append(came_from[path[-1]])
    return total[num_rows - 1, num_columns - 1], path[::-1]


def accumulated_cost(cost):
    """Cost (T, S) of the cheapest path from the first cell to each cell, both included."""
    total = np.full((len(cost) + 1, len(cost[0]) + 1), np.inf)
    total[0, 0] = 0
    for i, j in np.ndindex(len(cost), len(cost[0])):
        total[i + 1, j + 1] = cost[i][j] + min(total[i, j], total[i, j + 1], total[i + 1, j])
    return total[1:, 1:]


def nearest(row, others):
    return min(range(len(others)), key=lambda j: float(np.sum((row - others[j]) ** 2)))


def two_way_rate(videos, tolerance):
    home = [
        abs(nearest(v[nearest(row, v)], u) - i) <= tolerance
        for u, v in permutations(videos, 2)
        for i, row in enumerate(u)
    ]
    return sum(home) / len(home)


def three_way_rate(videos, tolerance):
    def lands(i, u, v, w):
        in_v = v[nearest(u[i], v)]
        return abs(nearest(w[nearest(in_v, w)], u) - i) <= tolerance

    home = [
        lands(i, u, v, w) and lands(i, u, w, v) for u, v, w in permutations(videos, 3) for i in range(len(u))
    ]
    return sum(home) / len(home)


def all_paths(shape, start):
    """Every monotone, contiguous path from `start` on, of any length."""
    paths, ways = [], [[start]]
    while ways:
        path = ways.pop()
        paths.append(path)
        i, j = path[-1]
        for cell in ((i + 1, j + 1), (i + 1, j), (i, j + 1)):
            if cell[0] < shape[0] and cell[1] < shape[1]:
                ways.append([*path, cell])
    return paths


def free_price(cost, path, skip_cost):
    """What a path with free ends pays: its frames their distances, the frames left out the skip cost."""
    num_rows, num_columns = len(cost), len(cost[0])
    paid = 2 * cost[path[0][0]][path[0][1]]
    for (i, j), (k, m) in pairwise(path):
        paid += ((k - i) + (m - j)) * cost[k][m]
    left_out = path[0][0] + path[0][1] + num_rows - 1 - path[-1][0] + num_columns - 1 - path[-1][1]
    return paid + skip_cost * left_out


def cheapest_free(cost, skip_cost, *, lead_in_a, lead_in_b, tail_a, tail_b):
    """Least price over all paths whose ends are allowed, by trying them all."""
    num_rows, num_columns = len(cost), len(cost[0])
    starts = [
        (i, j) for i in range(num_rows if lead_in_a else 1) for j in range(num_columns if lead_in_b else 1)
    ]
    return min(
        free_price(cost, path, skip_cost)
        for start in starts
        for path in all_paths((num_rows, num_columns), start)
        if (tail_a or path[-1][0] == num_rows - 1) and (tail_b or path[-1][1] == num_columns - 1)
    )


def barycentre(paths, videos, num_ticks):
    """Mean of all frames that paths (tick, frame) pair with each tick."""
    return np.array(
        [
            np.mean([videos[v][j] for v, path in enumerate(paths) for k, j in path if k == tick], axis=0)
            for tick in range(num_ticks)
        ]
    )
