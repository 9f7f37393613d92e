"""The labels of a video: key events (moments) and segments (spans of time).

Tools count in frames or in seconds. A `Moment` keeps the unit it was given. An `Annotation` converts between
the two where the frame rate is known.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Self

from cycleback.errors import DataError

ASSUMED_FRAME_S = 0.04  # length of a key event in tools that know only spans, where the rate is unknown


@dataclass(frozen=True)
class Moment:
    """A point in time: seconds from the first frame, a frame counted from 0, or both."""

    seconds: float | None = None
    frame: int | None = None

    def __post_init__(self) -> None:
        if self.seconds is None and self.frame is None:
            raise ValueError("a moment needs seconds or a frame")


@dataclass(frozen=True)
class Event:
    """A key event: something that happens at one moment."""

    name: str
    at: Moment
    confidence: float | None = None  # in [0, 1] if a program found the event; None if a person labelled it


@dataclass(frozen=True)
class Segment:
    """A named span of a video: from `start` up to, not including, `end`."""

    name: str
    start: Moment
    end: Moment
    confidence: float | None = None


@dataclass(frozen=True)
class Annotation:
    """All labels of one video, and what the file says about the video itself."""

    video: str  # name of the video
    events: tuple[Event, ...] = ()
    segments: tuple[Segment, ...] = ()
    file: str | None = None  # path or URL of the video, if known
    fps: float | None = None  # frames per second
    num_frames: int | None = None  # length in frames
    duration: float | None = None  # length in seconds

    @classmethod
    def of_file(
        cls,
        file: str,
        labels: Iterable[Event | Segment],
        *,
        fps: float | None = None,
        duration: float | None = None,
    ) -> Self:
        """Make the annotation of a video file; it is named after the file."""
        events, segments = split_labels(labels)
        return cls(video_name(file), events, segments, file=file, fps=fps, duration=duration)

    @property
    def labels(self) -> "tuple[Event | Segment, ...]":
        """Events, then segments."""
        return (*self.events, *self.segments)

    @property
    def media(self) -> str:
        """The video file for other tools, or its name where the file is unknown."""
        return self.file or self.video

    @property
    def length_s(self) -> float | None:
        """Length in seconds, where it is known or follows from the frames."""
        if self.duration is None and self.num_frames is not None and self.fps:
            return self.num_frames / self.fps
        return self.duration

    @property
    def frame_s(self) -> float:
        """How long one frame is shown, in seconds."""
        return 1 / self.fps if self.fps else ASSUMED_FRAME_S

    def seconds(self, moment: Moment) -> float:
        """Convert a moment to seconds."""
        if moment.seconds is not None:
            return moment.seconds
        return moment.frame / self._rate(f"frame {moment.frame} has no time") if moment.frame else 0.0

    def frame(self, moment: Moment) -> int:
        """Convert a moment to a frame."""
        if moment.frame is not None:
            return moment.frame
        seconds = moment.seconds or 0.0
        return round(seconds * self._rate(f"{seconds:g} s has no frame")) if seconds else 0

    def spans(self) -> "list[tuple[Event | Segment, float, float]]":
        """List each label with its start and end in seconds; a key event ends where it starts."""
        at = [(event, self.seconds(event.at)) for event in self.events]
        return [(event, start, start) for event, start in at] + [
            (each, self.seconds(each.start), self.seconds(each.end)) for each in self.segments
        ]

    def _rate(self, problem: str) -> float:
        if not self.fps:
            raise DataError(f"{self.video}: {problem}, because the frame rate is unknown")
        return self.fps


def make_label(
    name: str, start: Moment, end: Moment | None, confidence: float | None = None
) -> Event | Segment:
    """Make a segment, or a key event where there is no end."""
    return Event(name, start, confidence) if end is None else Segment(name, start, end, confidence)


def split_labels(labels: Iterable[Event | Segment]) -> tuple[tuple[Event, ...], tuple[Segment, ...]]:
    """Split a mixed list into events and segments."""
    both = list(labels)
    events = tuple(label for label in both if isinstance(label, Event))
    return events, tuple(label for label in both if isinstance(label, Segment))


def video_name(file: str) -> str:
    """Name a video after its path or URL: the last part, without suffix."""
    path = file.replace("\\", "/").rpartition("?d=")[2].partition("?")[0]  # Label Studio writes ?d=PATH
    return PurePosixPath(path).stem or file
