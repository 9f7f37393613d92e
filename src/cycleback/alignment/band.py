"""Bands: the columns of each row that a warping path may visit.

Shapes: T frames of video a, S frames of video b, L steps of a path.
"""

import math
from typing import NamedTuple

import numpy as np

from cycleback.alignment.inputs import Indices


class Band(NamedTuple):
    """Columns `start` to `stop - 1` of each row; neither ever falls, and a row may have none."""

    start: Indices  # (T,)
    stop: Indices  # (T,)

    @property
    def cells(self) -> int:
        """Cells of all rows together."""
        return int((self.stop - self.start).sum())


def whole(num_rows: int, num_columns: int) -> Band:
    """Every column of every row."""
    return Band(np.zeros(num_rows, np.int64), np.full(num_rows, num_columns, np.int64))


def slanted(num_rows: int, num_columns: int, *, width: float) -> Band:
    """Sakoe and Chiba's band along the straight line from both first to both last frames.

    Args:
        num_rows: T.
        num_columns: S.
        width: How far a path may stray to either side of the line, as a share of the length of b: in (0, 1].
    """
    if not 0 < width <= 1:
        raise ValueError(f"band must be a share of the length, above 0 and at most 1, got {width}")
    if num_rows == 1 or num_columns == 1:
        return whole(num_rows, num_columns)
    slope = (num_columns - 1) / (num_rows - 1)
    line = np.arange(num_rows) * slope
    start = np.maximum(np.ceil(line - width * num_columns), 0).astype(np.int64)
    stop = np.minimum(np.floor(line + width * num_columns) + 1, num_columns).astype(np.int64)
    if (start >= stop).any() or (start[1:] > stop[:-1]).any():
        least = math.ceil(1e4 * max(slope, 1) / 2 / num_columns) / 1e4  # from here on, next rows always touch
        raise ValueError(
            f"band {width} leaves no path through {num_rows} x {num_columns} frames: use at least {least:g}"
        )
    return Band(start, stop)


def around(path: Indices, *, scale: int, radius: int, shape: tuple[int, int]) -> Band:
    """All cells within `radius` rows and columns of `path` (L, 2), which was found `scale` times coarser."""
    num_rows, num_columns = shape
    rows, columns = path.T
    frames = np.arange(num_rows)
    first = np.searchsorted(rows, -((radius + scale - 1 - frames) // scale), side="left")
    last = np.searchsorted(rows, (frames + radius) // scale, side="right") - 1
    before, after = last < 0, first == len(path)  # rows out of reach of the path
    start = np.maximum(columns[np.minimum(first, len(path) - 1)] * scale - radius, 0)
    stop = np.minimum((columns[np.maximum(last, 0)] + 1) * scale + radius, num_columns)
    return Band(np.where(after, stop, start), np.where(before, start, stop))


def common(one: Band, other: Band) -> Band:
    """The cells of both."""
    start = np.maximum(one.start, other.start)
    return Band(start, np.maximum(np.minimum(one.stop, other.stop), start))
