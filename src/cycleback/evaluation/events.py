"""Key events: how far off each lands when it is mapped to another video, and how well confidence predicts it.

Kendall's tau only asks whether the order is right; key-event error asks whether the moment is. Calibration
compares the confidence of these matches with the share that land near the truth.

A tolerance in frames is stricter for slow motion than for real time. SwingNet (McNally et al., CVPR workshops
2019) therefore counts an event of a golf swing as right within max(1, round(span / 30)) frames, where the
span is the number of frames from address to impact. `span_tolerances` is this rule for any two key events.

Shapes: V videos, N frames of a video, T and S frames of two videos, D embedding size, K key events of all
videos together, n matches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import dtw_to_many, estimate_confidence, match_frames, squared_distances
from cycleback.evaluation.neighbors import Floats, NearestTable, nearest_frames

EventMethod = Literal["nearest", "dtw"]
Indices = NDArray[np.int64]
NUM_BINS = 10
SPAN_PARTS = 30  # an event is right within this part of the span
MAX_PAIRS = 500  # pairs of videos per action: enough for a curve; each needs all distances of two videos


@dataclass(frozen=True)
class Labels:
    """The K labelled key events of all videos: their names, videos (K,) and frames (K,)."""

    names: tuple[str, ...]
    videos: Indices
    frames: Indices

    @classmethod
    def of(cls, events: Sequence[Mapping[str, int]]) -> "Labels":
        """List the labels in `events`, one mapping from name to frame per video."""
        rows = [
            (event, video, frame)
            for video, labelled in enumerate(events)
            for event, frame in labelled.items()
        ]
        names = tuple(event for event, _, _ in rows)
        return cls(names, *(np.array([row[i] for row in rows], dtype=np.int64) for i in (1, 2)))


@dataclass(frozen=True)
class EventError:
    """Absolute errors over `count` mapped events; None where there are none, or no times.

    `errors` (n,) holds the error of each mapped event in frames, `tolerances` (n,) what its span allows (NaN
    where the span is unknown), `labels` (n,) its index in `Labels.of(events)`, and `videos` (n,) the video
    that it was mapped to.
    """

    median_frames: float | None  # in frames of the video mapped to
    mean_frames: float | None
    median_ms: float | None
    mean_ms: float | None
    within: Mapping[int, float]  # PCE@k, share of events that land within k frames, by k
    within_span: float | None  # share of events that land within the tolerance of their video's span
    count: int  # of mapped events: one per ordered pair of videos that share the event
    by_event: Mapping[str, "EventError"] = field(default_factory=dict)  # the same per key event
    errors: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False, compare=False)
    tolerances: Floats = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    labels: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False, compare=False)
    videos: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False, compare=False)


def event_error(
    embeddings: Sequence[Floats],
    events: Sequence[Mapping[str, int]],
    *,
    times: Sequence[Floats] | None = None,
    method: EventMethod = "nearest",
    within: Sequence[int] = (1, 3),
    span: tuple[str, str] | None = None,
    nearest: NearestTable | None = None,
) -> EventError:
    """Measure the error of key events over all ordered pairs of videos.

    Args:
        embeddings: (N, D) per video.
        events: Frame of each key event, one mapping per video; events may be missing.
        times: Seconds (N,) of the frames per video; without them errors are in frames only.
        method: "nearest" or "dtw", see `cycleback.alignment.align`.
        within: The k of PCE@k.
        span: The events that begin and end the action, see `span_tolerances`.
        nearest: The nearest frames of all videos, where they are known already.
    """
    _check(embeddings, events, method)
    labels = Labels.of(events)
    if not labels.names:
        return _summarize(np.empty(0), np.empty(0), None, within)
    truth = _true_frames(labels, events)  # (V, K)
    if method == "dtw":
        mapped = _warp_events(embeddings, labels)  # (V, K)
    elif nearest is None:  # only frames with an event are compared
        places = zip(labels.videos, labels.frames, strict=True)
        queries = np.stack([embeddings[video][frame] for video, frame in places])
        mapped = nearest_frames(queries, embeddings)
    else:
        mapped = nearest.frames[:, nearest.starts[labels.videos] + labels.frames]
    known = truth >= 0
    errors = np.abs(mapped - truth)[known]
    late = None
    if times is not None:
        rows = [np.abs(clock[f] - clock[t]) for f, t, clock in zip(mapped, truth, times, strict=True)]
        late = np.stack(rows)[known]
    videos, which = np.nonzero(known)
    allowed = span_tolerances(events, span)[videos]
    names = np.array(labels.names)[which]
    parts = {}
    for name in dict.fromkeys(labels.names):
        own = names == name
        parts[name] = _summarize(errors[own], allowed[own], None if late is None else late[own], within)
    total = _summarize(errors, allowed, late, within, parts)
    return replace(total, errors=errors, tolerances=allowed, labels=which, videos=videos)


def span_tolerances(events: Sequence[Mapping[str, int]], span: tuple[str, str] | None = None) -> Floats:
    """Return by how many frames (V,) an event of each video may be off: max(1, round(span / 30)).

    Halves are rounded to even, as in the program of SwingNet's authors.

    Args:
        events: Frame of each key event, one mapping per video.
        span: The two events from which the span is measured; by default the first and the last of each video.
            The tolerance is NaN where a video lacks one of them.
    """
    tolerances = np.full(len(events), np.nan)
    for video, labelled in enumerate(events):
        ends = list(labelled.values()) if span is None else [labelled[e] for e in span if e in labelled]
        if len(ends) > 1 or (span is None and ends):
            tolerances[video] = max(1, round((max(ends) - min(ends)) / SPAN_PARTS))
    return tolerances


def _check(embeddings: Sequence[Floats], events: Sequence[Mapping[str, int]], method: str) -> None:
    if len(embeddings) != len(events):
        raise ValueError(f"expected the events of {len(embeddings)} videos, got {len(events)}")
    if method not in get_args(EventMethod):
        raise ValueError(f"method must be 'nearest' or 'dtw', got {method!r}")
    for video, (block, labelled) in enumerate(zip(embeddings, events, strict=True)):
        for event, frame in labelled.items():
            if not 0 <= frame < len(block):
                raise ValueError(f"video {video}: {event!r} at frame {frame}, but it has {len(block)} frames")


def _true_frames(labels: Labels, events: Sequence[Mapping[str, int]]) -> Indices:
    """Return the frame (V, K) of each label's event per video; -1 without a label and in its own video."""
    rows = [[labelled.get(event, -1) for event in labels.names] for labelled in events]
    truth = np.array(rows, dtype=np.int64)
    truth[labels.videos, np.arange(len(labels.names))] = -1
    return truth


