"""From label files of any tool to frames of embedded videos."""

import warnings
from collections.abc import Sequence

from cycleback.annotations import Annotation, Moment
from cycleback.data.labels import nearest_frame
from cycleback.data.records import NameIndex
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import DataError

END_SLACK_S = 0.5  # a video's length in other tools may count its sound, which can outlast the last frame

Span = tuple[str, int, int]  # name, first frame, frame after the last


def labels_in_frames(
    annotations: Sequence[Annotation], embeddings: EmbeddingSet
) -> tuple[dict[str, dict[str, int]], dict[str, list[Span]]]:
    """Events (video -> {event: frame}) and segments (video -> spans) as `transfer_labels` takes them.

    Videos are found by name or by the tail of their path. Seconds go to the frame nearest in presentation
    time.
    """
    events: dict[str, dict[str, int]] = {}
    segments: dict[str, list[Span]] = {}
    index = NameIndex(embeddings.names)
    for annotation in annotations:
        name = _match(annotation, index)
        for event in annotation.events:
            known = events.setdefault(name, {})
            if event.name in known:
                warnings.warn(f"{name}: {event.name!r} is labelled twice, the first counts", stacklevel=2)
            known.setdefault(event.name, _frame(embeddings, name, event.name, event.at))
        for each in annotation.segments:
            start, end = (
                _frame(embeddings, name, each.name, at, end=at is each.end) for at in (each.start, each.end)
            )
            segments.setdefault(name, []).append((each.name, start, end))
    return events, segments


def _match(annotation: Annotation, index: NameIndex) -> str:
    """The embedded video that an annotation means."""
    parts = annotation.media.replace("\\", "/").split("/")
    tails = ["/".join(parts[start:]) for start in range(len(parts))]
    upload = annotation.video.partition(
        "-"
    )  # Label Studio puts eight hexadecimal digits before a file's name
    written = [*tails, annotation.video, *([upload[2]] if len(upload[0]) == 8 else [])]
    for name in written:
        found = index.match(name)
        if found is not None:
            return found
    advice = index.suggest(annotation.video, otherwise="Check the spelling.")
    raise DataError(
        f"the labels name a video {annotation.video!r}, which is not among the {len(index.names)}. {advice}"
    )


def _frame(embeddings: EmbeddingSet, name: str, label: str, at: Moment, *, end: bool = False) -> int:
    """The frame of a moment, which must lie in the video; the end of a segment may be its very end."""
    times = embeddings.times(name)
    length, seconds = len(times), at.seconds or 0.0
    if at.frame is not None:
        frame = at.frame
    elif end and seconds > times[-1]:
        frame = length if seconds <= times[-1] + END_SLACK_S else length + 1
    else:
        frame = nearest_frame(seconds, times)
    if not 0 <= frame < length + int(end):
        when = f"frame {at.frame}" if at.frame is not None else f"{seconds:g} s"
        raise DataError(
            f"{name}: {label!r} is labelled at {when}, but the video has {length} frames, the last at "
            f"{times[-1]:.2f} s. Correct the labels."
        )
    return frame
