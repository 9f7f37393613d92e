"""Kendall's tau of nearest neighbours: do frames of one video find the frames of another in the same order?

For frames i < j of the query with nearest frames y_i, y_j in the reference, a pair is concordant when
y_i < y_j and discordant when y_i > y_j. tau-a = (C - D) / n0 and tau-b = (C - D) / sqrt(n0 * (n0 - ties)),
with n0 = n (n - 1) / 2. When every frame finds the same frame tau says nothing: it is undefined.

Shapes: N, n frames of the query, S frames of the reference, D embedding size, V videos, P ordered pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cycleback.evaluation.neighbors import Floats, nearest_frames

Variant = Literal["a", "b"]
Undefined = Literal["zero", "drop"]


@dataclass(frozen=True)
class MeanTau:
    """Mean tau over ordered pairs; `value` is None where there is no pair to count."""

    value: float | None
    pairs: int
    undefined: int


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
        variant: "a" or "b".
        stride: keep every so many frames of each video.
        undefined: "zero" counts a collapsed pair as 0; "drop" leaves it out, as the authors' program does.
    """
    if stride < 1 or undefined not in ("zero", "drop"):
        raise ValueError(
            f"expected stride >= 1 and undefined 'zero' or 'drop', got {stride} and {undefined!r}"
        )
    if len(embeddings) < 2:
        return MeanTau(None, 0, 0)
    table = pair_taus([block[::stride] for block in embeddings], variant=variant)
    taus = table[~np.eye(len(table), dtype=bool)]  # (P,)
    lost = int(np.isnan(taus).sum())
    kept = np.nan_to_num(taus) if undefined == "zero" else taus[~np.isnan(taus)]
    return MeanTau(float(kept.mean()) if len(kept) else None, len(taus), lost)


def pair_taus(embeddings: Sequence[Floats], *, variant: Variant = "b") -> NDArray[np.float64]:
    """Tau (V, V) of query (row) and reference (column), NaN where undefined; the diagonal has no meaning."""
    nearest = nearest_frames(np.concatenate(embeddings), embeddings)  # (V, sum N)
    starts = np.cumsum([0, *map(len, embeddings)])
    lengths = np.diff(starts)
    taus = np.empty((len(embeddings), len(embeddings)))
    for length in np.unique(lengths):  # videos of one length are counted together
        videos = np.flatnonzero(lengths == length)
        matches = nearest[:, starts[videos][:, None] + np.arange(length)]  # (V, videos, length)
        rows = tau_of_matches(matches.reshape(-1, length), variant=variant)
        taus[videos] = rows.reshape(len(embeddings), len(videos)).T
    return taus


def tau_of_matches(matches: NDArray[np.int64], *, variant: Variant = "b") -> NDArray[np.float64]:
    """Tau (P,) of the order of `matches` (P, n); NaN where all matches of a row are the same frame."""
    if variant not in ("a", "b"):
        raise ValueError(f"variant must be 'a' or 'b', got {variant!r}")
    later, earlier = _ordered_counts(matches)
    pairs = matches.shape[1] * (matches.shape[1] - 1) / 2
    untied = (later + earlier).astype(np.float64)
    scale = np.sqrt(pairs * untied) if variant == "b" else np.where(untied > 0, pairs, 0.0)
    tau = np.full(len(matches), np.nan)
    np.divide(later - earlier, scale, out=tau, where=scale > 0)
    return tau


def _ordered_counts(matches: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many i < j of each row (P, n) have y_i < y_j, and how many y_i > y_j."""
    is_small = matches.max(initial=0) < 2**15
    ranks: NDArray[np.signedinteger[Any]] = matches.T.astype(np.int16 if is_small else np.int64, order="C")
    later, earlier = np.zeros((2, len(matches)), dtype=np.int64)
    for lag in range(1, len(ranks)):
        first, second = ranks[:-lag], ranks[lag:]
        later += (second > first).view(np.int8).sum(axis=0, dtype=np.int32)
        earlier += (second < first).view(np.int8).sum(axis=0, dtype=np.int32)
    return later, earlier
