"""The room that the cache takes: what is in it, its limit, and what is removed when it is full.

A file of the cache is marked as used, by its time of change, whenever it is opened. Beyond the limit the
least recently used files are removed; each can be made again. Whoever works with the cache holds the lock of
a small file in `in-use/`: nothing that was used since the oldest of them was made is removed.
"""

import json
import os
import shutil
import threading
import time
import weakref
from collections import Counter as Tally
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from uuid import uuid4

from cycleback.errors import UserError
from cycleback.files import hold_lock, is_abandoned, write_json

IN_USE, ENTRIES, CHOICES, LIMIT_FILE = "in-use", "frames", "choices", "limit.json"
KINDS = {  # what the files of an entry hold, by the start of their name
    "frames": "frames",
    "motion": "motion",
    "features": "features",
    "means": "features",
    "poses": "poses",
    "embeddings": "embeddings",
}
OTHER = "other"  # times and descriptions of entries, and choices
MAX_BYTES = 20 * 10**9
DISK_SHARE = 0.1
MIN_BYTES = 250 * 10**6  # a training needs its frames, however small the disk
KEPT_SHARE = 0.9  # of the limit is kept when something must go, so that it does not happen at every write


@dataclass(frozen=True)
class CacheFile:
    """A file of the cache that can be removed and made again."""

    path: Path
    kind: str
    size: int  # bytes on the disk
    used: float  # seconds since the epoch


@dataclass(frozen=True)
class CacheEntry:
    """What is kept of one video at one size."""

    folder: Path
    files: tuple[CacheFile, ...]

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return sum(file.size for file in self.files)

    @property
    def used(self) -> float:
        """When it was last used, in seconds since the epoch."""
        return max((file.used for file in self.files), default=0.0)

    @cached_property
    def source(self) -> str:
        """The video file, where it was when it was decoded."""
        try:
            return str(json.loads((self.folder / "meta.json").read_text("utf-8"))["source"])
        except (OSError, ValueError, KeyError, TypeError):
            return "unknown"


@dataclass(frozen=True)
class CacheReport:
    """What a cache holds."""

    root: Path
    limit: int | None  # bytes; None: there is no limit
    is_default: bool  # whether nobody has set the limit
    entries: tuple[CacheEntry, ...]
    others: tuple[CacheFile, ...]  # files that belong to no entry

    @property
    def files(self) -> list[CacheFile]:
        """All files."""
        return [*self.others, *(file for entry in self.entries for file in entry.files)]

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return sum(file.size for file in self.files)

    @property
    def kinds(self) -> dict[str, int]:
        """The bytes of each kind, largest first."""
        tally: Tally[str] = Tally()
        for file in self.files:
            tally[file.kind] += file.size
        return dict(tally.most_common())


@dataclass(frozen=True)
class Removed:
    """What was removed from a cache."""

    files: int
    size: int  # bytes
    kept_in_use: int  # bytes that some program is working with


