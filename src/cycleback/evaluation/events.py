"""Key-event error: map each key event of one video through the alignment, and see how far off it lands.

Tau only asks whether the order is right; this asks whether the moment is.

Shapes: V videos, N frames of a video, D embedding size, K key events of all videos together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import dtw_indices, dtw_path, squared_distances
from cycleback.evaluation.neighbors import Floats, nearest_frames

Method = Literal["nearest", "dtw"]
Indices = NDArray[np.int64]
Label = tuple[int, str, int]  # video, key event, frame


@dataclass(frozen=True)
class EventError:
    """Absolute errors over `count` mapped events; None where there are none, or no times.

    Attributes:
        median_frames: median error in frames of the video mapped to.
        mean_frames: the mean of the same.
        median_ms: median error in milliseconds.
        mean_ms: the mean of the same.
        within: PCE@k, share of events that land within k frames, by k.
        count: events mapped: every ordered pair of videos that share the event.
        by_event: the same for each key event alone.
    """

    median_frames: float | None
    mean_frames: float | None
    median_ms: float | None
    mean_ms: float | None
    within: Mapping[int, float]
    count: int
    by_event: Mapping[str, "EventError"] = field(default_factory=dict)


def event_error(
    embeddings: Sequence[Floats],
    events: Sequence[Mapping[str, int]],
    *,
    times: Sequence[Floats] | None = None,
    method: Method = "nearest",
    within: Sequence[int] = (1, 3),
) -> EventError:
    """Error of key events over all ordered pairs of videos.

    Args:
        embeddings: one (N, D) a video.
        events: frame of each key event, one mapping a video; events may be missing.
        times: seconds (N,) of the frames, one array a video; without them errors are in frames only.
        method: "nearest" or "dtw", see `cycleback.alignment.align`.
        within: the k of PCE@k.
    """
    _check(embeddings, events, method)
    labels = [(video, event, frame) for video, here in enumerate(events) for event, frame in here.items()]
    if not labels:
        return _summary(np.empty(0), None, within)
    truth = _true_frames(labels, events)  # (V, K)
    found = _nearest_events(embeddings, labels) if method == "nearest" else _dtw_events(embeddings, labels)
    known = truth >= 0
    frames = np.abs(found - truth)[known]
    late = None if times is None else _seconds_apart(found, truth, times)[known]
    names = np.broadcast_to(np.array([event for _, event, _ in labels]), truth.shape)[known]
    parts = {
        str(name): _summary(frames[names == name], None if late is None else late[names == name], within)
        for name in dict.fromkeys(event for _, event, _ in labels)
    }
    return _summary(frames, late, within, parts)


def _check(embeddings: Sequence[Floats], events: Sequence[Mapping[str, int]], method: str) -> None:
    if len(embeddings) != len(events):
        raise ValueError(f"expected the events of {len(embeddings)} videos, got {len(events)}")
    if method not in get_args(Method):
        raise ValueError(f"method must be 'nearest' or 'dtw', got {method!r}")
    for video, (block, here) in enumerate(zip(embeddings, events, strict=True)):
        for event, frame in here.items():
            if not 0 <= frame < len(block):
                raise ValueError(f"video {video}: {event!r} at frame {frame}, but it has {len(block)} frames")


def _true_frames(labels: Sequence[Label], events: Sequence[Mapping[str, int]]) -> Indices:
    """Frame (V, K) of each label's event in each video; -1 where it is not labelled, and in its own video."""
    rows = [
        [-1 if video == own else here.get(event, -1) for own, event, _ in labels]
        for video, here in enumerate(events)
    ]
    return np.array(rows, dtype=np.int64)


def _nearest_events(embeddings: Sequence[Floats], labels: Sequence[Label]) -> Indices:
    """Frame (V, K) nearest to each labelled frame, in each video: only rows with an event are compared."""
    queries = np.stack([embeddings[video][frame] for video, _, frame in labels])  # (K, D)
    return nearest_frames(queries, embeddings)


def _dtw_events(embeddings: Sequence[Floats], labels: Sequence[Label]) -> Indices:
    """Frame (V, K) that each labelled frame is warped to, in each video; one distance matrix a pair."""
    found = np.zeros((len(embeddings), len(labels)), dtype=np.int64)
    owners = np.array([video for video, _, _ in labels])
    frames = np.array([frame for _, _, frame in labels])
    for first in range(len(embeddings)):
        for second in range(first):
            distances = squared_distances(embeddings[first], embeddings[second])
            for start, other, cost in ((first, second, distances), (second, first, distances.T)):
                mine = owners == start
                if mine.any():
                    found[other, mine] = dtw_indices(dtw_path(cost))[frames[mine]]
    return found


def _seconds_apart(found: Indices, truth: Indices, times: Sequence[Floats]) -> NDArray[np.float64]:
    """Seconds (V, K) between two frames of the video of each row."""
    rows = [np.abs(clock[f] - clock[t]) for f, t, clock in zip(found, truth, times, strict=True)]
    return np.stack(rows)


def _summary(
    frames: Floats,
    seconds: Floats | None,
    within: Sequence[int],
    by_event: Mapping[str, EventError] | None = None,
) -> EventError:
    if not len(frames):
        return EventError(None, None, None, None, {}, 0, by_event or {})
    ms = None if seconds is None else 1000 * seconds
    return EventError(
        median_frames=float(np.median(frames)),
        mean_frames=float(frames.mean()),
        median_ms=None if ms is None else float(np.median(ms)),
        mean_ms=None if ms is None else float(ms.mean()),
        within={k: float((frames <= k).mean()) for k in within},
        count=len(frames),
        by_event=by_event or {},
    )
