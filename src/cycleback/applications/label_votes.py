"""Vote on the frames of labels: one or more labelled videos vote where their labels lie in a new video.

Each labelled video is aligned with the new one and gives one vote per label. A vote is weighted by the
inverse square of the mean distance of the match: a source that fits badly is wrong about all its labels at
once. A source that finds no match for a label has next to no say on it. The evidence for a frame is the share
of votes near it,

    evidence(t) = sum_v w_v exp(-(t - vote_v)^2 / (2 h^2)), h = 3 frames or 1 % of the video,

plus what a probe sees there (`cycleback.applications.label_probe`). All labels are chosen together: the
frames with the most evidence that keep the order of the labels. Where at least two sources know the time from
one label to the next, a duration that is unusual at the speed of the new video counts against them:

    price = 0.05 (log(duration) - mean of the logarithms in the sources - log(speed))^2 / their variance

confidence = (match^2 x agreement^2 x likeness)^(1/5), all in [0, 1]

    match       confidence of the match of the labelled frame, see `cycleback.alignment.confidence`, times the
                mean confidence of all frames that are matched; the square root of both, mean over the votes
    agreement   evidence for the frame chosen if all sources that find a match had the same weight: 1 where
                they agree
    likeness    what the probe sees there, as a share of what it sees at labelled frames; 1 without a probe

The confidence ranks labels; it is not a probability.

Pins between a labelled video and the new one hold their alignment. Where the frame of a label is pinned, the
label lies at the pin, with confidence 1.

Shapes: T frames of a labelled video, N of the new one, D embedding size, L labels, V votes for a label, C
candidate frames.
"""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import groupby, pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment import align
from cycleback.alignment.pins import Pairs
from cycleback.applications.label_probe import Hint, Mark, Marks

REACH_FRAMES, REACH = 3.0, 0.01  # h above: how far a vote reaches, in frames or as a share of the video
MIN_DISTANCE = 0.1  # of a match, as a share of the mean over sources: even a perfect one is not the only one
DURATION_WEIGHT = 0.1  # of an unusual duration beside the evidence
PRIOR_SPREAD = 0.3  # of the logarithm of a duration, before any is known; it counts like two sources
MIN_DURATION = 0.5  # frames; labels may coincide, but the logarithm must be finite
MIN_LIKENESS = 0.05  # what the probe sees varies around 0 where a label is not
MIN_WEIGHT = 1e-6  # of a source that finds no match: it still counts where it is the only one
PIN_EVIDENCE = 1e3  # more than all votes, durations and hints together
MAX_CANDIDATES = 1000  # frames considered, those with the most evidence: time grows with their square

Method = Literal["auto", "dtw", "nearest"]
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Found = Mapping[Mark, tuple[int, float | None]]  # frame and confidence, None where given by hand


def vote(
    embeddings: ArrayLike,
    sources: Sequence[tuple[ArrayLike, Marks]],
    *,
    hints: Mapping[Mark, Hint] | None = None,
    method: Method = "auto",
    pins: Sequence[Pairs] | None = None,
) -> Found:
    """Find the frame and the confidence of each mark of `sources` in a new video.

    Args:
        embeddings: (N, D) of the new video.
        sources: (T, D) embeddings of each labelled video, and its marks; marks may be missing in some.
        hints: what a probe sees of each mark in the new video.
        method: "auto", "dtw" or "nearest", see `cycleback.alignment.align`.
        pins: for each source, pairs of its frames and frames of the new video that are set by hand.
    """
    length = len(np.asarray(embeddings))
    pinned = [{int(i): int(j) for i, j in own} for own in pins or [()] * len(sources)]
    tables = _collect_votes(embeddings, sources, length=length, method=method, pins=pinned)
    hints = hints or {mark: Hint(np.zeros(length), 0.0) for mark in tables}
    seen = {mark: np.append(hint.scores, hint.scores[-1]) for mark, hint in hints.items()}
    evidence = {mark: _evidence(tables[mark], mark, length) + seen[mark] for mark in tables}  # (N + 1,) each
    held = {
        (mark, own[at])
        for own, (_, marks) in zip(pinned, sources, strict=True)
        for mark, at in marks.items()
        if at in own
    }
    for mark, frame in held:
        evidence[mark][frame] += PIN_EVIDENCE
    middles = {mark: weighted_median(table[:, 0], table[:, 1]) for mark, table in tables.items()}
    places = choose_frames(evidence, middles, [marks for _, marks in sources])
    found = {}
    for mark, frame in places.items():
        likeness = seen[mark][frame] / hints[mark].usual if hints[mark].usual > 0 else 1.0
        confidence = _confidence(tables[mark], frame - tables[mark][:, 0], length, likeness=likeness)
        found[mark] = frame, 1.0 if (mark, frame) in held else confidence
    return found


