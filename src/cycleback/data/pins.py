"""Pins of a folder: pins.csv, which lies beside labels.csv.

A row says that a frame of one video shows the same moment as a frame of another:
`video_a,frame_a,video_b,frame_b`, frames counted from 0. Names are written as in labels.csv: the suffix is
optional, and leading folders may be left out if only one video matches. Other columns are ignored.

`cycleback.alignment.pins` says what pins do to an alignment.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cycleback.data.records import NameIndex
from cycleback.errors import DataError
from cycleback.files import write_text
from cycleback.reading import Cursor
from cycleback.tables import format_csv, read_table

PINS_FILE = "pins.csv"
COLUMNS = ("video_a", "frame_a", "video_b", "frame_b")


@dataclass(frozen=True)
class Pin:
    """Frame `frame_a` of `video_a` and frame `frame_b` of `video_b` show the same moment."""

    video_a: str
    frame_a: int
    video_b: str
    frame_b: int

    def __post_init__(self) -> None:
        if self.video_a == self.video_b:
            raise DataError(f"a pin joins {self.video_a} with itself; expected two videos")
        if min(self.frame_a, self.frame_b) < 0:
            frame = min(self.frame_a, self.frame_b)
            raise DataError(f"a pin names frame {frame}; expected 0 or more, frames count from 0")


def read_pins(folder: Path | str) -> list[Pin]:
    """Read pins.csv of a folder of videos; without the file there are no pins.

    Names stay as written, and videos need not exist: see `match_pins`.
    """
    path = Path(folder) / PINS_FILE
    if not path.is_file():
        return []
    rows = [Cursor(row, f"{path}, line {line}") for line, row in read_table(path, COLUMNS)]
    return list(dict.fromkeys(_make_pin(row) for row in rows))


def _make_pin(row: Cursor) -> Pin:
    names = [row.at(column).text() for column in ("video_a", "video_b")]
    frames = [row.at(column).integer() for column in ("frame_a", "frame_b")]
    try:
        return Pin(names[0], frames[0], names[1], frames[1])
    except DataError as error:
        raise DataError(f"{row.place}: {error}") from error


def write_pins(folder: Path | str, pins: Iterable[Pin]) -> Path:
    """Write pins.csv of a folder of videos, completely or not at all; the pins there before are replaced."""
    rows = [asdict(pin) for pin in dict.fromkeys(pins)]
    return write_text(Path(folder) / PINS_FILE, format_csv(rows, columns=COLUMNS), overwrite=True)


def match_pins(pins: Iterable[Pin], names: Iterable[str]) -> list[Pin]:
    """Return the pins between two of the videos `names`, with the names as spelled there."""
    index = NameIndex(names)
    matched = []
    for pin in pins:
        a, b = index.match(pin.video_a), index.match(pin.video_b)
        if a is not None and b is not None:
            matched.append(Pin(a, pin.frame_a, b, pin.frame_b))
    return list(dict.fromkeys(matched))


def select_pairs(pins: Sequence[Pin], a: str, b: str) -> list[tuple[int, int]]:
    """Return the pairs (frame of a, frame of b) of the pins between two videos, in order of time."""
    forwards = [(pin.frame_a, pin.frame_b) for pin in pins if (pin.video_a, pin.video_b) == (a, b)]
    backwards = [(pin.frame_b, pin.frame_a) for pin in pins if (pin.video_a, pin.video_b) == (b, a)]
    return sorted({*forwards, *backwards})
