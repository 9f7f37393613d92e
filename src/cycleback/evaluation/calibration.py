"""Are confident matches right? Confidence of key-event matches against whether they land near the truth.

The confidence is that of `cycleback.alignment.estimate_confidence`, of nearest neighbours.

Shapes: n matches, V videos, K key events of all videos together, T and S frames of two videos, D embedding
size.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import estimate_confidence, squared_distances
from cycleback.evaluation.events import Labels
from cycleback.evaluation.neighbors import Floats

NUM_BINS = 10
MOST_PAIRS = 500  # of videos of one action: enough for a curve, and each takes all distances of two videos


@dataclass(frozen=True)
class CalibrationBin:
    """Matches of similar confidence: their mean confidence, the share of right ones, and their number."""

    confidence: float
    right: float
    count: int


@dataclass(frozen=True)
class Calibration:
    """How confidence goes with being right; None where there are no matches, or none of one kind.

    Attributes:
        bins: those bins of equal width that hold matches, in order.
        error: expected calibration error, the mean |confidence - share right| weighted by count.
        auroc: chance that a right match is more confident than a wrong one; ties count half.
        count: matches.
    """

    bins: tuple[CalibrationBin, ...]
    error: float | None
    auroc: float | None
    count: int


def calibration(confidences: Floats, is_right: NDArray[np.bool_], *, bins: int = NUM_BINS) -> Calibration:
    """Reliability of `confidences` (n,) in [0, 1] for the truth `is_right` (n,)."""
    if confidences.shape != is_right.shape or confidences.ndim != 1 or bins < 1:
        shapes = f"{confidences.shape} and {is_right.shape}, {bins} bins"
        raise ValueError(f"expected confidences and truth of one shape (n,) and bins >= 1, got {shapes}")
    if not ((confidences >= 0) & (confidences <= 1)).all():
        raise ValueError(f"confidences must lie in [0, 1], got {confidences.min()} to {confidences.max()}")
    place = np.minimum((confidences * bins).astype(np.int64), bins - 1)
    found = []
    for number in np.unique(place):
        here = place == number
        share = float(is_right[here].mean())
        found.append(CalibrationBin(float(confidences[here].mean()), share, int(here.sum())))
    return Calibration(tuple(found), calibration_error(found), auroc(confidences, is_right), len(place))


def calibration_error(bins: Sequence[CalibrationBin]) -> float | None:
    """Mean |confidence - share right| over all matches of `bins`."""
    total = sum(part.count for part in bins)
    return sum(part.count * abs(part.confidence - part.right) for part in bins) / total if total else None


def auroc(scores: Floats, is_right: NDArray[np.bool_]) -> float | None:
    """Chance that a right one of `scores` (n,) is above a wrong one, ties half; None without both kinds."""
    right = int(is_right.sum())
    wrong = len(is_right) - right
    if not right or not wrong:
        return None
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]  # from 1; equals share their mean rank
    return float((ranks[is_right].sum() - right * (right + 1) / 2) / (right * wrong))


def pooled_bins(
    parts: Sequence[Sequence[CalibrationBin]], *, bins: int = NUM_BINS
) -> tuple[CalibrationBin, ...]:
    """The bins of several sets as those of one."""
    grouped: dict[int, list[CalibrationBin]] = {}
    for part in (part for several in parts for part in several):
        grouped.setdefault(min(int(part.confidence * bins), bins - 1), []).append(part)
    return tuple(_joined(grouped[number]) for number in sorted(grouped))


def _joined(parts: Sequence[CalibrationBin]) -> CalibrationBin:
    total = sum(part.count for part in parts)
    confidence = sum(part.count * part.confidence for part in parts) / total
    return CalibrationBin(confidence, sum(part.count * part.right for part in parts) / total, total)


def event_confidences(
    embeddings: Sequence[Floats], labels: Labels, *, most: int = MOST_PAIRS, seed: int = 0
) -> Floats:
    """Confidence (V, K) of the nearest match of each labelled frame in each video.

    NaN in its own video, and for pairs of videos beyond `most`, which are drawn with a seed.

    Args:
        embeddings: one (N, D) a video.
        labels: the labelled frames.
        most: ordered pairs of videos to look at; each needs all distances of the two.
        seed: of the draw.
    """
    found = np.full((len(embeddings), len(labels.names)), np.nan)
    own = [np.flatnonzero(labels.videos == video) for video in range(len(embeddings))]
    pairs = [(a, b) for a in range(len(own)) if len(own[a]) for b in range(len(own)) if a != b]
    if len(pairs) > most:
        chosen = np.random.default_rng(seed).choice(len(pairs), most, replace=False)
        pairs = [pairs[number] for number in np.sort(chosen)]
    for a, b in pairs:
        distances = squared_distances(embeddings[a], embeddings[b])  # (T, S)
        found[b, own[a]] = estimate_confidence(distances, distances.argmin(axis=1))[labels.frames[own[a]]]
    return found
