"""How sure each match is: the share of such matches that are right.

First a score from the distances alone,

    score = focus x (margin x agreement)^(1/4), all in [0, 1]

    focus       share of the weights w_j = exp(-(d(i, j) - min_j d(i, j)) / u) that lies within 5 % of the
                length of b, or 3 frames, of the match. u is the median distance to a nearest frame: the size
                of differences that mean nothing. Low where frames far apart in b are nearly as near.
    margin      1 - d(i, match) / median_j d(i, j): how much nearer the match is than a typical frame of b.
                0 when it is no nearer, or when all frames of b are alike.
    agreement   exp(-|back(match) - i| / (0.1 T)): whether the way back to a, by the nearest neighbour of the
                match (paper 3.1), lands at i. 1 when it does, 0.37 when it misses by a tenth of the video.

Then a calibration, fitted to matches known to be right or wrong, says how often such a score is right
(`cycleback.alignment.calibration`): right is within 5 % of the length of b, or 3 frames. Matches that never
run backwards, as warping finds them, are right more often and have their own curve. Equal videos have
confidence 1, collapsed embeddings 0.

The built-in curves know rendered pouring videos only. On other videos the order is to be trusted more than
the number; `cycleback evaluate` measures the gap as `calibration_error`. With a few labels, `Calibration.fit`
makes a curve of your own.

Shapes: T frames of video a, S frames of video b, D embedding size; R rows at a time.
"""

import numpy as np

from cycleback.alignment.calibration import NEAREST, WARPED, Calibration
from cycleback.alignment.distances import matched_squared, pairwise_squared
from cycleback.alignment.inputs import Floats, Indices, even_frames

REACH = 0.1  # share of the video; a phase of an action is seldom shorter, so a larger miss is another moment
TOLERANCE, TOLERANCE_FRAMES = 0.05, 3  # what counts as right
SAMPLED_FRAMES = 2048  # of each video, where all would be too many


def match_confidence(
    distances: Floats, indices: Indices, *, calibration: Calibration | None = None
) -> Floats:
    """Confidence (T,) in [0, 1] of the matches `indices` (T,), given squared `distances` (T, S).

    Args:
        distances: (T, S), squared.
        indices: (T,), the match of each frame.
        calibration: Fitted to `match_score` of your own matches; by default the built-in one, for matches
            that never run backwards or for others.
    """
    return (calibration or _built_in(indices)).apply(match_score(distances, indices))


def match_score(distances: Floats, indices: Indices) -> Floats:
    """Score (T,) in [0, 1] of the matches: what a calibration is fitted to."""
    rest = match_margin(distances, indices) * cycle_agreement(distances, indices)
    return match_focus(distances, indices) * rest**0.25


def match_focus(distances: Floats, indices: Indices) -> Floats:
    """Focus (T,) in [0, 1]: share of all weight that lies near the match."""
    columns, unit = np.arange(distances.shape[1]), float(np.median(distances.min(axis=1)))
    return _focus(distances, indices, columns=columns, reach=tolerance(len(columns)), unit=unit)


def match_margin(distances: Floats, indices: Indices) -> Floats:
    """Margin (T,) in [0, 1]: 1 - distance to the match over the median distance of the row."""
    matched = np.take_along_axis(distances, indices[:, None], axis=1)[:, 0]  # (T,)
    return _margin(matched, np.median(distances, axis=1))


def cycle_agreement(distances: Floats, indices: Indices) -> Floats:
    """Agreement (T,) in (0, 1] of the way back with the start."""
    frames = np.arange(len(distances))
    landing = distances.argmin(axis=0)[indices]  # (T,)
    is_nearest = distances[frames, indices] <= distances[landing, indices]  # of equals, the start itself
    return _agreement(np.where(is_nearest, 0, np.abs(landing - frames)))


def tolerance(num_frames: int) -> float:
    """Frames by which a match in a video of `num_frames` may be off and still be right."""
    return max(TOLERANCE_FRAMES, TOLERANCE * num_frames)


def frame_confidence(a: Floats, b: Floats, indices: Indices, *, chunk_frames: int = 1024) -> Floats:
    """Confidence (T,) of matches of `a` (T, D) in `b` (S, D), compared with 2,048 frames of each at most."""
    starts, columns = even_frames(len(a), SAMPLED_FRAMES), even_frames(len(b), SAMPLED_FRAMES)
    few_a, few_b = a[starts], b[columns]
    unit = float(np.median(pairwise_squared(few_a, few_b).min(axis=1)))
    matched = matched_squared(a, b, indices)
    typical, errors, focus = np.empty(len(a)), np.empty(len(a)), np.empty(len(a))
    for i in range(0, len(a), chunk_frames):
        part = slice(i, i + chunk_frames)
        distances = pairwise_squared(a[part], few_b)
        typical[part] = np.median(distances, axis=1)
        focus[part] = _focus(distances, indices[part], columns=columns, reach=tolerance(len(b)), unit=unit)
        back = pairwise_squared(b[indices[part]], few_a)
        landing = starts[back.argmin(axis=1)]
        errors[part] = np.abs(landing - np.arange(len(a))[part]) * (back.min(axis=1) < matched[part])
    rest = _margin(matched, typical) * _agreement(errors)
    return _built_in(indices).apply(focus * rest**0.25)


def _focus(distances: Floats, indices: Indices, *, columns: Indices, reach: float, unit: float) -> Floats:
    """Focus (R,) of matches `indices` (R,), given `distances` (R, C) to the frames `columns` (C,) of b."""
    excess = distances - distances.min(axis=1, keepdims=True)
    with np.errstate(over="ignore"):  # a unit of 0, as with equal videos: only the nearest counts
        weights = np.exp(-(excess / max(unit, np.finfo(np.float64).tiny)))
    upto = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(weights, axis=1)], axis=1)
    rows = np.arange(len(weights))
    first = np.searchsorted(columns, indices - reach, side="left")
    last = np.searchsorted(columns, indices + reach, side="right")
    focus: Floats = np.clip((upto[rows, last] - upto[rows, first]) / upto[:, -1], 0.0, 1.0)
    return focus


def _margin(matched: Floats, typical: Floats) -> Floats:
    nearer = np.maximum(typical - matched, 0)
    return np.divide(nearer, typical, out=np.zeros_like(nearer), where=typical > 0)


def _agreement(errors: Floats | Indices) -> Floats:
    agreement: Floats = np.exp(-errors / (REACH * len(errors)))
    return agreement


def _built_in(indices: Indices) -> Calibration:
    return WARPED if (np.diff(indices) >= 0).all() else NEAREST
