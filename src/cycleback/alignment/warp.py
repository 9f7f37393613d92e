"""Warping straight from embeddings: one video against many, and videos of any length in little memory.

`warp_to_many` computes the distances to several videos in one matrix product and shares the work between
threads. `warp_long` never holds all distances: it finds a band coarse to fine. Both videos are halved, by
means of two frames, until the matrix is small. The path through it, widened by `radius` frames, is the band
of the next finer level, up to the frames themselves. The result is the cheapest path within the last band. It
is the cheapest of all unless the coarse videos mislead by more than the radius.

Shapes: T frames of video a, S frames of video b, M frames of several videos, D embedding size, L path steps.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike

from cycleback.alignment.bounds import (
    Band,
    Ends,
    band_around,
    intersect,
    price_ends,
    slanted_band,
    whole_band,
)
from cycleback.alignment.distances import Floats, Indices, as_videos, pairwise_squared
from cycleback.alignment.dtw import Block, Warp, warp_blocks, warp_cost

BATCH_CELLS = 2_000_000  # distances computed at once: 16 MB
COARSE_CELLS = 1_000_000  # size of the coarsest level
RADIUS = 64
BLOCK_ROWS = 512

EndsOf = Callable[[Floats, Floats], Ends]  # the ends for one level: a (T, D), b (S, D)


def dtw_to_many(a: ArrayLike, others: Sequence[ArrayLike]) -> list[Indices]:
    """Return the paths (L, 2) of `a` (T, D) with each of `others` (S, D), by their squared distances.

    The paths equal those of `dtw_path`, in less time. S may differ.
    """
    first, *rest = as_videos([a, *others], min_videos=2)
    return [path for path, _ in warp_to_many(first, rest)]


def warp_to_many(a: Floats, others: Sequence[Floats]) -> list[Warp]:
    """Return path and cost of `a` (T, D) with each of `others` (S, D), with fixed ends."""
    batches: list[list[Floats]] = [[]]
    for other in others:
        if batches[-1] and len(a) * (sum(map(len, batches[-1])) + len(other)) > BATCH_CELLS:
            batches.append([])
        batches[-1].append(other)
    if len(batches) == 1:
        return _warp_batch(a, batches[0])
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return [warp for warps in pool.map(lambda batch: _warp_batch(a, batch), batches) for warp in warps]


def _warp_batch(a: Floats, others: Sequence[Floats]) -> list[Warp]:
    cost = pairwise_squared(a, np.concatenate(others))  # (T, M)
    lengths = [len(other) for other in others]
    limits = {n: (price_ends(len(a), n), whole_band(len(a), n)) for n in set(lengths)}
    warps, column = [], 0
    for length in lengths:
        ends, band = limits[length]
        warps.append(warp_cost(cost, ends=ends, band=band, column=column))
        column += length
    return warps


def warp_long(
    a: Floats, b: Floats, *, ends_of: EndsOf, width: float | None = None, radius: int = RADIUS
) -> Warp:
    """Return path and price by squared distances of `a` (T, D) and `b` (S, D), coarse to fine.

    Args:
        ends_of: Makes the ends of one level from its two videos.
        width: Of the slanted band; by default the whole matrix.
        radius: Frames by which each level may stray from the one before.
    """
    shape = len(a), len(b)
    allowed = whole_band(*shape) if width is None else slanted_band(*shape, width=width)
    if min(shape) > 1 and allowed.cells > max(COARSE_CELLS, 4 * radius * len(a)):
        path, _ = warp_long(halve(a), halve(b), ends_of=ends_of, width=width, radius=radius)
        allowed = intersect(allowed, band_around(path, scale=2, radius=radius, shape=shape))
    return warp_frames(a, b, ends=ends_of(a, b), band=allowed)


def warp_frames(a: Floats, b: Floats, *, ends: Ends, band: Band) -> Warp:
    """Return the cheapest path by squared distances of `a` (T, D) and `b` (S, D) within `band`."""

    def blocks() -> Iterable[Block]:
        for row in range(0, len(a), BLOCK_ROWS):
            stop = min(row + BLOCK_ROWS, len(a))
            left, right = int(band.start[row]), int(band.stop[stop - 1])
            if left < right:
                yield row, left, pairwise_squared(a[row:stop], b[left:right])

    return warp_blocks(blocks(), band, ends)


def halve(video: Floats) -> Floats:
    """Return means of two frames each, (N, D) to (N / 2, D) rounded up; an odd last frame is kept."""
    pairs = video[: len(video) // 2 * 2].reshape(-1, 2, video.shape[1]).mean(axis=1)
    return np.concatenate([pairs, video[len(pairs) * 2 :]])
