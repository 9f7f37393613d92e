"""Checks of nearest-neighbour matches that need no labels: walks that come home, and order in time.

Cycles: follow nearest neighbours to other videos and back (paper 3.1). The share of frames that land where
they started is a score. Collapsed embeddings score low, since all frames land on the first. Frames that hold
still score low too, so compare the score between encoders on the same videos.

Order: a video may be matched backwards in time, and its cycles come home all the same. Kendall's tau of the
matches tells. For frames i < j with matches y_i and y_j, a pair of frames is concordant when y_i < y_j,
discordant when y_i > y_j, and tied otherwise. With C, D and n0 = n (n - 1) / 2 pairs of frames in all, tau is

    a        (C - D) / n0
    b        (C - D) / sqrt(n0 (C + D)), as in scipy
    strict   (C - (n0 - C)) / n0, as the paper defines it: every pair that is not concordant is discordant

When all matches are the same frame, a and b are undefined, and strict is -1.

Shapes: n or N frames of a video, T of video a, S of video b, D embedding size; V videos with M frames in all,
P pairs of videos.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment.bounds import price_ends
from cycleback.alignment.distances import Floats, Indices, as_pair, as_videos, pairwise_squared, spread_items
from cycleback.alignment.dtw import match_frames, warp_cost

TauVariant = Literal["a", "b", "strict"]
BACKWARD_TAU = -0.5  # tau-b below this is not disorder, but time reversed
MAX_BACKWARD_SHARE = 0.05  # of the pairs of videos; reports warn above it
MAX_BYTE = 255  # comparisons are counted in bytes, up to so many at once, which is fastest


def cycle_back(a: ArrayLike, b: ArrayLike) -> Indices:
    """Return the frame (T,) of `a` (T, D) that each of its frames lands on via its neighbour in `b` (S, D).

    Frame i is cycle-consistent if it lands on i. Of equally near frames the first is taken.
    """
    distances = pairwise_squared(*as_pair(a, b))  # (T, S)
    landing: Indices = distances.argmin(axis=0)[distances.argmin(axis=1)]
    return landing


def cycle_consistency_rate(
    embeddings: Sequence[ArrayLike], *, tolerance: int = 1, three_way: bool = False
) -> float:
    """Return the share of frames, in [0, 1], that land within `tolerance` of their start.

    Every frame of every ordered pair (or triple) of videos counts the same.

    Args:
        embeddings: (N, D) per video, at least two videos; N may differ.
        tolerance: Frames by which a landing may miss. 0 is the paper's definition.
        three_way: Walk through two other videos instead, U -> V -> W -> U and U -> W -> V -> U; a frame
            counts only if both walks come home. Needs three videos.
    """
    if tolerance < 0:
        raise ValueError(f"tolerance must not be negative, got {tolerance}")
    videos = as_videos(embeddings, min_videos=3 if three_way else 2)
    nearest, starts = _nearest_table(videos), np.cumsum([0, *map(len, videos)])
    walks = _three_way_errors if three_way else _two_way_errors
    home = total = 0
    for errors in walks(nearest, starts):
        home += int(np.count_nonzero(errors <= tolerance))
        total += errors.size
    return home / total


@dataclass(frozen=True)
class MatchOrder:
    """Concordant and discordant pairs of frames, of `pairs` in all; one entry per pair of videos."""

    concordant: Indices
    discordant: Indices
    pairs: NDArray[np.float64]

    @classmethod
    def of(cls, matches: Indices) -> "MatchOrder":
        """Count the order of `matches` (P, n), one row per pair of videos."""
        num_frames = matches.shape[1]
        is_small = matches.max(initial=0) < 2**15
        ranks: NDArray[np.signedinteger[Any]] = matches.T.astype(
            np.int16 if is_small else np.int64, order="C"
        )
        concordant = np.zeros(len(matches), dtype=np.int64)
        for lag in range(1, num_frames):
            is_later = (ranks[lag:] > ranks[:-lag]).view(np.uint8)  # (n - lag, P)
            for start in range(0, len(is_later), MAX_BYTE):
                concordant += is_later[start : start + MAX_BYTE].sum(axis=0, dtype=np.uint8)
        pairs = num_frames * (num_frames - 1) // 2
        discordant = pairs - _count_ties(matches) - concordant
        return cls(concordant, discordant, np.full(len(matches), float(pairs)))

    def taus(self, variant: TauVariant) -> NDArray[np.float64]:
        """Return Kendall's tau of each pair of videos, NaN where undefined."""
        if variant not in get_args(TauVariant):
            raise ValueError(f"variant must be 'a', 'b' or 'strict', got {variant!r}")
        if variant == "strict":
            top, scale = 2 * self.concordant - self.pairs, self.pairs
        else:
            untied = (self.concordant + self.discordant).astype(np.float64)
            top = (self.concordant - self.discordant).astype(np.float64)
            scale = np.sqrt(self.pairs * untied) if variant == "b" else np.where(untied > 0, self.pairs, 0.0)
        taus = np.full(top.shape, np.nan)
        np.divide(top, scale, out=taus, where=scale > 0)
        return taus

    @property
    def is_backward(self) -> NDArray[np.bool_]:
        """True for each pair of videos that is matched backwards in time: tau-b below -0.5."""
        return self.taus("b") < BACKWARD_TAU