def _warp_events(embeddings: Sequence[Floats], labels: Labels) -> Indices:
    """Return the frame (V, K) that each labelled frame is warped to in each video."""
    mapped = np.zeros((len(embeddings), len(labels.names)), dtype=np.int64)
    blocks = [np.asarray(block, dtype=np.float64) for block in embeddings]
    for video in np.unique(labels.videos) if len(blocks) > 1 else ():
        own = np.flatnonzero(labels.videos == video)
        others = np.delete(np.arange(len(blocks)), video)
        paths = dtw_to_many(blocks[video], [blocks[other] for other in others])
        for other, path in zip(others, paths, strict=True):
            mapped[other, own] = match_frames(path)[labels.frames[own]]
    return mapped


def _summarize(
    frames: Floats,
    allowed: Floats,
    seconds: Floats | None,
    within: Sequence[int],
    by_event: Mapping[str, EventError] | None = None,
) -> EventError:
    if not len(frames):
        return EventError(None, None, None, None, {}, None, 0, by_event or {})
    spanned = ~np.isnan(allowed)
    ms = None if seconds is None else 1000 * seconds
    return EventError(
        median_frames=float(np.median(frames)),
        mean_frames=float(frames.mean()),
        median_ms=None if ms is None else float(np.median(ms)),
        mean_ms=None if ms is None else float(ms.mean()),
        within={k: float((frames <= k).mean()) for k in within},
        within_span=float((frames <= allowed)[spanned].mean()) if spanned.any() else None,
        count=len(frames),
        by_event=by_event or {},
    )


@dataclass(frozen=True)
class CalibrationBin:
    """Matches of similar confidence: their mean confidence, the share that is right, and their number."""

    confidence: float
    right: float
    count: int