class CacheRoom:
    """Keeps a cache within its limit while one program, or one part of it, works with it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._size: int | None = None  # of the whole cache; unknown before the first write
        self._next: float = 0  # size at which room is made again
        self._is_marked = False

    def mark(self) -> None:
        """Keep everything that is used from now on until this object is dropped."""
        with self._lock, suppress(OSError):  # a cache of somebody else, which cannot be written
            if self._is_marked:
                return
            self._is_marked = True
            (self.root / IN_USE).mkdir(parents=True, exist_ok=True)
            stack = ExitStack()
            while True:
                path = self.root / IN_USE / uuid4().hex
                path.touch()
                stack.callback(path.unlink, missing_ok=True)
                if stack.enter_context(hold_lock(path)):
                    break  # else somebody took it for the mark of a killed program and removed it
            weakref.finalize(self, stack.close)

    def grew(self, size: int) -> None:
        """Count bytes that were written, and make room if they are too many."""
        with self._lock:
            if self._size is None:
                report = describe_cache(self.root)
                self._size, self._next = report.size, float("inf") if report.limit is None else report.limit
            else:
                self._size += size
            if self._size > self._next:
                self._make_room()

    def _make_room(self) -> None:
        limit = read_limit(self.root)
        if limit is None:
            self._next = float("inf")
            return
        make_room(self.root, limit)
        self._size = describe_cache(self.root).size
        self._next = max(limit, self._size + limit / 20)  # not at every write if all of it is in use


def describe_cache(root: Path) -> CacheReport:
    """List what a cache holds; a cache that does not exist is empty."""
    entries = tuple(_list_entries(root / ENTRIES))
    others = tuple(_list_files(root / CHOICES))
    return CacheReport(root, read_limit(root), not (root / LIMIT_FILE).is_file(), entries, others)


def _list_entries(folder: Path) -> Iterator[CacheEntry]:
    with suppress(FileNotFoundError), os.scandir(folder) as items:
        for item in items:
            if item.is_dir():
                yield CacheEntry(Path(item.path), tuple(_list_files(Path(item.path))))


def _list_files(folder: Path) -> Iterator[CacheFile]:
    with suppress(OSError), os.scandir(folder) as items:  # another program may be removing it
        for item in items:
            with suppress(OSError):
                status = item.stat()
                size = getattr(status, "st_blocks", 0) * 512 or status.st_size
                kind = KINDS.get(item.name.partition(".")[0].partition("-")[0], OTHER)
                yield CacheFile(Path(item.path), kind, size, status.st_mtime)


def default_limit(root: Path) -> int:
    """Return the limit that holds if nobody set one: a tenth of the disk, but at most 20 GB."""
    existing = next(parent for parent in (root.absolute(), *root.absolute().parents) if parent.exists())
    return max(MIN_BYTES, min(MAX_BYTES, int(DISK_SHARE * shutil.disk_usage(existing).total)))


def read_limit(root: Path) -> int | None:
    """Return the limit of a cache in bytes; None if it was set to none."""
    try:
        value = json.loads((root / LIMIT_FILE).read_text("utf-8"))["bytes"]
    except (OSError, ValueError, KeyError, TypeError):
        return default_limit(root)
    return value if isinstance(value, int) and value >= 0 else None


def set_limit(root: Path, limit: int | None) -> Removed:
    """Set the limit of a cache in bytes, or None for no limit, and remove what is beyond it."""
    if limit is not None and limit < 0:
        raise UserError(f"the limit of the cache must be at least 0 bytes, got {limit}")
    write_json(root / LIMIT_FILE, {"bytes": limit}, overwrite=True)
    return Removed(0, 0, 0) if limit is None else make_room(root, limit, share=1.0)


def reset_limit(root: Path) -> Removed:
    """Return to the default limit, and remove what is beyond it."""
    with suppress(FileNotFoundError):
        (root / LIMIT_FILE).unlink()
    return make_room(root, default_limit(root), share=1.0)


def make_room(root: Path, limit: int, *, share: float = KEPT_SHARE) -> Removed:
    """Remove the least recently used files if a cache is larger than `limit`, down to a share of it."""
    report = describe_cache(root)
    excess = report.size - limit * share if report.size > limit else 0
    return _remove(report, sorted(report.files, key=lambda file: file.used), excess)


def clear_cache(root: Path, *, older_s: float = 0.0, kinds: Collection[str] = ()) -> Removed:
    """Remove what was not used for `older_s` seconds, of some kinds or all; never what is in use."""
    report, latest = describe_cache(root), time.time() - older_s
    chosen = [file for file in report.files if file.used <= latest and (not kinds or file.kind in kinds)]
    return _remove(report, chosen, report.size + 1)


def _remove(report: CacheReport, files: Sequence[CacheFile], excess: float) -> Removed:
    """Remove `files` in order until `excess` bytes are gone, and entries of which nothing is left."""
    protected = _oldest_mark(report.root)
    count = size = kept = 0
    for file in files:
        if size >= excess:
            break
        if file.kind == OTHER and file.path.parent.name != CHOICES:
            continue  # it goes with its entry
        with suppress(OSError):  # another program was faster
            if file.path.stat().st_mtime >= protected:
                kept += file.size
                continue
            file.path.unlink()
            count, size = count + 1, size + file.size
    for entry in report.entries if count or excess > report.size else ():
        if _remove_bare(entry, protected):
            size += sum(file.size for file in entry.files if file.kind == OTHER)
    return Removed(count, size, kept)


def _remove_bare(entry: CacheEntry, protected: float) -> bool:
    """Remove an entry that holds nothing but times; not one that is being written."""
    if entry.folder.name.startswith("."):
        return False
    left = tuple(_list_files(entry.folder))
    if any(file.kind != OTHER or file.used >= protected for file in left):
        return False
    trash = entry.folder.with_name(f".filling-{uuid4().hex}")
    try:
        os.rename(entry.folder, trash)
    except OSError:
        return False
    shutil.rmtree(trash, ignore_errors=True)
    return True


def _oldest_mark(root: Path) -> float:
    """Return since when a living program works with the cache; marks of killed programs are removed."""
    oldest = float("inf")
    for mark in _list_files(root / IN_USE):
        if is_abandoned(mark.path):
            with suppress(OSError):
                mark.path.unlink()
        else:
            oldest = min(oldest, mark.used)
    return oldest