def warped_cycle_rate(embeddings: Sequence[ArrayLike], *, max_cycles: int = 60) -> float:
    """Return the share of frames that return to within one frame through two other videos, by warping.

    Nearest neighbours return more easily the fewer dimensions there are. Warps u -> v -> w -> u return only
    if all three pairs are warped alike. Cycles of two are left out: a warp is the same in both directions.

    Args:
        embeddings: (N, D) per video, at least three videos; N may differ.
        max_cycles: at most so many cycles are walked, spread over the videos.
    """
    videos = as_videos(embeddings, min_videos=3)
    cycles = list(permutations(range(len(videos)), 3)) if len(videos) <= 8 else _spread_cycles(len(videos))
    returned = [_walk_warps(videos, cycle) for cycle in spread_items(cycles, max_cycles)]
    return float(np.concatenate(returned).mean())


def _spread_cycles(count: int) -> list[tuple[int, int, int]]:
    """Return cycles of three of `count` videos in which every video has its turn."""
    steps = range(1, count // 2)
    return [(u, (u + step) % count, (u + 2 * step + 1) % count) for step in steps for u in range(count)]


def _walk_warps(videos: Sequence[Floats], cycle: tuple[int, int, int]) -> NDArray[np.bool_]:
    """Return for each frame of the first video of a cycle whether it returns to within one frame: (N,)."""
    start = np.arange(len(videos[cycle[0]]))
    frames = start
    for u, v in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
        cost = pairwise_squared(videos[u], videos[v])
        path, _ = warp_cost(cost, ends=price_ends(*cost.shape))
        frames = match_frames(path)[frames]
    is_near: NDArray[np.bool_] = np.abs(frames - start) <= 1
    return is_near


def backward_share(embeddings: Sequence[ArrayLike]) -> float:
    """Return the share of ordered pairs of videos whose nearest neighbours run backwards in time.

    `embeddings` are (N, D) per video, at least two videos; N may differ.
    """
    videos = as_videos(embeddings, min_videos=2)
    nearest, starts = _nearest_table(videos), np.cumsum([0, *map(len, videos)])
    by_length: dict[int, list[Indices]] = {}  # videos of one length are counted together
    for u, video in enumerate(videos):
        others = np.delete(nearest[:, starts[u] : starts[u + 1]], u, axis=0)  # (V - 1, N)
        by_length.setdefault(len(video), []).append(others)
    orders = [MatchOrder.of(np.concatenate(matches)) for matches in by_length.values()]
    backward = sum(int(np.count_nonzero(order.is_backward)) for order in orders)
    return backward / (len(videos) * (len(videos) - 1))


def _count_ties(matches: Indices) -> Indices:
    """Count for each row of `matches` (P, n) the frames i < j with y_i = y_j."""
    ordered = np.sort(matches, axis=1)
    ties = np.zeros(len(matches), dtype=np.int64)
    run = np.zeros(len(matches), dtype=np.int64)  # equals just before this frame
    for column in range(1, ordered.shape[1]):
        run = np.where(ordered[:, column] == ordered[:, column - 1], run + 1, 0)
        ties += run
    return ties


def _nearest_table(videos: Sequence[Floats]) -> Indices:
    """Return a table (V, M): the nearest frame in each video of every frame of all videos, laid end to end.

    Columns and entries are frame numbers over all videos, so a walk is a chain of look-ups. One distance
    matrix serves both directions of a pair.
    """
    starts = np.cumsum([0, *map(len, videos)])
    table = np.tile(np.arange(starts[-1]), (len(videos), 1))
    for i in range(len(videos)):
        for j in range(i):
            distances = pairwise_squared(videos[i], videos[j])
            table[j, starts[i] : starts[i + 1]] = starts[j] + distances.argmin(axis=1)
            table[i, starts[j] : starts[j + 1]] = starts[i] + distances.argmin(axis=0)
    return table


def _two_way_errors(nearest: Indices, starts: Indices) -> Iterator[Indices]:
    """Yield for each video U by how many frames U -> V -> U misses: (V - 1, N)."""
    for u in range(len(nearest)):
        frames = np.arange(starts[u], starts[u + 1])  # (N,)
        others = np.delete(nearest[:, frames], u, axis=0)  # (V - 1, N)
        yield np.abs(nearest[u][others] - frames)


def _three_way_errors(nearest: Indices, starts: Indices) -> Iterator[Indices]:
    """Yield for each U and V the larger miss of U -> V -> W -> U and U -> W -> V -> U: (V - 2, N)."""
    for u in range(len(nearest)):
        frames = np.arange(starts[u], starts[u + 1])  # (N,)
        for v in range(len(nearest)):
            if v != u:
                forth = nearest[u][nearest[:, nearest[v, frames]]]  # (V, N), u -> v -> w -> u
                back = nearest[u][nearest[v][nearest[:, frames]]]  # (V, N), u -> w -> v -> u
                errors = np.maximum(np.abs(forth - frames), np.abs(back - frames))
                yield np.delete(errors, (u, v), axis=0)
