"""Order metrics from nearest frames: Kendall's tau, and cycle-consistency rates.

Kendall's tau asks whether the frames of one video find the frames of another in the same order (paper 4.1);
its three variants are defined in `cycleback.alignment.cycles`, and so are cycles. Both metrics are computed
per pair of videos from one table of nearest frames, so that videos can be resampled.

Shapes: N frames of a video, D embedding size, V videos.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment.cycles import MatchOrder, TauVariant, cycle_consistency_rate
from cycleback.evaluation.neighbors import Floats, NearestTable, nearest_table

Undefined = Literal["zero", "drop"]
MAX_THREE_WAY_VIDEOS = 20  # their 6,840 ordered triples take seconds; those of 100 videos would take minutes


@dataclass(frozen=True)
class MeanTau:
    """Mean tau over ordered pairs; `value` is None where there is no pair to count.

    `table` (V, V) holds tau per pair: NaN on the diagonal and where undefined pairs are dropped.
    """

    value: float | None
    pairs: int
    undefined: int
    table: NDArray[np.float64] = field(compare=False, repr=False, default_factory=lambda: np.empty((0, 0)))


def mean_tau(
    embeddings: Sequence[Floats], *, variant: TauVariant = "b", undefined: Undefined = "zero"
) -> MeanTau:
    """Return the mean tau over all ordered pairs of different videos.

    Args:
        embeddings: (N, D) per video.
        variant: "a", "b" or "strict".
        undefined: "zero" counts a collapsed pair as 0; "drop" leaves it out, as the authors' program does.
    """
    if undefined not in get_args(Undefined):
        raise ValueError(f"undefined must be 'zero' or 'drop', got {undefined!r}")
    if len(embeddings) < 2:
        return MeanTau(None, 0, 0)
    return average_pairs(pair_taus(embeddings, variant=variant), undefined)


def average_pairs(table: NDArray[np.float64], undefined: Undefined = "zero") -> MeanTau:
    """Average `table` (V, V) of taus without its diagonal, and count the undefined ones."""
    pairs = ~np.eye(len(table), dtype=bool)
    lost = int(np.isnan(table[pairs]).sum())
    counted = np.where(pairs, np.nan_to_num(table) if undefined == "zero" else table, np.nan)
    known = counted[~np.isnan(counted)]
    return MeanTau(float(known.mean()) if len(known) else None, int(pairs.sum()), lost, counted)


def pair_taus(embeddings: Sequence[Floats], *, variant: TauVariant = "b") -> NDArray[np.float64]:
    """Return tau (V, V) of query (row) and reference (column), NaN where undefined; ignore the diagonal."""
    return pair_orders(nearest_table(embeddings)).taus(variant)


def pair_orders(nearest: NearestTable) -> MatchOrder:
    """Count the order (V, V) of the matches of every query (row) in every reference (column)."""
    lengths, starts = np.diff(nearest.starts), nearest.starts
    counts = np.empty((2, len(lengths), len(lengths)), dtype=np.int64)
    for length in np.unique(lengths):  # videos of one length are counted together
        videos = np.flatnonzero(lengths == length)
        matches = nearest.frames[:, starts[videos][:, None] + np.arange(length)]  # (V, videos, length)
        order = MatchOrder.of(matches.reshape(-1, length))
        both = np.stack([order.concordant, order.discordant])
        counts[:, videos] = both.reshape(2, len(lengths), len(videos)).transpose(0, 2, 1)
    pairs = np.broadcast_to((lengths * (lengths - 1) / 2)[:, None], counts.shape[1:])
    return MatchOrder(counts[0], counts[1], pairs)


@dataclass(frozen=True)
class CycleTable:
    """Frames of the row's video that come home by way of the column's video, (V, V), of `total` frames."""

    home: NDArray[np.int64]
    total: NDArray[np.int64]

    @property
    def rate(self) -> float | None:
        """Share over all ordered pairs; None for one video."""
        total = int(self.total.sum())
        return int(self.home.sum()) / total if total else None


def count_cycles(nearest: NearestTable, *, tolerance: int = 1) -> CycleTable:
    """Count the frames that land within `tolerance` of their start, per ordered pair of videos."""
    lengths, starts = np.diff(nearest.starts), nearest.starts
    home = np.zeros((len(lengths), len(lengths)), dtype=np.int64)
    for video, length in enumerate(lengths):
        frames = np.arange(length)  # (N,)
        away = nearest.frames[:, starts[video] + frames]  # (V, N)
        landing = nearest.frames[video][starts[:-1, None] + away]  # (V, N)
        home[video] = (np.abs(landing - frames) <= tolerance).sum(axis=1)
    np.fill_diagonal(home, 0)
    total = np.where(np.eye(len(lengths), dtype=bool), 0, lengths[:, None])
    return CycleTable(home, total)


def three_way_rate(
    embeddings: Sequence[Floats], *, max_videos: int = MAX_THREE_WAY_VIDEOS, seed: int = 0
) -> tuple[float | None, int]:
    """Return the three-way rate of at most `max_videos` videos, drawn at random, and how many were used."""
    if len(embeddings) < 3:
        return None, 0
    chosen = np.arange(len(embeddings))
    if len(chosen) > max_videos:
        chosen = np.sort(np.random.default_rng(seed).choice(len(chosen), max_videos, replace=False))
    return cycle_consistency_rate([embeddings[int(video)] for video in chosen], three_way=True), len(chosen)
