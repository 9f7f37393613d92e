"""The cheapest path through a matrix of costs, or straight from embeddings in memory that stays small.

`warp_cost` sweeps a matrix whole. `warp_frames` computes squared distances a block of rows at a time and
keeps one byte a cell of its band. `warp_long` finds that band coarse to fine: both videos are halved, by
means of two frames, until the matrix is small; the path through it, with `radius` frames to all sides, is the
band of the next finer level, up to the frames themselves. The result is the cheapest path within the last
band: the cheapest of all unless the coarse videos mislead by more than the radius.

Shapes: T frames of video a, S frames of video b, D embedding size, L steps of the path.
"""

from collections.abc import Callable, Iterable

import numpy as np

from cycleback.alignment.band import Band, around, common, slanted, whole
from cycleback.alignment.distances import pairwise_squared
from cycleback.alignment.ends import Ends
from cycleback.alignment.inputs import Floats, Indices
from cycleback.alignment.kernels import Kernels, Sweep, fastest_kernels

WHOLE_CELLS = 25_000_000  # two videos of 5,000 frames, 200 MB of distances: beyond, callers use `warp_long`
COARSE_CELLS = 1_000_000  # the coarsest level
RADIUS = 64
BLOCK_ROWS = 512

Block = tuple[int, int, Floats]  # first row, first column, costs
Warp = tuple[Indices, float]  # path (L, 2) and its price
EndsOf = Callable[[Floats, Floats], Ends]  # the ends for one level: a (T, D), b (S, D)


def warp_cost(cost: Floats, *, ends: Ends, band: Band | None = None, column: int = 0) -> Warp:
    """Cheapest path through `cost` (T, M), from its column `column` on for as many as `ends` has."""
    band = band or whole(len(ends.enter_a), len(ends.enter_b))
    return swept([(0, -column, cost)], band, ends)


def warp_frames(a: Floats, b: Floats, *, ends: Ends, band: Band) -> Warp:
    """Cheapest path by squared distances of `a` (T, D) and `b` (S, D) within `band`."""

    def blocks() -> Iterable[Block]:
        for row in range(0, len(a), BLOCK_ROWS):
            stop = min(row + BLOCK_ROWS, len(a))
            left, right = int(band.start[row]), int(band.stop[stop - 1])
            if left < right:
                yield row, left, pairwise_squared(a[row:stop], b[left:right])

    return swept(blocks(), band, ends)


def warp_long(
    a: Floats, b: Floats, *, ends_of: EndsOf, width: float | None = None, radius: int = RADIUS
) -> Warp:
    """Path by squared distances of `a` (T, D) and `b` (S, D), coarse to fine.

    Args:
        a: (T, D).
        b: (S, D).
        ends_of: Makes the ends of one level from its two videos.
        width: Of the slanted band; by default the whole matrix.
        radius: Frames by which each level may stray from the one before.
    """
    shape = len(a), len(b)
    allowed = whole(*shape) if width is None else slanted(*shape, width=width)
    if min(shape) > 1 and allowed.cells > max(COARSE_CELLS, 4 * radius * len(a)):
        path, _ = warp_long(halved(a), halved(b), ends_of=ends_of, width=width, radius=radius)
        allowed = common(allowed, around(path, scale=2, radius=radius, shape=shape))
    return warp_frames(a, b, ends=ends_of(a, b), band=allowed)


def halved(video: Floats) -> Floats:
    """Means of two frames each, (N, D) to (N / 2, D) rounded up: an odd last frame stays as it is."""
    pairs = video[: len(video) // 2 * 2].reshape(-1, 2, video.shape[1]).mean(axis=1)
    return np.concatenate([pairs, video[len(pairs) * 2 :]])


def swept(blocks: Iterable[Block], band: Band, ends: Ends, *, kernels: Kernels | None = None) -> Warp:
    """Sweep blocks (first row, first column, costs) in order, then walk back; compiled where possible."""
    widths = band.stop - band.start
    upto = np.cumsum(widths)
    sweep = Sweep(
        start=band.start,
        stop=band.stop,
        offset=upto - widths - band.start,
        total=np.full(len(ends.enter_b) + 1, np.inf),
        best=np.array([np.inf, -1.0, -1.0]),
        steps=np.empty(upto[-1], dtype=np.uint8),
        **ends._asdict(),
    )
    forth, back = kernels or fastest_kernels()
    for row, column, cost in blocks:
        forth(cost, row, column, sweep)
    return back(sweep), float(sweep.best[0])
