"""What `check_dataset` found: a row for each video, and a line for each problem."""

from dataclasses import dataclass
from typing import Literal

from cycleback.data.records import Kind

Level = Literal["error", "warning"]


@dataclass(frozen=True)
class Problem:
    """Something to look at. An error stops training or makes results wrong; a warning may be as intended.

    Attributes:
        level: "error" or "warning".
        video: name of the video, or "" when it is about the whole data set.
        message: what is wrong and what to do, one line.
    """

    level: Level
    video: str
    message: str

    def __str__(self) -> str:
        where = f"{self.video}: " if self.video else ""
        return f"{self.level}: {where}{self.message}"


@dataclass(frozen=True)
class VideoRow:
    """What one video is.

    Attributes:
        name: of the record.
        action: of the record.
        split: of the record.
        kind: of the record.
        num_frames: frames that can be read; 0 when the video cannot be read.
        fps: frames a second, on average.
        size: (height, width) in pixels, or (features,) of a sequence; () when the video cannot be read.
        duration_s: seconds.
        labels: number of labelled key events.
    """

    name: str
    action: str
    split: str | None
    kind: Kind
    num_frames: int = 0
    fps: float = 0.0
    size: tuple[int, ...] = ()
    duration_s: float = 0.0
    labels: int = 0


@dataclass(frozen=True)
class DatasetReport:
    """Rows in the order of the data set; problems with errors first."""

    rows: tuple[VideoRow, ...]
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no error; warnings do not count."""
        return not self.errors

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Problems of level "error"."""
        return tuple(problem for problem in self.problems if problem.level == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Problems of level "warning"."""
        return tuple(problem for problem in self.problems if problem.level == "warning")
