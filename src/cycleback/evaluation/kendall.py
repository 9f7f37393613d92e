"""Kendall's tau of nearest neighbours: do frames of one video find the frames of another in the same order?

For frames i < j of the query with nearest frames y_i, y_j in the reference, a pair of frames is concordant
when y_i < y_j, discordant when y_i > y_j, and tied otherwise. With C, D and n0 = n (n - 1) / 2 pairs in all:

    a        (C - D) / n0
    b        (C - D) / sqrt(n0 (C + D)), what scipy computes
    strict   (C - (n0 - C)) / n0, the paper's words: what is not concordant is discordant

When every frame finds the same frame, a and b say nothing: they are undefined. Strict is then -1.

Shapes: N, n frames of the query, S frames of the reference, D embedding size, V videos, P ordered pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cycleback.evaluation.neighbors import Floats, NearestTable, nearest_frames, nearest_table

Variant = Literal["a", "b", "strict"]
Undefined = Literal["zero", "drop"]
LARGEST_BYTE = 255  # so many comparisons are counted in bytes, which is fastest


@dataclass(frozen=True)
class MeanTau:
    """Mean tau over ordered pairs; `value` is None where there is no pair to count.

    `table` (V, V) has the single taus, NaN on the diagonal and where undefined pairs are left out.
    """

    value: float | None
    pairs: int
    undefined: int
    table: NDArray[np.float64] = field(compare=False, repr=False, default_factory=lambda: np.empty((0, 0)))


@dataclass(frozen=True)
class FrameOrder:
    """Concordant and discordant pairs of frames of each ordered pair of videos, of `pairs` in all."""

    concordant: NDArray[np.int64]
    discordant: NDArray[np.int64]
    pairs: NDArray[np.float64]

    def taus(self, variant: Variant) -> NDArray[np.float64]:
        """Tau of each pair of videos, NaN where undefined."""
        if variant not in get_args(Variant):
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


def kendalls_tau(query: Floats, reference: Floats, *, variant: Variant = "b") -> float:
    """Tau of the nearest neighbours of `query` (N, D) in `reference` (S, D); undefined counts as 0."""
    return float(np.nan_to_num(tau_of_matches(nearest_frames(query, [reference]), variant=variant)[0]))


def mean_tau(
    embeddings: Sequence[Floats],
    *,
    variant: Variant = "b",
    stride: int = 1,
    undefined: Undefined = "zero",
) -> MeanTau:
    """Mean tau over all ordered pairs of different videos.

    Args:
        embeddings: one (N, D) a video.
        variant: "a", "b" or "strict", see above.
        stride: keep every so many frames of each video.
        undefined: "zero" counts a collapsed pair as 0; "drop" leaves it out, as the authors' program does.
    """
    if stride < 1 or undefined not in get_args(Undefined):
        raise ValueError(
            f"expected stride >= 1 and undefined 'zero' or 'drop', got {stride} and {undefined!r}"
        )
    if len(embeddings) < 2:
        return MeanTau(None, 0, 0)
    return mean_of_pairs(pair_taus([block[::stride] for block in embeddings], variant=variant), undefined)


def mean_of_pairs(table: NDArray[np.float64], undefined: Undefined = "zero") -> MeanTau:
    """The mean of `table` (V, V) of taus without its diagonal, with the undefined ones counted."""
    pairs = ~np.eye(len(table), dtype=bool)
    lost = int(np.isnan(table[pairs]).sum())
    counted = np.where(pairs, np.nan_to_num(table) if undefined == "zero" else table, np.nan)
    known = counted[~np.isnan(counted)]
    return MeanTau(float(known.mean()) if len(known) else None, int(pairs.sum()), lost, counted)


def pair_taus(embeddings: Sequence[Floats], *, variant: Variant = "b") -> NDArray[np.float64]:
    """Tau (V, V) of query (row) and reference (column), NaN where undefined; the diagonal has no meaning."""
    return frame_order(nearest_table(embeddings)).taus(variant)


def frame_order(nearest: NearestTable) -> FrameOrder:
    """Counts (V, V) for every query (row) and reference (column); the diagonal has no meaning."""
    lengths, starts = np.diff(nearest.starts), nearest.starts
    counts = np.empty((2, len(lengths), len(lengths)), dtype=np.int64)
    for length in np.unique(lengths):  # videos of one length are counted together
        videos = np.flatnonzero(lengths == length)
        matches = nearest.frames[:, starts[videos][:, None] + np.arange(length)]  # (V, videos, length)
        found = _order_counts(matches.reshape(-1, length))
        counts[:, videos] = np.stack(found).reshape(2, len(lengths), len(videos)).transpose(0, 2, 1)
    pairs = np.broadcast_to((lengths * (lengths - 1) / 2)[:, None], counts.shape[1:])
    return FrameOrder(counts[0], counts[1], pairs)


def tau_of_matches(matches: NDArray[np.int64], *, variant: Variant = "b") -> NDArray[np.float64]:
    """Tau (P,) of the order of `matches` (P, n); NaN where all matches of a row are the same frame."""
    pairs = matches.shape[1] * (matches.shape[1] - 1) / 2
    return FrameOrder(*_order_counts(matches), np.full(len(matches), pairs)).taus(variant)


def _order_counts(matches: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many i < j of each row (P, n) have y_i < y_j, and how many y_i > y_j."""
    is_small = matches.max(initial=0) < 2**15
    ranks: NDArray[np.signedinteger[Any]] = matches.T.astype(np.int16 if is_small else np.int64, order="C")
    concordant = np.zeros(len(matches), dtype=np.int64)
    for lag in range(1, len(ranks)):
        is_later = (ranks[lag:] > ranks[:-lag]).view(np.uint8)  # (n - lag, P)
        for start in range(0, len(is_later), LARGEST_BYTE):
            concordant += is_later[start : start + LARGEST_BYTE].sum(axis=0, dtype=np.uint8)
    untied = matches.shape[1] * (matches.shape[1] - 1) // 2 - _ties(matches)
    return concordant, untied - concordant


def _ties(matches: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many i < j of each row (P, n) have y_i = y_j."""
    ordered = np.sort(matches, axis=1)
    ties = np.zeros(len(matches), dtype=np.int64)
    run = np.zeros(len(matches), dtype=np.int64)  # equals just before this frame
    for column in range(1, ordered.shape[1]):
        run = np.where(ordered[:, column] == ordered[:, column - 1], run + 1, 0)
        ties += run
    return ties
