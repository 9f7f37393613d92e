"""Where the match of each frame may lie: probabilities over all warps, not only the cheapest one.

A warp gives frame i of video a the frame j_i of video b, and j never falls. It may begin and end anywhere in
b. Its probability is

    p(warp) ~ prod_i fit(i, j_i) x prod_i exp(-(j_i - j_{i-1}) / (2 pace + 1))
    fit(i, j) = 0.98 exp(-(e(i, j) - min_j e(i, j)) / u) + 0.02
    e(i, j)   = d(i, j) - min_i d(i, j) / 2

    e      the excess: a frame of b that is far from every frame of a is only half held against them
    u      the temperature: half the median distance to a nearest frame, which is the size of differences
           that mean nothing between these two videos
    pace   frames of b per frame of a, between constant speed and one to one: jumps are improbable

Where b shows nothing like a, u is large and all warps are alike; what is left is what order alone tells. The
0.02 keeps one odd frame from ruling out a warp. Sums over all warps that pass a cell, forwards and backwards
(Rabiner, 1989), give the probability that frame i matches frame j.

Long videos are thinned to 128 frames each, so the cost is bounded.

Shapes: T frames of video a, S frames of video b, R and C of them that are looked at, M matches.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cycleback.alignment.bounds import Band
from cycleback.alignment.distances import Floats, Indices, spread_frames

MAX_FRAMES = 128  # looked at per video
HEAT = 0.5  # temperature, in median distances to a nearest frame
OUTLIERS = 0.02  # share of frames that may be unlike their match
EXACT = 1e-12  # the same where frames of the two videos are equal

Measure = Callable[[Indices, Indices], Floats]  # distances (R, C) between frames of a and of b


@dataclass(frozen=True, eq=False)
class Posterior:
    """The probability (R, C) that frame `rows` (R,) of a matches frame `columns` (C,) of b.

    Rows sum to 1, or to 0 where the two videos rule out every warp.
    """

    rows: Indices
    columns: Indices
    shares: Floats

    def sum_near(self, frames: Indices, positions: Floats | Indices, reach: float) -> Floats:
        """Return the probability (M,) that the matches of `frames` lie within `reach` of `positions` (M,)."""
        upto = np.concatenate([np.zeros((len(self.rows), 1)), np.cumsum(self.shares, axis=1)], axis=1)
        middles = (self.columns[1:] + self.columns[:-1]) / 2
        edges = np.concatenate([[self.columns[0] - 0.5], middles, [self.columns[-1] + 0.5]])  # (C + 1,)
        nearest = np.searchsorted((self.rows[1:] + self.rows[:-1]) / 2, frames)
        near = np.empty(len(frames))
        whole = np.floor(reach)  # a match that is off by exactly the reach is still near
        for row in np.unique(nearest):
            own = nearest == row
            below, above = positions[own] - whole - 0.5, positions[own] + whole + 0.5
            near[own] = np.interp(above, edges, upto[row]) - np.interp(below, edges, upto[row])
        return np.clip(near, 0.0, 1.0)


def find_posterior(measure: Measure, shape: tuple[int, ...], *, within: Band | None = None) -> Posterior:
    """Return where the matches of a in b may lie.

    Args:
        measure: returns the squared distances (R, C) between the named frames of a and of b.
        shape: T and S.
        within: the frames of b that each frame of a may match, if not all.
    """
    rows, columns = (spread_frames(length, MAX_FRAMES) for length in shape)
    if within is not None:
        changes = np.flatnonzero(np.diff(within.start) | np.diff(within.stop))
        rows = np.union1d(rows, [*changes, *(changes + 1)]).astype(np.int64)
        columns = np.union1d(columns, np.concatenate([within.start, within.stop - 1]).clip(0, shape[1] - 1))
    distances = measure(rows, columns)
    if within is None:
        allowed = np.ones(distances.shape, dtype=bool)
    else:
        allowed = (columns >= within.start[rows, None]) & (columns < within.stop[rows, None])
    possible = np.where(allowed, distances, np.inf)
    unit = HEAT * float(np.median(possible.min(axis=1)))
    nearest = possible.min(axis=0)  # (C,), infinite where a pin leaves no frame of a for a frame of b
    excess = possible - np.where(np.isfinite(nearest), nearest, 0) / 2
    least = excess.min(axis=1, keepdims=True)
    if (excess <= least)[allowed].all():  # nothing tells the moments of b apart
        return Posterior(rows, columns, np.zeros(distances.shape))
    floor = OUTLIERS if unit > 0 else EXACT
    with np.errstate(over="ignore", invalid="ignore"):
        fit = np.exp(-((excess - least) / max(unit, np.finfo(np.float64).tiny)))
    fit = np.where(allowed, (1 - floor) * fit + floor, 0.0)
    usual = (shape[1] - 1) / max(shape[0] - 1, 1)  # frames of b per frame of a, at constant speed
    stretch = (len(columns) - 1) / max(shape[1] - 1, 1) * max(shape[0] - 1, 1) / max(len(rows) - 1, 1)
    return Posterior(rows, columns, _sum_warps(fit, pace=stretch * usual**0.5))


def _sum_warps(fit: Floats, *, pace: float) -> Floats:
    """Return the share (R, C) of all warps that pass each cell, weighted by `fit` (R, C) and their pace."""
    steps = np.arange(fit.shape[1])
    ahead = steps[None, :] - steps[:, None]
    move = np.where(ahead >= 0, np.exp(-np.abs(ahead) / (2 * pace + 1)), 0.0)  # (C, C), to later columns
    both = np.stack([fit, fit[::-1, ::-1]], axis=1)  # (R, 2, C): forwards, and from the end backwards
    entered = np.empty_like(both)
    state = np.ones(both.shape[1:])
    for row, here in enumerate(both):
        if row:
            state = state @ move
        state /= state.sum(axis=1, keepdims=True)
        entered[row] = state
        state = state * here
    shares: Floats = entered[:, 0] * fit * entered[::-1, 1, ::-1]
    total = shares.sum(axis=1, keepdims=True)
    np.divide(shares, total, out=shares, where=total > 0)  # where no warp is left, all are 0 already
    return shares
