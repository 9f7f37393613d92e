"""Cycle-consistency rates for a report: two ways for all pairs of videos, three ways for some.

`cycleback.alignment.cycle_consistency_rate` has the definitions. Here the two-way rate comes from nearest
frames that are known already, pair by pair, so that videos can be resampled.

Shapes: V videos, N frames of a video, D embedding size.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import cycle_consistency_rate
from cycleback.evaluation.neighbors import Floats, NearestTable

MOST_THREE_WAY = 20  # videos; their 6,840 ordered triples take seconds, those of 100 would take minutes


@dataclass(frozen=True)
class CycleTable:
    """Frames of the row's video that come home by way of the column's, (V, V), of so many."""

    home: NDArray[np.int64]
    total: NDArray[np.int64]

    @property
    def rate(self) -> float | None:
        """Share over all ordered pairs; None for one video."""
        total = int(self.total.sum())
        return int(self.home.sum()) / total if total else None


def cycle_table(nearest: NearestTable, *, tolerance: int = 1) -> CycleTable:
    """Count the frames that land within `tolerance` of their start, for each ordered pair of videos."""
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
    embeddings: Sequence[Floats], *, most: int = MOST_THREE_WAY, seed: int = 0
) -> tuple[float | None, int]:
    """Three-way rate of at most so many videos, drawn with a seed, and how many were used."""
    if len(embeddings) < 3:
        return None, 0
    chosen = np.arange(len(embeddings))
    if len(chosen) > most:
        chosen = np.sort(np.random.default_rng(seed).choice(len(chosen), most, replace=False))
    return cycle_consistency_rate([embeddings[int(video)] for video in chosen], three_way=True), len(chosen)
