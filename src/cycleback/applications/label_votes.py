"""Vote on the frames of labels: one or more labelled videos vote where their labels lie in a new video.

Each labelled video is aligned with the new one and gives one vote per label. A vote is weighted by the
squared confidence of the whole match: on real videos a source that fits badly is wrong about all its labels
at once. A source that finds no match for a label has next to no say on it. The weighted median of the votes
wins. Where at least two sources agree on the time from one label to the next, at the speed of the new video,
labels move towards that duration; labels with disagreeing votes move most. The order of the labels is kept
unless the sources contradict each other.

confidence = sqrt(match x whole) x agreement, all in [0, 1]

    match       confidence of the match of the labelled frame, see `cycleback.alignment.confidence`
    whole       mean confidence of all frames that are matched
    agreement   exp(-spread / (0.05 N)), spread: mean distance of the votes from the frame chosen

The confidence ranks labels; it is not a probability.

Shapes: T frames of a labelled video, N of the new one, D embedding size, L labels, V votes for a label.
"""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import groupby, pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment import align
from cycleback.alignment.confidence import pool_adjacent_violators

AGREEMENT_SCALE = 0.05  # share of a video by which votes may differ before they count as contradictory
MIN_ERROR = 0.01  # of a label that all votes agree on, as a share of the video: no alignment is more exact
PRIOR_SPREAD = 0.5  # of a duration, as a share of it, before any is known; it counts like two sources
MIN_WEIGHT = 1e-6  # of a source that does not match: it still counts where it is the only one

Method = Literal["auto", "dtw", "nearest"]
Floats = NDArray[np.float64]
Mark = tuple[str, str, int]  # "event", "start" or "end"; name; how many of this name came before
Marks = Mapping[Mark, int]  # frame of each, in order of time; an "end" may be T
Found = Mapping[Mark, tuple[int, float | None]]  # frame and confidence, None where given by hand


def vote(
    embeddings: ArrayLike, sources: Sequence[tuple[ArrayLike, Marks]], *, method: Method = "auto"
) -> Found:
    """Find the frame and the confidence of each mark of `sources` in a new video.

    Args:
        embeddings: (N, D) of the new video.
        sources: (T, D) embeddings of each labelled video, and its marks; marks may be missing in some.
        method: "auto", "dtw" or "nearest", see `cycleback.alignment.align`.
    """
    length = len(np.asarray(embeddings))
    votes: dict[Mark, list[tuple[float, float, float]]] = {}  # frame, weight, confidence
    for source, marks in sources:
        alignment = align(source, embeddings, method=method)
        # a mark after the last frame stays after the last that is matched
        end = length if alignment.path is None else alignment.path[-1, 1] + 1
        frames = np.append(alignment.positions, end)
        sure, seen = (np.append(values, values[-1]) for values in (alignment.confidence, alignment.matched))
        whole = float(alignment.confidence[alignment.matched].mean())
        for mark, frame in marks.items():
            confidence = np.sqrt(sure[frame] * whole)
            weight = whole**2 * seen[frame] + MIN_WEIGHT
            votes.setdefault(mark, []).append((frames[frame], weight, confidence))
    tables = {mark: np.array(rows) for mark, rows in votes.items()}  # (V, 3) each
    middles = {mark: weighted_median(table[:, 0], table[:, 1]) for mark, table in tables.items()}
    spreads = {mark: weighted_median(np.abs(t[:, 0] - middles[mark]), t[:, 1]) for mark, t in tables.items()}
    errors = {mark: float(np.hypot(MIN_ERROR * length, spread)) for mark, spread in spreads.items()}
    marked = [marks for _, marks in sources]
    timed = restore_durations(middles, marked, errors=errors)
    inside = {mark: np.clip(frame, 0, length - (mark[0] != "end")) for mark, frame in timed.items()}
    places = restore_order(inside, marked)
    return {mark: (frame, _confidence(tables[mark], frame, length)) for mark, frame in places.items()}


def weighted_median(values: Floats, weights: Floats) -> float:
    """Return the value with half of the weight on either side, interpolated between the values (V,)."""
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    below = (np.cumsum(weights) - weights / 2) / weights.sum()
    return float(np.interp(0.5, below, values))


def restore_durations(
    frames: Mapping[Mark, float], sources: Sequence[Marks], *, errors: Mapping[Mark, float]
) -> dict[Mark, float]:
    """Move the marks so that the time from one to the next is close to its duration in the sources.

    A least-squares problem: moves are measured in units of a mark's expected error, and durations, at the
    speed of the new video, in units of their spread among the sources. A duration that fewer than two sources
    know has no weight.

    Args:
        frames: where the L marks were found.
        sources: the marks of each labelled video.
        errors: expected error of each mark in frames, above 0.
    """
    order = _common_order(frames, sources)
    found = np.array([frames[mark] for mark in order])
    system = np.diag([errors[mark] ** -2 for mark in order])  # (L, L)
    target = np.array([frames[mark] * errors[mark] ** -2 for mark in order])
    durations = [_durations(marks, order, found) for marks in sources]
    for i in range(len(order) - 1):
        known = [duration[i] for duration in durations if i in duration]
        if len(known) > 1:
            mean = float(np.mean(known))
            weight = _spread(known, mean) ** -2
            system[i : i + 2, i : i + 2] += [[weight, -weight], [-weight, weight]]
            target[i : i + 2] += [-weight * mean, weight * mean]
    return {**frames, **dict(zip(order, np.linalg.solve(system, target).tolist(), strict=True))}


def restore_order(frames: Mapping[Mark, float], sources: Sequence[Marks]) -> dict[Mark, int]:
    """Round `frames` (L,) to whole frames in the common order of the sources, where there is one.

    No segment ends before it starts in any case.
    """
    order = _common_order(frames, sources)
    kept = pool_adjacent_violators([frames[mark] for mark in order])
    places = {mark: round(frame) for mark, frame in frames.items()} | dict(
        zip(order, np.rint(kept).astype(int).tolist(), strict=True)
    )
    for kind, name, count in frames:
        if kind == "end":
            places[kind, name, count] = max(places[kind, name, count], places["start", name, count])
    return dict(sorted(places.items(), key=lambda item: item[1]))


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


def _durations(marks: Marks, order: Sequence[Mark], found: Floats) -> dict[int, float]:
    """Frames from mark i of `order` to the next in a source, at the speed of the `found` marks (L,)."""
    gaps = {
        i: marks[after] - marks[before]
        for i, (before, after) in enumerate(pairwise(order))
        if before in marks and after in marks
    }
    ratios = [max(found[i + 1] - found[i], 0.5) / max(gap, 0.5) for i, gap in gaps.items()]
    speed = float(np.median(ratios)) if ratios else 1.0
    return {i: speed * gap for i, gap in gaps.items()}


def _spread(durations: Sequence[float], mean: float) -> float:
    """Standard deviation of durations in frames; the prior keeps a few equal ones from looking certain."""
    squares = float(np.square(np.subtract(durations, mean)).sum()) + 2 * (PRIOR_SPREAD * mean) ** 2
    return max(1.0, float(np.sqrt(squares / (len(durations) + 1))))


def _confidence(votes: Floats, frame: int, length: int) -> float:
    """Confidence of one label from its votes (V, 3): frame, weight, confidence of the match."""
    frames, weights, sure = votes.T
    spread = float(np.average(np.abs(frames - frame), weights=weights))
    return float(np.average(sure, weights=weights) * np.exp(-spread / (AGREEMENT_SCALE * length)))
