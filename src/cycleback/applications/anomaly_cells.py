"""Compare takes cell by cell at aligned moments: the streams of `cycleback.embeddings.cells`.

A frame of a take is compared with the frames of good takes that show the same moment. The distance of a cell
is that to the nearest cell around the same place; in a reversed stream, it is the distance of a cell of the
good take to the take, which tells what is missing. Each cell has its own mean and spread at each moment of
the action. The score of a frame is that of its most unusual cell, or the mean of all cells.

Shapes: N frames of a take, M of a good take, K good takes, G cells, V size of the vector of a cell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Cells = NDArray[np.float32]

NEAREST = 3  # good takes that a frame is compared with: it need not be like any single one
MOMENTS = 20  # parts of the action with their own expected distance
OWN_SHARE = 0.5  # of a moment in its expectation; the rest is the mean: few takes give noisy estimates
CELL_SHARE = 0.85  # of a cell at a moment in its expectation
MIN_SPREAD = 0.3  # of a cell, as a share of that of all
SMOOTHING = 5  # frames
OFFSETS = (-2, 0, 2)  # frames around the matched one that are compared, too
TAIL, TAIL_DEVIATIONS = 0.95, 1.645  # so many deviations above the middle lies this share of a normal curve


@dataclass(frozen=True)
class Way:
    """How the cells of a stream are compared."""

    reach: int  # cells to each side that count as the same place
    is_reversed: bool = False  # look for the cells of good takes in the take
    takes_mean: bool = False  # of all cells; else the most unusual one


WAYS: Mapping[str, Way] = {
    "appearance": Way(reach=1),
    "change": Way(reach=1, is_reversed=True, takes_mean=True),
    "motion": Way(reach=1),
    "pose": Way(reach=0, takes_mean=True),
}


@dataclass(frozen=True, eq=False)
class MomentSpread:
    """The mean and the spread of values of good takes at each moment of the action."""

    mean: Floats  # (MOMENTS, ...)
    deviation: Floats  # (MOMENTS, ...)

    @classmethod
    def fit(cls, values: Floats, progress: Floats, *, own_share: float) -> Self:
        """Estimate from values (sum N, ...) at `progress` (sum N,), drawn towards the mean of all."""
        away = (progress - moment_centres()[:, None]) / (1.5 / MOMENTS)  # (MOMENTS, sum N)
        weights = np.exp(-0.5 * away**2) + 1e-12
        weights /= weights.sum(axis=1, keepdims=True)
        flat = values.reshape(len(values), -1)
        mean = weights @ flat
        deviation = np.sqrt(np.maximum(weights @ flat**2 - mean**2, 0))
        whole = float(flat.std()) or 1e-6
        mean = own_share * mean + (1 - own_share) * flat.mean()
        deviation = np.maximum(own_share * deviation + (1 - own_share) * whole, MIN_SPREAD * whole)
        shape = (MOMENTS, *values.shape[1:])
        return cls(mean.reshape(shape), deviation.reshape(shape))

    def standardize(self, values: Floats, progress: Floats) -> Floats:
        """Return how many deviations values (N, ...) at `progress` (N,) lie above the mean."""
        moment = np.clip((progress * MOMENTS).astype(int), 0, MOMENTS - 1)
        result: Floats = (values - self.mean[moment]) / self.deviation[moment]
        return result


@dataclass(frozen=True, eq=False)
class CellSpread:
    """What is usual in a stream: turns distances of cells into a score per frame."""

    way: Way
    cells: MomentSpread  # of the roots of distances
    frames: MomentSpread  # of the pooled cells
    tail: tuple[float, float]  # middle of the scores of good takes, and their TAIL

    @classmethod
    def fit(cls, way: Way, distances: Sequence[Floats], progress: Sequence[Floats]) -> Self:
        """Learn from the distances (N, G) of good takes to the others, at `progress` (N,)."""
        everywhere = np.concatenate(progress)
        cells = MomentSpread.fit(np.sqrt(np.concatenate(distances)), everywhere, own_share=CELL_SHARE)
        pooled = [
            _pool(way, cells.standardize(np.sqrt(d), p)) for d, p in zip(distances, progress, strict=True)
        ]
        frames = MomentSpread.fit(np.concatenate(pooled), everywhere, own_share=OWN_SHARE)
        return cls(way, cells, frames, find_tail(frames.standardize(np.concatenate(pooled), everywhere)))

    def score(self, distances: Floats, progress: Floats) -> Floats:
        """Score a take (N,) by the distances (N, G) of its cells."""
        pooled = _pool(self.way, self.cells.standardize(np.sqrt(distances), progress))
        return scale_tail(self.frames.standardize(pooled, progress), self.tail)


@dataclass(frozen=True, eq=False)
class CellView:
    """The good takes in one stream."""

    stream: str
    takes: tuple[Cells, ...]  # K arrays (N, G, V)
    spread: CellSpread
    own_scores: tuple[Floats, ...]  # K arrays (N,), of each good take by what is usual in the others

    @classmethod
    def fit(
        cls,
        stream: str,
        takes: tuple[Cells, ...],
        *,
        matches: Sequence[NDArray[np.int64]],
        progress: Sequence[Floats],
    ) -> Self:
        """Compare each good take with the others.

        Args:
            takes: K arrays (N, G, V).
            matches: K arrays (K - 1, N), the frame of each other take that goes with each frame.
            progress: K arrays (N,), where in the action each frame is.
        """
        way = WAYS[stream]
        distances = [
            compare_cells(take, takes[:k] + takes[k + 1 :], matches[k], way=way)
            for k, take in enumerate(takes)
        ]
        scores = []
        for k in range(len(takes)):
            others = [number for number in range(len(takes)) if number != k]
            usual = CellSpread.fit(way, [distances[n] for n in others], [progress[n] for n in others])
            scores.append(usual.score(distances[k], progress[k]))
        return cls(stream, takes, CellSpread.fit(way, distances, progress), tuple(scores))

    def score(self, take: Cells, matches: NDArray[np.int64], progress: Floats) -> Floats:
        """Score a take (N, G, V), whose frames go with the frames `matches` (K, N) of the good takes."""
        distances = compare_cells(take, self.takes, matches, way=self.spread.way)
        return self.spread.score(distances, progress)


def compare_cells(take: Cells, others: Sequence[Cells], matches: NDArray[np.int64], *, way: Way) -> Floats:
    """Return the mean distance (N, G) of the cells of a take to those of its nearest good takes."""
    penalty = _bar_distant_cells(take.shape[1], way.reach)
    along = [_compare_pair(take, other, m, penalty, way) for other, m in zip(others, matches, strict=True)]
    nearest: Floats = np.sort(along, axis=0)[:NEAREST].mean(axis=0, dtype=np.float64)
    return nearest


def _compare_pair(take: Cells, other: Cells, matches: NDArray[np.int64], penalty: Cells, way: Way) -> Cells:
    """Return the distance (N, G) of each cell to the nearest one around its place, at about its moment."""
    own, theirs = (take**2).sum(axis=2), (other**2).sum(axis=2)
    least = np.full(own.shape, np.inf, dtype=np.float32)
    for offset in OFFSETS:
        frames = np.clip(matches + offset, 0, len(other) - 1)
        squared = take @ other[frames].swapaxes(1, 2)  # (N, G, G)
        squared *= -2
        squared += own[:, :, None]
        squared += theirs[frames][:, None]
        squared += penalty
        np.minimum(least, squared.min(axis=1 if way.is_reversed else 2), out=least)
    return np.maximum(least, 0)


def _bar_distant_cells(count: int, reach: int) -> Cells:
    """Return what is added to the distance of two cells (G, G): nothing if they are near, else very much."""
    side = isqrt(count)
    places = np.stack(np.divmod(np.arange(count), side if side * side == count else count), axis=1)
    steps = np.abs(places[:, None] - places).max(axis=2)
    return np.where(steps <= reach, 0, 1e9).astype(np.float32)


def _pool(way: Way, scores: Floats) -> Floats:
    """Pool the smoothed scores (N, G) of the cells of a frame: (N,)."""
    smooth = running_mean(scores, window=SMOOTHING)
    pooled: Floats = smooth.mean(axis=1) if way.takes_mean else smooth.max(axis=1)
    return pooled


def find_tail(scores: Floats) -> tuple[float, float]:
    """Return the middle of scores (N,) and their TAIL."""
    middle, high = np.quantile(scores, [0.5, TAIL])
    return float(middle), max(float(high), float(middle) + 1e-6)


def scale_tail(scores: Floats, tail: tuple[float, float]) -> Floats:
    """Scale scores (N,) so that streams are comparable where it counts, far above the middle."""
    middle, high = tail
    return (scores - middle) * (TAIL_DEVIATIONS / (high - middle))


def combine_streams(scores: Sequence[Floats]) -> Floats:
    """Pool the scores (N,) of all streams and smooth them over time.

    The root mean square of logarithms: what several streams show counts for more than what one shows, and no
    stream with a long tail outweighs the others.
    """
    logs = np.log1p(np.maximum(scores, 0))
    pooled = np.expm1(np.sqrt((logs**2).mean(axis=0)))
    highest = np.max(scores, axis=0)
    return running_mean(np.where(highest > 0, pooled, highest), window=SMOOTHING)


def running_mean(curve: Floats, *, window: int) -> Floats:
    """Average `curve` (N, ...) over an odd number of frames around each; the ends hold their value."""
    reach = window // 2
    padded = np.pad(curve, [(reach, reach), *[(0, 0)] * (curve.ndim - 1)], mode="edge")
    total: Floats = np.zeros(curve.shape)
    for offset in range(window):
        total += padded[offset : offset + len(curve)]
    return total / window


def moment_centres() -> Floats:
    """Progress (MOMENTS,) at the middle of each moment."""
    return (np.arange(MOMENTS) + 0.5) / MOMENTS
