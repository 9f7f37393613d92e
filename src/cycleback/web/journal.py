"""What the user typed (labels, pins), append-only: one JSON object per line, each safe on disk when told.

Every kind of entry has its own revision, which grows by one with each entry. An entry is accepted only from
someone who knows the latest revision, so two pages never overwrite each other.
"""

import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from cycleback.errors import UserError
from cycleback.reading import MAX_SHOWN, parse_json

logger = logging.getLogger(__name__)
JOURNAL_FILE = "journal.jsonl"


class StaleRevision(UserError):
    """Somebody else wrote an entry of the same kind first."""

    def __init__(self, kind: str, *, given: int, revision: int) -> None:
        super().__init__(
            f"the {kind} changed meanwhile (revision {revision}, not {given}); look at them and try again"
        )
        self.revision = revision


@dataclass(frozen=True)
class Entry:
    """One line of the journal."""

    revision: int
    kind: str
    at: str  # date and time, UTC
    value: Any


class Journal:
    """The entries of a file, by kind. Threads and processes may share the file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL_FILE
        self._entries: dict[str, list[Entry]] = {}
        self._offset = 0  # bytes of the file that are read
        self._file: tuple[int, int] | None = None  # which file was read, by device and inode
        self._lock = threading.RLock()

    def entries(self, kind: str) -> list[Entry]:
        """Return all entries of a kind, oldest first."""
        with self._lock:
            self._read_new()
            return list(self._entries.get(kind, []))

    def latest(self, kind: str) -> Any:
        """Return the value of the last entry of a kind, or None."""
        entries = self.entries(kind)
        return entries[-1].value if entries else None

    def revision(self, kind: str) -> int:
        """Return the revision of a kind: 0 before its first entry."""
        entries = self.entries(kind)
        return entries[-1].revision if entries else 0

    def append(self, kind: str, value: Any, revision: int) -> int:
        """Add an entry and return its revision; it is on disk when this returns.

        Raises:
            StaleRevision: `revision` is not the latest one of this kind.
        """
        try:
            with self._lock, self._open() as file:
                self._set_torn_line_aside(file)
                self._read_new()
                latest = self.revision(kind)
                if revision != latest:
                    raise StaleRevision(kind, given=revision, revision=latest)
                entry = Entry(latest + 1, kind, datetime.now(UTC).isoformat(timespec="milliseconds"), value)
                self._write(file, _encode(entry))
                self._read_new()
                return entry.revision
        except OSError as error:
            raise UserError(f"cannot write {self.path}: {error.strerror or error}") from error

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        """Open the file to append to it, and keep other writers out meanwhile."""
        is_new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            lock_file(file)
            if is_new:
                _flush_folder(self.path.parent)
            yield file

    def _write(self, file: BinaryIO, line: bytes) -> None:
        """Append a line and wait until it is on disk; a line that cannot be written whole is taken back."""
        size = os.fstat(file.fileno()).st_size
        try:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                os.ftruncate(file.fileno(), size)
            raise

    def _set_torn_line_aside(self, file: BinaryIO) -> None:
        """Remove an incomplete last line, which a crash leaves, and keep its bytes in a file of their own."""
        if _ends_whole(self.path):
            return
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        torn = self.path.with_name(f"{self.path.stem}.torn-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
        with torn.open("xb") as aside:
            aside.write(content[whole:])
            aside.flush()
            os.fsync(aside.fileno())
        os.ftruncate(file.fileno(), whole)
        os.fsync(file.fileno())

    def _read_new(self) -> None:
        """Read the lines that were added since the last time, by whomever."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                same = (status.st_dev, status.st_ino) == self._file and status.st_size >= self._offset
                if not same:
                    self._entries, self._offset = {}, 0
                    self._file = (status.st_dev, status.st_ino)
                file.seek(self._offset)
                new = file.read()
        except FileNotFoundError:
            self._entries, self._offset, self._file = {}, 0, None
            return
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror or error}") from error
        whole = new[: new.rfind(b"\n") + 1]
        for line in whole.split(b"\n")[:-1]:
            if (entry := self._decode(line)) is not None:
                self._entries.setdefault(entry.kind, []).append(entry)
        self._offset += len(whole)

    def _decode(self, line: bytes) -> Entry | None:
        """Return the entry of a line; None for a damaged one, which is named and stays in the file."""
        try:
            root = parse_json(line.decode("utf-8"), str(self.path))
            revision = root.at("revision").integer(low=1)
            return Entry(revision, root.at("kind").text(), root.at("at").text(), root.value.get("value"))
        except (UserError, UnicodeDecodeError) as error:
            logger.warning("a damaged line of %s is left out: %s: %r", self.path, error, line[:MAX_SHOWN])
            return None


def _ends_whole(path: Path) -> bool:
    """Tell whether the last line of a file is complete; an empty file has none."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        return size == 0 or file.read(1) == b"\n"


def _encode(entry: Entry) -> bytes:
    try:
        text = json.dumps(vars(entry), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8") + b"\n"
    except (ValueError, UnicodeEncodeError) as error:
        raise UserError(f"cannot keep these {entry.kind}: {error}") from error


def lock_file(file: BinaryIO) -> None:
    """Wait until this process alone holds the lock of an open file; closing the file gives it back."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    with suppress(OSError):  # some network file systems cannot lock
        fcntl.flock(file, fcntl.LOCK_EX)


def _flush_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems cannot flush folders
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