@dataclass(frozen=True)
class Calibration:
    """Agreement of confidence with truth; None where there are no matches, or none right or none wrong."""

    bins: tuple[CalibrationBin, ...]  # the bins of equal width that hold matches, in order
    error: float | None  # expected calibration error: mean |confidence - share right| over matches
    auroc: float | None  # probability that a right match is more confident than a wrong one; ties count half
    count: int  # of matches


def measure_calibration(
    confidences: Floats, is_right: NDArray[np.bool_], *, bins: int = NUM_BINS
) -> Calibration:
    """Compare `confidences` (n,) in [0, 1] with the truth `is_right` (n,)."""
    if confidences.shape != is_right.shape or confidences.ndim != 1 or bins < 1:
        shapes = f"{confidences.shape} and {is_right.shape}, {bins} bins"
        raise ValueError(f"expected confidences and truth of one shape (n,) and bins >= 1, got {shapes}")
    if not ((confidences >= 0) & (confidences <= 1)).all():
        raise ValueError(f"confidences must lie in [0, 1], got {confidences.min()} to {confidences.max()}")
    place = np.minimum((confidences * bins).astype(np.int64), bins - 1)
    filled = []
    for number in np.unique(place):
        members = place == number
        share = float(is_right[members].mean())
        filled.append(CalibrationBin(float(confidences[members].mean()), share, int(members.sum())))
    return Calibration(tuple(filled), calibration_error(filled), auroc(confidences, is_right), len(place))


def calibration_error(bins: Sequence[CalibrationBin]) -> float | None:
    """Return the mean |confidence - share right| over all matches of `bins`."""
    total = sum(part.count for part in bins)
    return sum(part.count * abs(part.confidence - part.right) for part in bins) / total if total else None


def auroc(scores: Floats, is_right: NDArray[np.bool_]) -> float | None:
    """Return the probability that a right one of `scores` (n,) is above a wrong one; ties count half."""
    right = int(is_right.sum())
    wrong = len(is_right) - right
    if not right or not wrong:
        return None
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]  # from 1; equal scores share their mean rank
    return float((ranks[is_right].sum() - right * (right + 1) / 2) / (right * wrong))


def pool_bins(
    parts: Sequence[Sequence[CalibrationBin]], *, bins: int = NUM_BINS
) -> tuple[CalibrationBin, ...]:
    """Merge the bins of several sets into the bins of all their matches."""
    grouped: dict[int, list[CalibrationBin]] = {}
    for part in (part for several in parts for part in several):
        grouped.setdefault(min(int(part.confidence * bins), bins - 1), []).append(part)
    return tuple(_merge(grouped[number]) for number in sorted(grouped))


def _merge(parts: Sequence[CalibrationBin]) -> CalibrationBin:
    total = sum(part.count for part in parts)
    confidence = sum(part.count * part.confidence for part in parts) / total
    return CalibrationBin(confidence, sum(part.count * part.right for part in parts) / total, total)


def event_confidences(
    embeddings: Sequence[Floats], labels: Labels, *, max_pairs: int = MAX_PAIRS, seed: int = 0
) -> Floats:
    """Return the confidence (V, K) of the nearest match of each labelled frame in each video.

    It is NaN in the frame's own video. If there are more than `max_pairs` ordered pairs of videos, that many
    are drawn at random, and the others are NaN. `embeddings` are (N, D) per video.
    """
    confidences = np.full((len(embeddings), len(labels.names)), np.nan)
    own = [np.flatnonzero(labels.videos == video) for video in range(len(embeddings))]
    pairs = [(a, b) for a in range(len(own)) if len(own[a]) for b in range(len(own)) if a != b]
    if len(pairs) > max_pairs:
        chosen = np.random.default_rng(seed).choice(len(pairs), max_pairs, replace=False)
        pairs = [pairs[number] for number in np.sort(chosen)]
    for a, b in pairs:
        distances = squared_distances(embeddings[a], embeddings[b])  # (T, S)
        nearest = estimate_confidence(distances, distances.argmin(axis=1))  # (T,)
        confidences[b, own[a]] = nearest[labels.frames[own[a]]]
    return confidences
