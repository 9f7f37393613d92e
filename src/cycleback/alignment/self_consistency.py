"""Confidence without labels: what several videos of one action say about their own matches.

Two ways of knowing, without labels, whether a match is right:

    copies   of a video, whose frames are known: with its ends cut off, played at another pace that changes
             on the way, and with what two other videos differ by, frame by frame along their warping path,
             laid over it
    cycles   the match a -> b agrees, or does not, with a -> c -> b through a third video c

Copies are easier than other videos, and cycles go wrong in two more places: the former say too often that a
match is right, the latter too seldom. `fit_without_labels` fits a `ConfidenceCurve` to as many of either.
What all videos get wrong alike, no cycle tells. `benchmarks/confidence.py` compares such curves with those
that are fitted to labels.

Shapes: T frames of video a, S frames of video b, N frames of any video, D embedding size, M judged matches.
"""

from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment.align import AlignmentMethod, align
from cycleback.alignment.confidence import MIN_FRAMES, ConfidenceCurve, score_matches, tolerance
from cycleback.alignment.distances import Floats, Indices, as_videos, pairwise_squared, spread_items, thin

MAX_VIDEOS = 8  # matched with each other
MAX_FRAMES = 2048  # of each, so that all their distances fit into memory
MAX_CUT = 0.1  # of a video, from each end
MAX_PACE = 2.0  # of a copy, and the least is its inverse
PACES = 5  # stretches of a copy, each with a pace of its own
DRAWN = 6000  # matches a curve is fitted to


class Judged(NamedTuple):
    """Matches whose truth is taken as known."""

    scores: Floats  # (M,) in [0, 1], as by `score_matches`
    right: NDArray[np.bool_]  # (M,)


class _Match(NamedTuple):
    indices: Indices  # (T,)
    matched: NDArray[np.bool_]  # (T,)
    scores: Floats  # (T,)


def fit_without_labels(
    videos: Sequence[ArrayLike], *, method: AlignmentMethod = "auto", seed: int = 0
) -> ConfidenceCurve:
    """Fit a curve of confidence to videos of one action, for `estimate_confidence(..., curve=curve)`.

    Args:
        videos: Embeddings (N, D), two or more; of two, there are copies alone. At most 8 of them, evenly
            spread, are used, and at most 2,048 frames of each.
        method: How you match them: by "nearest" fewer matches of the same score are right than by warping.
        seed: Of the copies.
    """
    return ConfidenceCurve.fit(*judge_matches(videos, method=method, seed=seed))


def judge_matches(videos: Sequence[ArrayLike], *, method: AlignmentMethod = "auto", seed: int = 0) -> Judged:
    """Draw matches of videos (N, D) with copies and, of three or more, as many confirmed by cycles or not."""
    parts = [score_copies(videos, method=method, seed=seed)]
    if len(videos) > 2:
        parts.append(score_cycles(videos, method=method))
    rng, drawn = np.random.default_rng(seed), []
    for part in parts:
        if not len(part.scores):  # all frames that a copy shows were left out
            continue
        these = rng.integers(len(part.scores), size=DRAWN // len(parts))
        drawn.append(Judged(part.scores[these], part.right[these]))
    if not drawn:
        raise ValueError("the videos have no frames in common: they do not show one action")
    return _join(drawn)


def score_copies(videos: Sequence[ArrayLike], *, method: AlignmentMethod = "auto", seed: int = 0) -> Judged:
    """Score the matches of videos (N, D), two or more, with copies of themselves whose frames are known."""
    chosen = _choose(videos, least=2)
    rng, parts = np.random.default_rng(seed), []
    for u, v in permutations(range(len(chosen)), 2):
        thirds = [w for w in range(len(chosen)) if w not in (u, v)]
        # of two videos: v plus the difference would be u, so the difference is laid over with its sign turned
        video = chosen[rng.choice(thirds)] if thirds else chosen[v]
        difference = chosen[u] - chosen[v][align(chosen[u], chosen[v], method=method).indices]
        copy, frames = draw_copy(video, difference, rng)
        match = _match(video, copy, method)
        known = match.matched.copy()
        known[: round(frames[0])] = known[round(frames[-1]) + 1 :] = False  # the copy does not show them
        truth = np.interp(np.arange(len(video)), frames, np.arange(len(frames)))
        right = np.abs(match.indices - truth) <= tolerance(len(copy))
        parts.append(Judged(match.scores[known], right[known]))
    return _join(parts)


def draw_copy(video: Floats, difference: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return a copy (S, D) of `video` (N, D), and which frame of it each of its frames shows (S,), rising.

    `difference` (T, D) between two other videos is stretched to the copy and taken from it.
    """
    last = len(video) - 1
    begin, end = rng.uniform(0, MAX_CUT, 2) * last
    paces = MAX_PACE ** rng.uniform(-1, 1, PACES)  # frames of the copy per frame of the video, by stretch
    corners = np.linspace(begin, last - end, PACES + 1)
    clock = np.concatenate([[0.0], np.cumsum(paces * np.diff(corners))])
    size = max(round(clock[-1]) + 1, MIN_FRAMES)
    frames = np.interp(np.linspace(0, clock[-1], size), clock, corners)
    return _show(video, frames) - _show(difference, np.linspace(0, len(difference) - 1, size)), frames


def score_cycles(videos: Sequence[ArrayLike], *, method: AlignmentMethod = "auto") -> Judged:
    """Score the matches of videos (N, D), three or more; right is what the way through a third confirms.

    Each match is judged once by every third video. Ways through a third are warped, even if matches are not:
    two nearest neighbours in a row would seldom lead anywhere.
    """
    chosen = _choose(videos, least=3)
    pairs = list(permutations(range(len(chosen)), 2))
    found = {(u, v): _match(chosen[u], chosen[v], method) for u, v in pairs}
    ways = {pair: match.indices for pair, match in found.items()}
    if method == "nearest":
        ways = {(u, v): align(chosen[u], chosen[v]).indices for u, v in pairs}
    parts = []
    for u, v, w in permutations(range(len(chosen)), 3):
        match = found[u, v]
        right = np.abs(match.indices - ways[w, v][ways[u, w]]) <= tolerance(len(chosen[v]))
        parts.append(Judged(match.scores[match.matched], right[match.matched]))
    return _join(parts)


def _choose(videos: Sequence[ArrayLike], *, least: int) -> list[Floats]:
    chosen = spread_items(as_videos(videos, min_videos=least), MAX_VIDEOS)
    return [thin(video, MAX_FRAMES) for video in chosen]


def _match(a: Floats, b: Floats, method: AlignmentMethod) -> _Match:
    found = align(a, b, method=method)
    return _Match(found.indices, found.matched, score_matches(pairwise_squared(a, b), found.indices))


def _show(video: Floats, frames: Floats) -> Floats:
    """Return `video` (N, D) at `frames` (S,), which may lie between two: (S, D)."""
    before = np.minimum(frames.astype(np.int64), len(video) - 1)
    after = np.minimum(before + 1, len(video) - 1)
    part = (frames - before)[:, None]
    shown: Floats = (1 - part) * video[before] + part * video[after]
    return shown


def _join(parts: Sequence[Judged]) -> Judged:
    return Judged(np.concatenate([p.scores for p in parts]), np.concatenate([p.right for p in parts]))
