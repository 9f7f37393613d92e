"""Label one video, or a few, and have all of them labelled.

Each labelled video is aligned with each unlabelled one and votes where its labels lie there
(`cycleback.applications.label_votes`). Labels are of the same action or not carried over at all.

Shapes: N frames of a video, K labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cycleback.annotations import Annotation, Event, Moment, Segment
from cycleback.applications.label_votes import Found, Mark, Method, vote
from cycleback.data import phases_from_events
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import DataError

Floats = NDArray[np.float64]
Span = tuple[str, int, int]  # name, first frame, frame after the last


@dataclass(frozen=True)
class TransferredLabels:
    """Labels of all videos.

    Attributes:
        videos: labels of each video, those that were given (confidence None) and those found.
        label_next: videos whose labels were found, the least certain first: where a label by hand helps most.
        left_out: videos without labels, because no labelled video shows their action.
    """

    videos: Mapping[str, Annotation]
    label_next: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    def confidence(self, name: str) -> float:
        """Mean confidence of the labels of one video; 1 where they were given."""
        known = [label.confidence for label in self.videos[name].labels if label.confidence is not None]
        return float(np.mean(known)) if known else 1.0

    def phases(self, name: str) -> NDArray[np.int64]:
        """Phase (N,) of each frame of one video: the number of its key events at or before it."""
        video = self.videos[name]
        return phases_from_events([video.frame(event.at) for event in video.events], video.num_frames or 0)


def transfer_labels(
    embeddings: EmbeddingSet,
    labels: Mapping[str, Mapping[str, int]],
    *,
    segments: Mapping[str, Sequence[Span]] | None = None,
    method: Method = "dtw",
) -> TransferredLabels:
    """Carry key events and segments from the labelled videos over to all others of the same action.

    Args:
        embeddings: of all videos; their own events are not looked at.
        labels: video -> {key event: frame}, for one video or a few; events may be missing in some.
        segments: video -> (name, first frame, frame after the last) of stretches; those of one name are told
            apart by their order.
        method: "dtw" or "nearest", see `cycleback.alignment.align`. DTW is the more exact on real videos.
    """
    marks = _marks(embeddings, labels, segments or {})
    if not marks:
        raise DataError("no labels to carry over: none of the videos has an event or a segment")
    videos, left_out = {}, []
    for name in embeddings:
        sources = [each for each in marks if embeddings.action(each) == embeddings.action(name)]
        if name in marks:
            given: Found = {mark: (frame, None) for mark, frame in marks[name].items()}
            videos[name] = _annotation(embeddings, name, given)
        elif sources:
            voters = [(embeddings[each], marks[each]) for each in sources]
            videos[name] = _annotation(embeddings, name, vote(embeddings[name], voters, method=method))
        else:
            left_out.append(name)
    result = TransferredLabels(videos, (), tuple(left_out))
    order = sorted((name for name in videos if name not in marks), key=result.confidence)
    return TransferredLabels(videos, tuple(order), tuple(left_out))


def label_transfer_error(
    embeddings: EmbeddingSet, labelled: Sequence[str], *, method: Method = "dtw"
) -> Floats:
    """Absolute errors (K,) in milliseconds of the key events carried from `labelled` to all other videos.

    Args:
        embeddings: with the true events of all videos. Events that no labelled video has are left out.
        labelled: names of the videos whose events are known to the transfer.
        method: "dtw" or "nearest".
    """
    found = transfer_labels(embeddings, {name: embeddings.events(name) for name in labelled}, method=method)
    errors = []
    for name in found.label_next:
        times, truth = embeddings.times(name), embeddings.events(name)
        for event in found.videos[name].events:
            if event.name in truth and event.at.frame is not None:
                errors.append(1000 * abs(times[event.at.frame] - times[truth[event.name]]))
    return np.array(errors, dtype=np.float64)


def _marks(
    embeddings: EmbeddingSet, labels: Mapping[str, Mapping[str, int]], segments: Mapping[str, Sequence[Span]]
) -> dict[str, dict[Mark, int]]:
    """Every moment to carry over, by video, in order of time; videos without any are left out."""
    marks: dict[str, dict[Mark, int]] = {}
    for name in dict.fromkeys([*labels, *segments]):
        found: dict[Mark, int] = {("event", event, 0): frame for event, frame in labels.get(name, {}).items()}
        for what, start, end in segments.get(name, ()):
            if end < start:
                raise DataError(
                    f"{name}: {what!r} starts at frame {start} and ends before it, at frame {end}"
                )
            count = sum(kind == "start" and other == what for kind, other, _ in found)
            found |= {("start", what, count): start, ("end", what, count): end}
        for (kind, what, _), frame in found.items():
            last = len(embeddings[name]) - (kind != "end")
            if not 0 <= frame <= last:
                raise DataError(
                    f"{name}: {what!r} is labelled at frame {frame}, but the video goes from 0 to {last}"
                )
        if found:
            marks[name] = dict(sorted(found.items(), key=lambda item: item[1]))
    return marks


def _annotation(embeddings: EmbeddingSet, name: str, found: Found) -> Annotation:
    """The labels of one video as a value to write, with frames and seconds."""
    times, fps = embeddings.times(name), embeddings.fps(name)
    clock = np.append(times, times[-1] + (1 / fps if fps else 0.0))  # the end of the last frame
    moment = {mark: Moment(round(float(clock[frame]), 6), frame) for mark, (frame, _) in found.items()}
    sure = {mark: None if value is None else round(value, 4) for mark, (_, value) in found.items()}
    path = embeddings.path(name)
    spans = [(what, count) for kind, what, count in found if kind == "start"]
    return Annotation(
        name,
        tuple(Event(mark[1], moment[mark], sure[mark]) for mark in found if mark[0] == "event"),
        tuple(
            Segment(what, moment["start", what, n], moment["end", what, n], sure["start", what, n])
            for what, n in spans
        ),
        file=None if path is None else path.as_posix(),
        fps=fps,
        num_frames=len(times),
        duration=round(float(clock[-1]), 6),
    )
