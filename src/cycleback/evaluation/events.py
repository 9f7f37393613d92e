"""Key-event error: map each key event of one video through the alignment, and see how far off it lands.

Tau only asks whether the order is right; this asks whether the moment is.

Shapes: V videos, N frames of a video, D embedding size, K key events of all videos together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import dtw_to_many, match_frames
from cycleback.evaluation.neighbors import Floats, NearestTable, nearest_frames

Method = Literal["nearest", "dtw"]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Labels:
    """The K labelled key events of all videos: their names, their videos (K,) and frames (K,)."""

    names: tuple[str, ...]
    videos: Indices
    frames: Indices

    @classmethod
    def of(cls, events: Sequence[Mapping[str, int]]) -> "Labels":
        """Those of `events`, one mapping from name to frame a video."""
        rows = [(event, video, frame) for video, here in enumerate(events) for event, frame in here.items()]
        names = tuple(event for event, _, _ in rows)
        return cls(names, *(np.array([row[i] for row in rows], dtype=np.int64) for i in (1, 2)))


def _nothing() -> Indices:
    return np.empty(0, dtype=np.int64)


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
        errors: (n,) absolute error of each mapped event, in frames.
        labels: (n,) which label was mapped, of `Labels.of(events)`.
        videos: (n,) which video it was mapped to.
    """

    median_frames: float | None
    mean_frames: float | None
    median_ms: float | None
    mean_ms: float | None
    within: Mapping[int, float]
    count: int
    by_event: Mapping[str, "EventError"] = field(default_factory=dict)
    errors: Indices = field(default_factory=_nothing, repr=False, compare=False)
    labels: Indices = field(default_factory=_nothing, repr=False, compare=False)
    videos: Indices = field(default_factory=_nothing, repr=False, compare=False)


def event_error(
    embeddings: Sequence[Floats],
    events: Sequence[Mapping[str, int]],
    *,
    times: Sequence[Floats] | None = None,
    method: Method = "nearest",
    within: Sequence[int] = (1, 3),
    nearest: NearestTable | None = None,
) -> EventError:
    """Error of key events over all ordered pairs of videos.

    Args:
        embeddings: one (N, D) a video.
        events: frame of each key event, one mapping a video; events may be missing.
        times: seconds (N,) of the frames, one array a video; without them errors are in frames only.
        method: "nearest" or "dtw", see `cycleback.alignment.align`.
        within: the k of PCE@k.
        nearest: the nearest frames of all videos, where they are known already.
    """
    _check(embeddings, events, method)
    labels = Labels.of(events)
    if not labels.names:
        return _summary(np.empty(0), None, within)
    truth = _true_frames(labels, events)  # (V, K)
    find = _dtw_events if method == "dtw" else _nearest_events
    found = find(embeddings, labels) if nearest is None or method == "dtw" else _looked_up(nearest, labels)
    known = truth >= 0
    errors = np.abs(found - truth)[known]
    late = None if times is None else _seconds_apart(found, truth, times)[known]
    videos, which = np.nonzero(known)
    names = np.array(labels.names)[which]
    parts = {
        name: _summary(errors[names == name], None if late is None else late[names == name], within)
        for name in dict.fromkeys(labels.names)
    }
    whole = _summary(errors, late, within, parts)
    return replace(whole, errors=errors, labels=which, videos=videos)


def _check(embeddings: Sequence[Floats], events: Sequence[Mapping[str, int]], method: str) -> None:
    if len(embeddings) != len(events):
        raise ValueError(f"expected the events of {len(embeddings)} videos, got {len(events)}")
    if method not in get_args(Method):
        raise ValueError(f"method must be 'nearest' or 'dtw', got {method!r}")
    for video, (block, here) in enumerate(zip(embeddings, events, strict=True)):
        for event, frame in here.items():
            if not 0 <= frame < len(block):
                raise ValueError(f"video {video}: {event!r} at frame {frame}, but it has {len(block)} frames")


def _true_frames(labels: Labels, events: Sequence[Mapping[str, int]]) -> Indices:
    """Frame (V, K) of each label's event in each video; -1 where it is not labelled, and in its own video."""
    rows = [[here.get(event, -1) for event in labels.names] for here in events]
    truth = np.array(rows, dtype=np.int64)
    truth[labels.videos, np.arange(len(labels.names))] = -1
    return truth


def _looked_up(nearest: NearestTable, labels: Labels) -> Indices:
    """Frame (V, K) nearest to each labelled frame, in each video."""
    return nearest.frames[:, nearest.starts[labels.videos] + labels.frames]


def _nearest_events(embeddings: Sequence[Floats], labels: Labels) -> Indices:
    """The same where it is not known yet: only frames with an event are compared."""
    places = zip(labels.videos, labels.frames, strict=True)
    return nearest_frames(np.stack([embeddings[video][frame] for video, frame in places]), embeddings)


def _dtw_events(embeddings: Sequence[Floats], labels: Labels) -> Indices:
    """Frame (V, K) that each labelled frame is warped to, in each video; one video against all at a time."""
    found = np.zeros((len(embeddings), len(labels.names)), dtype=np.int64)
    blocks = [np.asarray(block, dtype=np.float64) for block in embeddings]
    for video in np.unique(labels.videos) if len(blocks) > 1 else ():
        own = np.flatnonzero(labels.videos == video)
        others = np.delete(np.arange(len(blocks)), video)
        paths = dtw_to_many(blocks[video], [blocks[other] for other in others])
        for other, path in zip(others, paths, strict=True):
            found[other, own] = match_frames(path)[labels.frames[own]]
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