def weighted_median(values: Floats, weights: Floats) -> float:
    """Return the value with half of the weight on either side, interpolated between the values (V,)."""
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    below = (np.cumsum(weights) - weights / 2) / weights.sum()
    return float(np.interp(0.5, below, values))


def choose_frames(
    evidence: Mapping[Mark, Floats], middles: Mapping[Mark, float], sources: Sequence[Marks]
) -> dict[Mark, int]:
    """Choose the frames of all L marks together: the most evidence, less the prices of their durations.

    The marks stay in the common order of the sources, where there is one. No segment ends before it starts
    in any case.

    Args:
        evidence: (N + 1,) for each mark and frame; the last stands for the end of the video.
        middles: a first guess of each frame, which tells the order of marks that no source compares, and the
            speed of the new video.
        sources: the marks of each labelled video.
    """
    order = _common_order(middles, sources)
    places = {mark: int(evidence[mark].argmax()) for mark in middles}
    if order:
        gains = np.stack([evidence[mark] for mark in order])  # (L, N + 1)
        frames = _find_candidates(gains)  # (C,)
        prices = _durations(order, middles, sources)
        places |= dict(zip(order, _best_sequence(gains[:, frames], frames, prices).tolist(), strict=True))
    for kind, name, count in middles:
        if kind == "end":
            places[kind, name, count] = max(places[kind, name, count], places["start", name, count])
    return dict(sorted(places.items(), key=lambda item: item[1]))


def _collect_votes(
    embeddings: ArrayLike,
    sources: Sequence[tuple[ArrayLike, Marks]],
    *,
    length: int,
    method: Method,
    pins: Sequence[Mapping[int, int]],
) -> dict[Mark, Floats]:
    """Return the votes (V, 3) for each mark: frame, weight (they sum to 1), confidence of the match."""
    alignments = [
        align(source, embeddings, method=method, pins=own.items())
        for own, (source, _) in zip(pins, sources, strict=True)
    ]
    distances = np.array([each.distances[each.matched].mean() for each in alignments])  # (V,)
    floor = MIN_DISTANCE * float(distances.mean()) or 1.0  # all are 0 for equal videos
    weights = ((distances + floor) / floor) ** -2.0
    votes: dict[Mark, list[tuple[float, float, float]]] = {}
    for alignment, weight, (_, marks) in zip(alignments, weights.tolist(), sources, strict=True):
        # a mark after the last frame stays after the last that is matched
        end = length if alignment.path is None else alignment.path[-1, 1] + 1
        frames = np.append(alignment.positions, end)
        sure, seen = (np.append(values, values[-1]) for values in (alignment.confidence, alignment.matched))
        whole = float(alignment.confidence[alignment.matched].mean())
        for mark, frame in marks.items():
            row = (frames[frame], weight * max(seen[frame], MIN_WEIGHT), np.sqrt(sure[frame] * whole))
            votes.setdefault(mark, []).append(row)
    tables = {mark: np.array(rows) for mark, rows in votes.items()}
    for table in tables.values():
        table[:, 1] /= table[:, 1].sum()
    return tables


def _evidence(votes: Floats, mark: Mark, length: int) -> Floats:
    """Return the evidence (N + 1,) of the votes (V, 3); only the end of a segment may lie after the last."""
    distances = np.arange(length + 1)[:, None] - votes[None, :, 0]  # (N + 1, V)
    evidence: Floats = _nearness(distances, length) @ votes[:, 1]
    if mark[0] != "end":
        evidence[-1] = -np.inf
    return evidence


