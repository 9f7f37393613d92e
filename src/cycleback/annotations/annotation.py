"""What people write down about a video: key events (moments) and segments (stretches of time).

Tools count in frames or in seconds. A `Moment` keeps whichever it was given, and an `Annotation` turns one
into the other where the frame rate is known.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from cycleback.errors import DataError

ASSUMED_FRAME_S = 0.04  # how long a key event is shown by tools that know stretches only, if no rate is known


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
    """A key event: something that happens at one moment.

    Attributes:
        confidence: in [0, 1] where a program found it; None where a person said so.
    """

    name: str
    at: Moment
    confidence: float | None = None


@dataclass(frozen=True)
class Segment:
    """A stretch of video with a name: from `start` up to, not including, `end`."""

    name: str
    start: Moment
    end: Moment
    confidence: float | None = None


@dataclass(frozen=True)
class Annotation:
    """All labels of one video, and what the file says of the video itself.

    Attributes:
        video: name of the video.
        events: key events.
        segments: stretches of time.
        file: path or address of the video, where known.
        fps: frames a second.
        num_frames: length in frames.
        duration: length in seconds.
    """

    video: str
    events: tuple[Event, ...] = ()
    segments: tuple[Segment, ...] = ()
    file: str | None = None
    fps: float | None = None
    num_frames: int | None = None
    duration: float | None = None

    @property
    def labels(self) -> "tuple[Event | Segment, ...]":
        """Events and segments."""
        return (*self.events, *self.segments)

    @property
    def media(self) -> str:
        """The video as other tools want it named: its file, or else its name."""
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
        """When `moment` is, in seconds."""
        if moment.seconds is not None:
            return moment.seconds
        return moment.frame / self._rate(f"frame {moment.frame} has no time") if moment.frame else 0.0

    def frame(self, moment: Moment) -> int:
        """The frame shown at `moment`."""
        if moment.frame is not None:
            return moment.frame
        seconds = moment.seconds or 0.0
        return round(seconds * self._rate(f"{seconds:g} s is no frame")) if seconds else 0

    def _rate(self, problem: str) -> float:
        if not self.fps:
            raise DataError(f"{self.video}: {problem}, as the frame rate is not known")
        return self.fps


def sorted_out(labels: Iterable[Event | Segment]) -> tuple[tuple[Event, ...], tuple[Segment, ...]]:
    """The events and the segments of a mixed list, as `Annotation` takes them."""
    both = list(labels)
    events = tuple(label for label in both if isinstance(label, Event))
    return events, tuple(label for label in both if isinstance(label, Segment))


def video_name(file: str) -> str:
    """The name of a video from its path or address: the last part, without suffix."""
    path = file.replace("\\", "/").rpartition("?d=")[2].partition("?")[0]  # ?d= as Label Studio writes it
    return PurePosixPath(path).stem or file
