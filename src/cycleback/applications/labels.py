"""Carry labels from one or a few videos over to all others of the same action (paper: annotation transfer).

All videos of an action, labelled or not, first tell in which directions of the embedding moments differ, see
`cycleback.alignment.discriminant`. Then each labelled video is aligned with each unlabelled one and votes on
the frames of its labels there (`cycleback.applications.label_votes`), together with a probe that has learned
what the labelled frames look like (`cycleback.applications.label_probe`).

Shapes: N frames of a video, D embedding size, K labels.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import ALIGNED_AXES, check_pins, discriminant_axes
from cycleback.annotations import Annotation, Event, Moment, Segment
from cycleback.applications.label_probe import Mark, fit_probe
from cycleback.applications.label_votes import Found, Method, vote
from cycleback.data.labels import nearest_frame
from cycleback.data.pins import Pin, match_pins, select_pairs
from cycleback.data.records import NameIndex
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import DataError
from cycleback.video import frame_times

END_SLACK_S = 0.5  # other tools may count the sound, which can outlast the last frame
Floats = NDArray[np.float64]
Span = tuple[str, int, int]  # name, first frame, frame after the last


class TimedVideos(Protocol):
    """Videos by name whose frames have times: an `EmbeddingSet`, or videos that have no embeddings yet."""

    @property
    def names(self) -> tuple[str, ...]:
        """The videos, in order."""

    def times(self, name: str) -> Floats:
        """Seconds (N,) of each frame of one video."""

    def fps(self, name: str) -> float | None:
        """Average frames per second, where known."""

    def path(self, name: str) -> Path | None:
        """The video file, where known."""

    def source(self, name: str) -> str:
        """Name of the whole video, for a part of one; else the name itself."""

    def first_frame(self, name: str) -> int:
        """Frame of the video file that is the first of this video; 0 unless it is a part of one."""


@dataclass(frozen=True)
class TransferredLabels:
    """Labels of all videos."""

    videos: Mapping[str, Annotation]  # name -> labels: the given ones (confidence None) and those found
    # videos whose labels were found, the least certain first: a label by hand helps most there
    label_next: tuple[str, ...]
    left_out: tuple[str, ...] = ()  # videos without labels, because no labelled video shows their action

    def confidence(self, name: str) -> float:
        """Return the mean confidence of the labels of one video; 1 for labels that were given."""
        known = [label.confidence for label in self.videos[name].labels if label.confidence is not None]
        return float(np.mean(known)) if known else 1.0

    def to_json(self) -> dict[str, Any]:
        """Return all labels, the videos to label next and the videos left out."""
        return {
            "label_next": list(self.label_next),
            "left_out": list(self.left_out),
            "videos": {name: _labels_to_json(video) for name, video in self.videos.items()},
        }


def transfer_labels(
    embeddings: EmbeddingSet,
    labels: Mapping[str, Mapping[str, int]],
    *,
    segments: Mapping[str, Sequence[Span]] | None = None,
    method: Method = "auto",
    pins: Sequence[Pin] = (),
) -> TransferredLabels:
    """Carry key events and segments from the labelled videos over to all others of the same action.

    Videos without labels help, too: the more of them, the better the alignment.

    Args:
        embeddings: of all videos; events stored in the set are ignored.
        labels: video -> {key event: frame}, for one or a few videos; some may lack events.
        segments: video -> (name, first frame, frame after the last); segments of one name are told apart by
            their order.
        method: "auto", "dtw" or "nearest", see `cycleback.alignment.align`.
        pins: frames set by hand. Those between a labelled and an unlabelled video hold their alignment, and a
            label whose frame is pinned lies at the pin. Other pins change nothing.
    """
    pins = match_pins(pins, embeddings.names)
    marks = _collect_marks(embeddings, labels, segments or {})
    if not marks:
        raise DataError("no labels to carry over: none of the videos has an event or a segment")
    found: dict[str, Found] = {}
    for action in embeddings.actions:
        own = embeddings.of_action(action)
        known = {name: marks[name] for name in own if name in marks}
        if known and len(known) < len(own):
            found |= _find_marks({name: own[name] for name in own}, known, method=method, pins=pins)
    found |= {name: {mark: (frame, None) for mark, frame in given.items()} for name, given in marks.items()}
    videos = {name: annotate(embeddings, name, found[name]) for name in embeddings if name in found}
    left_out = [name for name in embeddings if name not in found]
    labelled = [name for name in videos if name not in marks]
    if not labelled and left_out:
        others = ", ".join(left_out[:3])
        raise DataError(f"nothing to label: the labelled videos show another action than {others}")
    if not labelled:
        raise DataError("nothing to label: every video has labels already. Add videos without labels.")
    result = TransferredLabels(videos, (), tuple(left_out))
    return TransferredLabels(videos, tuple(sorted(labelled, key=result.confidence)), tuple(left_out))


def match_labels(
    annotations: Sequence[Annotation], videos: TimedVideos
) -> tuple[dict[str, dict[str, int]], dict[str, list[Span]]]:
    """Convert label files to events (video -> {event: frame}) and segments (video -> spans).

    The results are what `transfer_labels` takes. Videos are found by name or by the tail of their path, and
    seconds become the frame nearest in presentation time. A label of a video that is split into takes goes to
    the take in which it lies; one that lies in none is told and left out.
    """
    events: dict[str, dict[str, int]] = {}
    segments: dict[str, list[Span]] = {}
    parts: dict[str, list[str]] = {}
    for name in videos.names:
        parts.setdefault(videos.source(name), []).append(name)
    index = NameIndex([*parts, *(name for name in videos.names if name not in parts)])
    for annotation in annotations:
        video = _match_video(annotation, index)
        takes = parts.get(video, [video])
        for event in annotation.events:
            take = _choose_take(videos, takes, event.name, event.at)
            if take is None:
                continue
            known = events.setdefault(take, {})
            if event.name in known:
                warnings.warn(f"{take}: {event.name!r} is labelled twice, the first counts", stacklevel=2)
            known.setdefault(event.name, _find_frame(videos, take, event.name, event.at))
        for each in annotation.segments:
            take = _choose_take(videos, takes, each.name, each.start)
            if take is None:
                continue
            start = _find_frame(videos, take, each.name, each.start)
            end = _find_frame(videos, take, each.name, each.end, is_end=True)
            segments.setdefault(take, []).append((each.name, start, end))
    return events, segments


def join_takes(videos: TimedVideos, annotations: Sequence[Annotation]) -> list[Annotation]:
    """Join the annotations of the takes of one video to one annotation of the video, in order of time.

    Annotations of whole videos stay as they are.
    """
    joined: dict[str, list[Annotation]] = {}
    for each in annotations:
        joined.setdefault(videos.source(each.video), []).append(each)
    return [
        takes[0] if takes[0].video == video else _join_annotations(video, takes)
        for video, takes in joined.items()
    ]


def _join_annotations(video: str, takes: Sequence[Annotation]) -> Annotation:
    """Join annotations of parts of one video, whose frames are those of the video."""
    times = frame_times(takes[0].file) if takes[0].file and Path(takes[0].file).is_file() else None
    return replace(
        takes[0],
        video=video,
        events=tuple(event for take in takes for event in take.events),
        segments=tuple(segment for take in takes for segment in take.segments),
        num_frames=None if times is None else len(times),
        duration=None if times is None else round(float(times[-1]) + takes[0].frame_s, 6),
    )


def _choose_take(videos: TimedVideos, takes: Sequence[str], label: str, at: Moment) -> str | None:
    """Return the take of a video in which a moment lies; a video that is not split takes all of them."""
    if videos.source(takes[0]) == takes[0]:
        return takes[0]
    for name in takes:
        times, first, fps = videos.times(name), videos.first_frame(name), videos.fps(name)
        if at.frame is not None:
            is_inside = first <= at.frame < first + len(times)
        else:
            half = 0.5 / fps if fps else 0.0
            is_inside = times[0] - half <= (at.seconds or 0.0) < times[-1] + half
        if is_inside:
            return name
    when = f"frame {at.frame}" if at.frame is not None else f"{at.seconds:g} s"
    where = videos.source(takes[0])
    warnings.warn(f"{where}: {label!r} at {when} lies in no repetition and is left out", stacklevel=3)
    return None


def annotate(videos: TimedVideos, name: str, places: Found) -> Annotation:
    """Build the annotation of one video from the frames of its marks, with frames and seconds of its file."""
    times, fps, first = videos.times(name), videos.fps(name), videos.first_frame(name)
    clock = np.append(times, times[-1] + (1 / fps if fps else 0.0))  # the end of the last frame
    moment = {
        mark: Moment(round(float(clock[frame]), 6), first + frame) for mark, (frame, _) in places.items()
    }
    sure = {mark: None if value is None else round(value, 4) for mark, (_, value) in places.items()}
    path = videos.path(name)
    spans = [(what, count) for kind, what, count in places if kind == "start"]
    return Annotation(
        name,
        tuple(Event(mark[1], moment[mark], sure[mark]) for mark in places if mark[0] == "event"),
        tuple(
            Segment(what, moment["start", what, n], moment["end", what, n], sure["start", what, n])
            for what, n in spans
        ),
        file=None if path is None else path.as_posix(),
        fps=fps,
        num_frames=len(times),
        duration=round(float(clock[-1]), 6),
    )


def label_transfer_error(
    embeddings: EmbeddingSet, labelled: Sequence[str], *, method: Method = "auto"
) -> Floats:
    """Measure the absolute errors (K,) in ms of key events carried from `labelled` to all other videos.

    Args:
        embeddings: with the true events of all videos. Events that no labelled video has are left out.
        labelled: names of the videos whose events the transfer may use.
        method: "auto", "dtw" or "nearest".
    """
    result = transfer_labels(embeddings, {name: embeddings.events(name) for name in labelled}, method=method)
    errors = []
    for name in result.label_next:
        times, truth = embeddings.times(name), embeddings.events(name)
        for event in result.videos[name].events:
            if event.name in truth and event.at.frame is not None:
                errors.append(1000 * abs(times[event.at.frame] - times[truth[event.name]]))
    return np.array(errors, dtype=np.float64)


def _find_marks(
    videos: Mapping[str, NDArray[Any]],
    known: Mapping[str, Mapping[Mark, int]],
    *,
    method: Method,
    pins: Sequence[Pin],
) -> dict[str, Found]:
    """Find the marks of `known` videos in all other `videos` (N, D) of one action."""
    axes = discriminant_axes(list(videos.values()))
    turned = {name: video @ axes for name, video in videos.items()}
    probe = fit_probe([(turned[name], marks) for name, marks in known.items()])
    voters = [(turned[name][:, :ALIGNED_AXES], marks) for name, marks in known.items()]
    found = {}
    for name, video in turned.items():
        if name in known:
            continue
        pinned = [
            check_pins(select_pairs(pins, one, name), len(videos[one]), len(video), names=(one, name))
            for one in known
        ]
        found[name] = vote(video[:, :ALIGNED_AXES], voters, hints=probe(video), method=method, pins=pinned)
    return found


def _match_video(annotation: Annotation, index: NameIndex) -> str:
    """Find the embedded video that an annotation means."""
    parts = annotation.media.replace("\\", "/").split("/")
    tails = ["/".join(parts[start:]) for start in range(len(parts))]
    prefix, _, upload = annotation.video.partition("-")  # Label Studio prepends eight hexadecimal digits
    for name in [*tails, annotation.video, *([upload] if len(prefix) == 8 else [])]:
        match = index.match(name)
        if match is not None:
            return match
    advice = index.suggest(annotation.video, otherwise="Check the spelling.")
    raise DataError(
        f"the labels name a video {annotation.video!r}, which is not among the {len(index.names)}. {advice}"
    )


def _find_frame(videos: TimedVideos, name: str, label: str, at: Moment, *, is_end: bool = False) -> int:
    """Find the frame of a moment, which must lie in the video; a segment may end where the video ends."""
    times = videos.times(name)
    length, seconds = len(times), at.seconds or 0.0
    if at.frame is not None:
        frame = at.frame - videos.first_frame(name)
    elif is_end and seconds > times[-1]:
        frame = length if seconds <= times[-1] + END_SLACK_S else length + 1
    else:
        frame = nearest_frame(seconds, times)
    if not 0 <= frame < length + int(is_end):
        when = f"frame {at.frame}" if at.frame is not None else f"{seconds:g} s"
        raise DataError(
            f"{name}: {label!r} is labelled at {when}, but the video has {length} frames, the last at "
            f"{times[-1]:.2f} s. Correct the labels."
        )
    return frame


def _collect_marks(
    embeddings: EmbeddingSet, labels: Mapping[str, Mapping[str, int]], segments: Mapping[str, Sequence[Span]]
) -> dict[str, dict[Mark, int]]:
    """Collect the moments to carry over, in order of time; videos without any are left out."""
    marks: dict[str, dict[Mark, int]] = {}
    for name in dict.fromkeys([*labels, *segments]):
        own: dict[Mark, int] = {("event", event, 0): frame for event, frame in labels.get(name, {}).items()}
        for what, start, end in segments.get(name, ()):
            if end < start:
                raise DataError(
                    f"{name}: {what!r} starts at frame {start} and ends before it, at frame {end}"
                )
            count = sum(kind == "start" and other == what for kind, other, _ in own)
            own |= {("start", what, count): start, ("end", what, count): end}
        for (kind, what, _), frame in own.items():
            last = len(embeddings[name]) - (kind != "end")
            if not 0 <= frame <= last:
                raise DataError(
                    f"{name}: {what!r} is labelled at frame {frame}, but the video goes from 0 to {last}"
                )
        if own:
            marks[name] = dict(sorted(own.items(), key=lambda item: item[1]))
    return marks


def _labels_to_json(video: Annotation) -> dict[str, Any]:
    return {
        "events": [
            {"name": e.name, "frame": e.at.frame, "seconds": e.at.seconds, "confidence": e.confidence}
            for e in video.events
        ],
        "segments": [
            {"name": s.name, "start_frame": s.start.frame, "start_seconds": s.start.seconds}
            | {"end_frame": s.end.frame, "end_seconds": s.end.seconds, "confidence": s.confidence}
            for s in video.segments
        ],
    }
