"""The frame cache: each video decoded once, resized, and mapped from disk ever after.

A cache is a folder that may be deleted at any time. An entry is found by the content of the video and the
settings, so moving or renaming videos costs nothing. Several processes may use one cache at once.

Letters: N frames of a video, H W pixels.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Literal

from cycleback.data.cache_entry import (
    FORMAT_VERSION,
    CachedFrames,
    discard_damaged,
    open_entry,
    remove_abandoned,
    write_entry,
)
from cycleback.data.digest import record_digest
from cycleback.data.image_folder import iter_images
from cycleback.data.records import VideoRecord
from cycleback.errors import DataError, UserError
from cycleback.video import FrameChunk, iter_frames

Fit = Literal["stretch", "crop"]
CACHE_VARIABLE = "CYCLEBACK_CACHE"
ATTEMPTS = 4  # of opening: another process may be replacing the same damaged entry


def default_cache_root() -> Path:
    """The folder named by the environment variable CYCLEBACK_CACHE, or ~/.cache/cycleback."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "cycleback").expanduser()


class FrameCache:
    """Frames of videos at one size, on disk.

    Args:
        root: folder of the cache, made when the first frames are written; default `default_cache_root()`.
        size: (height, width) of the frames.
        fit: "stretch" the picture to the size, as the paper does, or "crop" its middle to keep proportions.
    """

    def __init__(
        self, root: Path | str | None = None, *, size: tuple[int, int], fit: Fit = "stretch"
    ) -> None:
        if len(size) != 2 or min(size) < 1:
            raise ValueError(f"size must be (height, width) in pixels, got {size!r}")
        if fit not in ("stretch", "crop"):
            raise ValueError(f"fit must be 'stretch' or 'crop', got {fit!r}")
        self.root = default_cache_root() if root is None else Path(root)
        self.size = (int(size[0]), int(size[1]))
        self.fit: Fit = fit
        self._digests: dict[tuple[Path, int, int], str] = {}  # a file that did not change is hashed once

    def folder(self, record: VideoRecord) -> Path:
        """Where the frames of a video are, or will be. Reads the video's file to know its content."""
        if record.kind == "sequence":
            raise ValueError(f"{record.name} is a sequence of features and has no frames; use load_sequence")
        settings = f"v{FORMAT_VERSION}/{self.size[0]}x{self.size[1]}/{self.fit}"
        key = hashlib.sha256(f"{self._digest(record)}/{settings}".encode()).hexdigest()
        return self.root / "frames" / key

    def _digest(self, record: VideoRecord) -> str:
        if record.kind == "frames" or not record.path.is_file():
            return record_digest(record)
        status = record.path.stat()
        state = (record.path, status.st_size, status.st_mtime_ns)
        if state not in self._digests:
            self._digests[state] = record_digest(record)
        return self._digests[state]

    def load(self, record: VideoRecord) -> CachedFrames:
        """The frames of a video, decoded now if they are not there or their entry is damaged.

        Raises:
            VideoError: the video cannot be decoded.
            DataError: the video's file, or the cache, cannot be read or written.
        """
        return self._load(record, threading.Event())

    def fill(
        self,
        records: Iterable[VideoRecord],
        *,
        progress: Callable[[int, int], None] | None = None,
        workers: int | None = None,
    ) -> None:
        """Decode all videos that are not in the cache yet; sequences are left out, they need no decoding.

        An interrupted fill keeps every finished video; the next one goes on from there.

        Args:
            records: the videos.
            progress: called with (videos done, videos) after each video, in the calling thread.
            workers: videos decoded at a time (default: half the cores, at least 2). Decoding one video uses
                several cores by itself.

        Raises:
            DataError: some videos cannot be used; all others are in the cache by then.
        """
        videos = [record for record in records if record.kind != "sequence"]
        failures: dict[str, UserError] = {}
        for done, (record, failure) in enumerate(self._each(videos, workers), start=1):
            if failure is not None:
                failures[record.name] = failure
            if progress is not None:
                progress(done, len(videos))
        _raise_any(failures, videos)

    def as_filled(
        self, records: Sequence[VideoRecord], *, workers: int | None = None
    ) -> Iterator[VideoRecord]:
        """The videos, each as soon as its frames are there, while the others are decoded.

        After one that cannot be used none is handed out any more; the error comes when all are decoded, as
        with `fill`.
        """
        failures: dict[str, UserError] = {}
        for record, failure in self._each(records, workers):
            if failure is not None:
                failures[record.name] = failure
            elif not failures:
                yield record
        _raise_any(failures, records)

    def _each(
        self, videos: Sequence[VideoRecord], workers: int | None
    ) -> Iterator[tuple[VideoRecord, UserError | None]]:
        """Each video when it is decoded, with what was wrong with it."""
        stop = threading.Event()
        with ThreadPoolExecutor(workers or max(2, (os.cpu_count() or 1) // 2)) as pool:
            futures = {pool.submit(self._fill_one, record, stop): record for record in videos}
            try:
                for future in as_completed(futures):
                    yield futures[future], _failure_of(future)
            except BaseException:  # also Ctrl-C, or no one asks for more: end the workers at their next chunk
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _fill_one(self, record: VideoRecord, stop: threading.Event) -> None:
        self._load(record, stop)  # and forget it: a thousand videos are not held open

    def _load(self, record: VideoRecord, stop: threading.Event) -> CachedFrames:
        folder = self.folder(record)
        for attempt in range(ATTEMPTS):
            was_there = folder.exists()
            entry = open_entry(folder, self.size)
            if entry is not None:
                return entry
            if attempt + 1 < ATTEMPTS:
                self._write(record, folder, stop, is_damaged=was_there)
        raise DataError(f"{record.name}: its frames cannot be kept in {folder}. Delete that folder.")

    def _write(self, record: VideoRecord, folder: Path, stop: threading.Event, *, is_damaged: bool) -> None:
        try:
            if is_damaged:
                discard_damaged(folder, self.size)
            remove_abandoned(folder.parent)
            chunks = _until(stop, self._decode(record))
            write_entry(folder, chunks, size=self.size, source=str(record.path))
        except OSError as error:
            raise self._unwritable(error) from error

    def _decode(self, record: VideoRecord) -> Iterator[FrameChunk]:
        read = iter_images if record.kind == "frames" else iter_frames
        return read(record.path, size=self.size, fit=self.fit)

    def _unwritable(self, error: OSError) -> DataError:
        return DataError(
            f"cannot write the frame cache in {self.root}: {error.strerror or error}. "
            f"Set {CACHE_VARIABLE} to a folder that can be written and has space."
        )


def _until(stop: threading.Event, chunks: Iterator[FrameChunk]) -> Iterator[FrameChunk]:
    for chunk in chunks:
        if stop.is_set():
            raise DataError("decoding was stopped")
        yield chunk


def _failure_of(future: "Future[None]") -> UserError | None:
    """Why a video cannot be used, if it cannot; anything else that went wrong is raised."""
    try:
        future.result()
    except UserError as error:
        return error
    return None


def _raise_any(failures: dict[str, UserError], records: Sequence[VideoRecord]) -> None:
    """Raise what is wrong with some of the videos, named in their order."""
    if failures:
        in_order = {record.name: failures[record.name] for record in records if record.name in failures}
        raise _failure(in_order, len(records))


def _failure(failures: dict[str, UserError], total: int) -> UserError:
    """The error itself when there is one, else the first with the names of the others."""
    (name, first), *others = failures.items()
    if not others:
        return first
    names = ", ".join(other for other, _ in others[:5]) + (", …" if len(others) > 5 else "")
    return DataError(
        f"{len(failures)} of {total} videos cannot be used. {name}: {first} The others: {names}."
    )
