"""The pins of a project: pairs of frames that the user says belong together.

The journal holds every list there ever was, so a change is on disk before it is answered, and can be undone.
After each change `pins.csv` in the folder of the videos is written, which all commands read. Two differences
between them are settled when pins are read:

- A crash after the entry and before the file: the file is still the one that the entry found. It is written
  again, and so is a file that was removed.
- An edit of the file by other means: its pins become the next entry of the journal.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

from cycleback.alignment.pins import place_pins
from cycleback.data.pins import PINS_FILE, Pin, read_pins, select_pairs, write_pins
from cycleback.data.records import NameIndex
from cycleback.errors import DataError, UserError
from cycleback.reading import Cursor
from cycleback.web.journal import Entry, Journal, StaleRevision, lock_file
from cycleback.web.project import Project

KIND = "pins"
LOCK_FILE = "pins.lock"


@dataclass(frozen=True)
class PinList:
    """The pins at one revision."""

    revision: int = 0
    pins: tuple[Pin, ...] = ()
    before: int | None = None  # the revision that undo returns to; None: there is none
    problem: str = ""  # why pins.csv, which was edited by other means, cannot be used


class ProjectPins:
    """Read, change and undo the pins of a project.

    Args:
        count_frames: returns the number of frames of the video with a name, or None if it is not known.
    """

    def __init__(
        self, project: Project, journal: Journal, *, count_frames: Callable[[str], int | None]
    ) -> None:
        self.project, self.journal, self.count_frames = project, journal, count_frames
        self._lock = threading.RLock()
        self._settled: tuple[object, PinList] | None = None  # the state of the files that was looked at

    @property
    def _path(self) -> Path:
        return self.project.folder / PINS_FILE

    def read(self) -> PinList:
        """Return the pins; an edit of pins.csv by other means is taken in."""
        with self._lock:
            if self._settled is None or self._settled[0] != self._state():
                with self._alone():
                    settled = self._settle()
                    self._settled = self._state(), settled
            return self._settled[1]

    def between(self, a: str, b: str) -> list[tuple[int, int]]:
        """Return the pairs (frame of a, frame of b) that are pinned, of videos with names `a` and `b`."""
        return select_pairs(self.read().pins, a, b)

    def write(self, pins: Iterable[Pin], revision: int) -> PinList:
        """Replace the list that has a revision.

        Raises:
            StaleRevision: the list was changed since.
            UserError: pins cross, or name frames that are not there.
        """
        wanted = tuple(dict.fromkeys(pins))
        return self._replace(revision, lambda current: (wanted, current.revision))

    def undo(self, revision: int) -> PinList:
        """Return to the list before the last change; again and again to older ones."""

        def choose(current: PinList) -> tuple[tuple[Pin, ...], int | None]:
            if current.before is None:
                raise UserError("there is no change of pins to undo")
            older = [entry for entry in self.journal.entries(KIND) if entry.revision == current.before]
            return _read_entry(older[0]) if older else ((), None)

        return self._replace(revision, choose)

    def _replace(
        self, revision: int, choose: Callable[[PinList], tuple[tuple[Pin, ...], int | None]]
    ) -> PinList:
        with self._lock, self._alone():
            current = self._settle()
            if revision != current.revision:
                raise StaleRevision(KIND, given=revision, revision=current.revision)
            if current.problem:
                raise UserError(current.problem)
            pins, before = choose(current)
            self._check(pins)
            self._append(pins, before=before, revision=revision)
            write_pins(self.project.folder, pins)
            self._settled = None
        return self.read()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes from changing entry and file meanwhile."""
        path = self.project.state / LOCK_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            lock_file(file)
            yield

    def _state(self) -> object:
        """Return what changes when the journal or pins.csv change."""
        return self.journal.revision(KIND), _read_stamp(self._path), len(self.project.videos)

    def _settle(self) -> PinList:
        """Make the last entry and pins.csv agree, and return the pins."""
        entries = self.journal.entries(KIND)
        last = entries[-1] if entries else None
        current = PinList(last.revision, *_read_entry(last)) if last else PinList()
        try:
            written = self._spell(read_pins(self.project.folder))
            if set(written) == set(current.pins):
                return current
            stamp = _read_stamp(self._path)
            if last is not None and (stamp is None or stamp == last.value.get("file")):
                write_pins(self.project.folder, current.pins)
                return current
            self._check(written)
        except UserError as error:
            return PinList(current.revision, current.pins, current.before, str(error))
        self._append(written, before=current.revision, revision=current.revision)
        return PinList(current.revision + 1, written, current.revision)

    def _append(self, pins: Sequence[Pin], *, before: int | None, revision: int) -> None:
        rows = [list(astuple(pin)) for pin in pins]
        value = {"pins": rows, "before": before, "file": _read_stamp(self._path)}
        self.journal.append(KIND, value, revision)

    def _spell(self, pins: Sequence[Pin]) -> tuple[Pin, ...]:
        """Return pins with the names of the videos as the project spells them; unknown names stay."""
        index = NameIndex(video.name for video in self.project.videos.values())
        return tuple(
            Pin(
                index.match(p.video_a) or p.video_a, p.frame_a, index.match(p.video_b) or p.video_b, p.frame_b
            )
            for p in pins
        )

    def _check(self, pins: Sequence[Pin]) -> None:
        """Refuse frames that are not there, and pins that contradict each other, alone or through others."""
        frames: dict[str, int] = {}  # the last pinned frame of each video
        for pin in pins:
            for name, frame in ((pin.video_a, pin.frame_a), (pin.video_b, pin.frame_b)):
                frames[name] = max(frame, frames.get(name, 0))
        lengths = [self.count_frames(name) or last + 1 for name, last in frames.items()]
        place = {name: number for number, name in enumerate(frames)}
        place_pins(
            [(place[pin.video_a], pin.frame_a, place[pin.video_b], pin.frame_b) for pin in pins],
            [*lengths, sum(lengths)],  # with a reference on which all moments have room, wherever they lie
            reference=len(place),
            match=lambda video, own: (np.arange(lengths[video]), np.ones(lengths[video])),
            names=[*place, "the reference"],
        )


def _read_entry(entry: Entry) -> tuple[tuple[Pin, ...], int | None]:
    """Return the pins of an entry, and the revision that undo returns to."""
    place = f"entry {entry.revision} of the pins in the journal"
    root = Cursor(entry.value, place, DataError, ". Remove its line.")
    root.at("pins")
    return tuple(map(_read_pin, root.each("pins"))), root.optional_integer("before", low=0)


def _read_pin(row: Cursor) -> Pin:
    cells = list(row.each())
    if len(cells) != 4:
        raise row.expected("a video, a frame, a video and a frame")
    a, b = cells[0].text(), cells[2].text()
    return Pin(a, cells[1].integer(low=0), b, cells[3].integer(low=0))


def _read_stamp(path: Path) -> list[int] | None:
    """Return what changes with a file: its time of change and its size; None if it is not there."""
    about = path.stat() if path.is_file() else None
    return about and [about.st_mtime_ns, about.st_size]