def _nearness(distances: Floats, length: int) -> Floats:
    """Return how much a vote says for a frame at these `distances` from it, 1 at its own frame."""
    nearness: Floats = np.exp(-((distances / max(REACH_FRAMES, REACH * length)) ** 2) / 2)
    return nearness


def _find_candidates(gains: Floats) -> Indices:
    """Return the frames (C,) that any of the marks may lie at, given their evidence (L, N + 1)."""
    best = np.argsort(-gains.max(axis=0), kind="stable")[:MAX_CANDIDATES]
    return np.sort(best)


def _durations(
    order: Sequence[Mark], middles: Mapping[Mark, float], sources: Sequence[Marks]
) -> list[tuple[float, float] | None]:
    """Return mean and variance of the logarithm of the frames from each mark to the next in a new video.

    They are None where fewer than two sources know the duration.
    """
    known: list[tuple[float, float] | None] = []
    for before, after in pairwise(order):
        gaps = [marks[after] - marks[before] for marks in sources if before in marks and after in marks]
        logs = np.log(np.maximum(gaps, MIN_DURATION))
        prior = 2 * PRIOR_SPREAD**2
        variance = (np.square(logs - logs.mean()).sum() + prior) / (len(logs) + 2) if len(logs) > 1 else 0.0
        known.append((float(logs.mean()), float(variance)) if len(logs) > 1 else None)
    found = [np.log(max(middles[b] - middles[a], MIN_DURATION)) for a, b in pairwise(order)]
    ratios = [gap - usual[0] for gap, usual in zip(found, known, strict=True) if usual is not None]
    speed = float(np.median(ratios)) if ratios else 0.0
    return [None if usual is None else (usual[0] + speed, usual[1]) for usual in known]


def _best_sequence(
    gains: Floats, frames: Indices, durations: Sequence[tuple[float, float] | None]
) -> Indices:
    """Return the L frames out of `frames` (C,), never decreasing, with the largest gains (L, C) less prices.

    `durations` are mean and variance of the logarithm of each step from one mark to the next.
    """
    steps = frames[None, :] - frames[:, None]  # (C, C), from row to column
    forward = np.where(steps < 0, np.inf, 0.0)
    logs = np.log(np.maximum(steps, MIN_DURATION))
    total, came_from = gains[0], []
    for gain, usual in zip(gains[1:], durations, strict=True):
        price = forward if usual is None else forward + _price(logs, *usual)
        reached = total[:, None] - price
        came_from.append(reached.argmax(axis=0))
        total = reached.max(axis=0) + gain
    best = [int(total.argmax())]
    for back in reversed(came_from):
        best.append(int(back[best[-1]]))
    return frames[best[::-1]]


def _price(logs: Floats, mean: float, variance: float) -> Floats:
    price: Floats = DURATION_WEIGHT * (logs - mean) ** 2 / (2 * variance)
    return price


def _common_order(frames: Mapping[Mark, float], sources: Sequence[Marks]) -> list[Mark]:
    """Sort the marks by frame, but never against a source; empty where sources contradict each other."""
    graph: TopologicalSorter[Mark] = TopologicalSorter({mark: () for mark in frames})
    for marks in sources:
        groups = [list(group) for _, group in groupby(marks, key=lambda mark: marks[mark])]
        for before, after in pairwise(groups):
            for mark in after:
                graph.add(mark, *before)
    try:
        graph.prepare()
    except CycleError:
        return []
    order: list[Mark] = []
    ready: list[Mark] = []
    while graph.is_active():
        ready += graph.get_ready()
        order.append(min(ready, key=lambda mark: frames[mark]))
        ready.remove(order[-1])
        graph.done(order[-1])
    return order


def _confidence(votes: Floats, distances: Floats, length: int, *, likeness: float) -> float:
    """Confidence of one label from its votes (V, 3), their `distances` (V,) from its frame, and the probe."""
    _, weights, sure = votes.T
    if not sure.any():
        return 0.0
    agreement = float(_nearness(distances[sure > 0], length).mean())
    match = float(weights @ sure)
    return float((match**2 * agreement**2 * np.clip(likeness, MIN_LIKENESS, 1.0)) ** 0.2)
