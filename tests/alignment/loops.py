"""Alignment once more, cell by cell and frame by frame, from the definitions."""

import math
from itertools import permutations

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
