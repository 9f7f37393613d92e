"""The frame cache: decode and resize each video once, then map its frames from disk.

A cache is a folder that may be deleted at any time. Entries are found by the content of the video and the
settings, so moved or renamed videos are not decoded again. Several processes may use one cache at once.

An entry is a folder of times.npy, meta.json and files that can be made again: frames.npy, motion.npy,
features, poses and embeddings. Each array ends in a checksum, and one with a changed byte is made again.
Frames are kept for trainings that see them, and removed where they were decoded only to measure something.

An entry is not written through `cycleback.files`: several processes may write the same entry, the first
complete one stays, and gigabytes that can be decoded again are not flushed to disk. A new formula of motion
needs a new file name. `cache_room` keeps the whole within its limit.

Letters: N frames of a video, H W pixels.
"""

import hashlib
import json
import os
import shutil
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cycleback.arrays import add_checksum, open_array, write_array, write_rows
from cycleback.data.cache_room import CacheRoom
from cycleback.data.records import VideoRecord
from cycleback.data.sources import iter_images, record_digest
from cycleback.errors import DataError, UserError
from cycleback.files import atomic_file, hold_lock, is_abandoned
from cycleback.progress import Counter, ignore
from cycleback.video import FrameChunk, iter_frames
from cycleback.video.motion import MOTION_SHAPE, MotionMeter
from cycleback.video.scaling import Fit

if TYPE_CHECKING:
    import torch
    from torch import Tensor

CACHE_VARIABLE = "CYCLEBACK_CACHE"
FORMAT_VERSION = 1
TIMES_FILE, FRAMES_FILE, MOTION_FILE = "times.npy", "frames.npy", "motion.npy"
CHUNK_FRAMES = 64  # read at a time to measure motion
MAX_ATTEMPTS = 4  # to open an entry: another process may be replacing the same damaged one
TEMPORARY = ".filling-"
LOCKS = "locks"  # folder of a file for each video that is being decoded
LOCK_POLL_S = 0.05
MIN_AGE_S = 60.0  # a temporary folder younger than this may not be locked yet
AHEAD = 4  # videos that are decoded before they are asked for


def default_cache_root() -> Path:
    """Return the folder named by the environment variable CYCLEBACK_CACHE, or ~/.cache/cycleback."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "cycleback").expanduser()


@dataclass(frozen=True)
class CachedFrames:
    """One video in the cache."""

    times: NDArray[np.float64]  # (N,) presentation time of each frame in seconds, the first at 0
    folder: Path  # of the entry
    open_frames: Callable[[], NDArray[np.uint8]] = field(repr=False)
    on_growth: Callable[[int], None] = field(repr=False)  # called with the bytes that were written

    @property
    def num_frames(self) -> int:
        """N."""
        return len(self.times)

    @cached_property
    def frames(self) -> NDArray[np.uint8]:
        """All frames (N, H, W, 3) RGB at the size of the cache.

        Read-only and mapped from disk: only indexed frames are read. They are decoded again if they were not
        kept.
        """
        return self.open_frames()

    @property
    def motion(self) -> NDArray[np.float16]:
        """Motion (N, 4, 8, 8) to the right, down, left and up in 8 x 8 cells: see `MotionMeter`.

        Read-only and mapped from disk. It is measured from the frames if the file is missing or damaged.
        """
        motion = self.find(MOTION_FILE, np.float16, MOTION_SHAPE)
        if motion is None:
            self._measure_motion()
            motion = self.find(MOTION_FILE, np.float16, MOTION_SHAPE)
        if motion is None:
            raise DataError(f"the motion of a video cannot be stored in {self.folder}. Delete that folder.")
        return motion

    def find(self, name: str, dtype: DTypeLike, shape: tuple[int | None, ...]) -> NDArray[Any] | None:
        """Map an array (N, *shape) of the entry from disk; None if it is missing or damaged."""
        return open_array(self.folder / name, dtype, (self.num_frames, *shape))

    @contextmanager
    def add(self, name: str) -> Iterator[Path]:
        """Yield a draft path for a file of the entry, to be written with a checksum."""
        path = self.folder / name
        with (
            explain_full_cache(self.folder.parent.parent),
            atomic_file(path, overwrite=True, flush=False) as draft,  # others may have been faster
        ):
            yield draft
            size = draft.stat().st_size
        self.on_growth(size)

    def _measure_motion(self) -> None:
        with self.add(MOTION_FILE) as draft, _measure_motion(draft) as push:
            for start in range(0, self.num_frames, CHUNK_FRAMES):
                chunk = slice(start, start + CHUNK_FRAMES)
                push(self.frames[chunk], self.times[chunk])


@contextmanager
def explain_full_cache(root: Path) -> Iterator[None]:
    """Say what to do if the cache in `root` cannot be written."""
    try:
        yield
    except (OSError, UserError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        raise DataError(
            f"cannot write the frame cache in {root}: {cause.strerror or cause}. Make room, for example with "
            f"cycleback cache clear, or set {CACHE_VARIABLE} to a writable folder with enough space."
        ) from cause


class FrameCache:
    """Frames of videos at one size, on disk.

    Args:
        root: folder of the cache, created on the first write; default `default_cache_root()`.
        size: (height, width) of the frames.
        fit: "stretch" the frame to the size, as the paper does, or "crop" its centre to keep proportions.
        decode: reads the frames of a video file; default `cycleback.video.iter_frames`.
    """

    def __init__(
        self,
        root: Path | str | None = None,
        *,
        size: tuple[int, int],
        fit: Fit = "stretch",
        decode: Callable[..., Iterator[FrameChunk]] | None = None,
    ) -> None:
        if len(size) != 2 or min(size) < 1:
            raise ValueError(f"size must be (height, width) in pixels, got {size!r}")
        if fit not in ("stretch", "crop"):
            raise ValueError(f"fit must be 'stretch' or 'crop', got {fit!r}")
        self.root = default_cache_root() if root is None else Path(root)
        self.size = (int(size[0]), int(size[1]))
        self.fit: Fit = fit
        self._decode = decode
        self._digests: dict[tuple[Path, int, int], str] = {}  # an unchanged file is hashed once
        self._room = CacheRoom(self.root)
        self._decoded: set[Path] = set()  # entries whose frames this object has decoded
        self._is_swept = False  # whether leftovers of killed processes were removed

    def folder(self, record: VideoRecord) -> Path:
        """Return the folder of a video's entry, which may not exist yet. Reads the video file to hash it."""
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
        """Return the entry of a video, which is decoded if it is missing or damaged."""
        return self._load(record, threading.Event(), with_frames=False)

    def find(self, record: VideoRecord) -> CachedFrames | None:
        """Return the entry of a video if there is one; nothing is decoded."""
        self._room.mark()
        return self._open(record, self.folder(record))

    def release(self, record: VideoRecord) -> None:
        """Remove the frames of a video if this object decoded them: what was measured from them is kept."""
        folder = self.folder(record)
        if folder in self._decoded:
            self._decoded.discard(folder)
            with suppress(OSError):  # where files that are mapped cannot be removed
                (folder / FRAMES_FILE).unlink()

    def keep(self, record: VideoRecord) -> None:
        """Let the frames of a video stay when it is released."""
        self._decoded.discard(self.folder(record))

    def load_tensors(self, records: Iterable[VideoRecord], *, device: "torch.device") -> "list[Tensor]":
        """Copy all frames of the videos into the memory of `device`, each video uint8 (N, H, W, 3)."""
        import torch

        records = list(records)
        videos = [self.load(record).frames for record in records]
        for record in records:
            self.keep(record)
        nbytes = sum(frames.nbytes for frames in videos)
        too_large = DataError(
            f"{nbytes / 2**30:.1f} GiB of frames do not fit into the memory of {device}. "
            "Lower data.frame_size, or use fewer videos."
        )
        if device.type == "cpu" and nbytes > memory_bytes():
            raise too_large
        try:
            return [torch.tensor(frames, device=device) for frames in videos]
        except torch.cuda.OutOfMemoryError as error:
            raise too_large from error

    def fill(
        self,
        records: Iterable[VideoRecord],
        *,
        progress: Counter = ignore,
        workers: int | None = None,
        with_frames: bool = True,
    ) -> None:
        """Decode all videos that are not in the cache yet; sequences need no decoding and are skipped.

        An interrupted fill keeps every finished video, and the next fill continues from there.
        When some videos cannot be used, a `DataError` names them; all others are then in the cache.

        Args:
            progress: called with (videos done, videos) after each video, in the calling thread.
            workers: videos decoded at a time (default: half the cores, at least 2). Decoding one video
                already uses several cores.
            with_frames: whether to decode videos again whose frames were not kept.
        """
        videos = [record for record in records if record.kind != "sequence"]
        filled = self._decode_all(videos, workers=workers, with_frames=lambda _: with_frames)
        for done, (record, is_usable) in enumerate(filled, start=1):
            if with_frames and is_usable:
                self.keep(record)
            progress(done, len(videos))

    def iter_filled(
        self, records: Sequence[VideoRecord], *, with_frames: Callable[[CachedFrames], bool] = lambda _: True
    ) -> Iterator[VideoRecord]:
        """Yield each video as soon as it is in the cache, while the next ones are being decoded.

        After a video that cannot be used no more are yielded. The error is raised when all are decoded, as by
        `fill`.

        Args:
            with_frames: tells whether to decode a video again whose frames were not kept.
        """
        has_failed = False
        for record, is_usable in self._decode_all(records, with_frames=with_frames):
            has_failed |= not is_usable
            if not has_failed:
                yield record

    def _decode_all(
        self,
        videos: Sequence[VideoRecord],
        *,
        with_frames: Callable[[CachedFrames], bool],
        workers: int | None = None,
    ) -> Iterator[tuple[VideoRecord, bool]]:
        """Yield each video once it is decoded, and whether it can be used; raise the errors at the end.

        Only a few videos are decoded ahead, so that frames that are released do not pile up.
        """
        stop = threading.Event()
        failures: dict[str, UserError] = {}
        workers = workers or max(2, (os.cpu_count() or 1) // 2)

        def fill_one(record: VideoRecord) -> None:
            self._load(record, stop, with_frames=with_frames)  # the result is dropped: mapped files add up

        with ThreadPoolExecutor(workers) as pool:
            waiting, running = iter(videos), dict[Future[None], VideoRecord]()
            try:
                while True:
                    for record in islice(waiting, workers + AHEAD - len(running)):
                        running[pool.submit(fill_one, record)] = record
                    if not running:
                        break
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        record, error = running.pop(future), future.exception()
                        if isinstance(error, UserError):
                            failures[record.name] = error
                        elif error is not None:
                            raise error
                        yield record, error is None
            except BaseException:  # Ctrl-C, or the caller stops: end the workers at their next chunk
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        _raise_failures(failures, videos)

    def _load(
        self,
        record: VideoRecord,
        stop: threading.Event,
        *,
        with_frames: bool | Callable[[CachedFrames], bool],
    ) -> CachedFrames:
        self._room.mark()
        folder = self.folder(record)
        entry = self._open(record, folder)
        if entry is not None and (not _asks(with_frames, entry) or self._find_frames(entry) is not None):
            return entry
        with self._decode_alone(folder, stop):  # meanwhile, another process may have decoded it
            return self._load_alone(record, folder, stop, with_frames=with_frames)

    def _load_alone(
        self,
        record: VideoRecord,
        folder: Path,
        stop: threading.Event,
        *,
        with_frames: bool | Callable[[CachedFrames], bool],
    ) -> CachedFrames:
        for attempt in range(MAX_ATTEMPTS):
            is_there = folder.exists()
            entry = self._open(record, folder)
            if entry is not None:
                if not _asks(with_frames, entry) or self._find_frames(entry) is not None:
                    return entry
                if self._write_frames(record, entry, stop):
                    continue
            if attempt + 1 < MAX_ATTEMPTS:
                self._write(record, folder, stop, is_damaged=is_there)
        raise DataError(f"{record.name}: its frames cannot be stored in {folder}. Delete that folder.")

    @contextmanager
    def _decode_alone(self, folder: Path, stop: threading.Event) -> Iterator[None]:
        """Keep other processes and threads from decoding the same video until the block ends.

        The lock of a killed process is free again. A cache that cannot be written has no locks.
        """
        lock = self.root / LOCKS / folder.name
        with ExitStack() as held:
            while not _try_lock(lock, held):
                if stop.is_set():
                    raise DataError("decoding was stopped")
                time.sleep(LOCK_POLL_S)
            yield

    def _open(self, record: VideoRecord, folder: Path) -> CachedFrames | None:
        """Open the entry in `folder`, or return None if it is missing or damaged (truncated, unreadable)."""
        try:
            num_frames = int(json.loads((folder / "meta.json").read_text("utf-8"))["num_frames"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        times = open_array(folder / TIMES_FILE, np.float64, (num_frames,))
        if times is None:
            return None

        def open_frames() -> NDArray[np.uint8]:
            whole = self._load(record, threading.Event(), with_frames=True)
            frames = self._find_frames(whole)
            if frames is None:
                raise DataError(
                    f"{record.name}: another program removed its frames from {folder}. Try again."
                )
            return frames

        return CachedFrames(np.array(times), folder, open_frames, self._room.grew)

    def _find_frames(self, entry: CachedFrames) -> NDArray[np.uint8] | None:
        return entry.find(FRAMES_FILE, np.uint8, (*self.size, 3))

    def _decode_chunks(self, record: VideoRecord, stop: threading.Event) -> Iterator[FrameChunk]:
        read = iter_images if record.kind == "frames" else self._decode or iter_frames
        for chunk in read(record.path, size=self.size, fit=self.fit):
            if stop.is_set():
                raise DataError("decoding was stopped")
            yield chunk

    def _write_frames(self, record: VideoRecord, entry: CachedFrames, stop: threading.Event) -> bool:
        """Decode the frames of an entry again; return whether they are as many as before."""
        count = 0
        with (
            entry.add(FRAMES_FILE) as draft,
            write_rows(draft, np.uint8, (*self.size, 3), with_checksum=True) as append,
        ):
            for chunk in self._decode_chunks(record, stop):
                append(chunk.frames)
                count += len(chunk.frames)
        self._decoded.add(entry.folder)
        if count != entry.num_frames:  # the entry is of another decoder
            (entry.folder / TIMES_FILE).unlink(missing_ok=True)
        return count == entry.num_frames

    def _write(self, record: VideoRecord, folder: Path, stop: threading.Event, *, is_damaged: bool) -> None:
        with explain_full_cache(self.root):
            if is_damaged:
                _discard_damaged(folder, lambda place: self._open(record, place) is not None)
            if not self._is_swept:
                self._is_swept = True
                remove_abandoned(folder.parent)
            chunks = self._decode_chunks(record, stop)
            size = _write_entry(folder, chunks, size=self.size, source=str(record.path))
        self._decoded.add(folder)
        self._room.grew(size)


def _try_lock(lock: Path, held: ExitStack) -> bool:
    """Take a lock until `held` is closed, which removes its file; return whether it was free."""
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()
    except OSError:  # the cache cannot be written, and whoever writes next says so
        return True
    with ExitStack() as taken:
        try:
            if not taken.enter_context(hold_lock(lock, wait=False)):
                return False
        except FileNotFoundError:  # its owner has just removed it
            return False
        held.push(taken.pop_all())
    held.callback(lock.unlink, missing_ok=True)
    return True


def _asks(with_frames: bool | Callable[[CachedFrames], bool], entry: CachedFrames) -> bool:
    return with_frames if isinstance(with_frames, bool) else with_frames(entry)


def memory_bytes() -> float:
    """Return the memory of this machine; infinite if the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _raise_failures(failures: dict[str, UserError], records: Sequence[VideoRecord]) -> None:
    """Raise the only error unchanged, or the first with the names of the other videos, in their order."""
    failed = [record.name for record in records if record.name in failures]
    if len(failed) == 1:
        raise failures[failed[0]]
    if failed:
        others = ", ".join(failed[1:6]) + (", …" if len(failed) > 6 else "")
        raise DataError(
            f"{len(failed)} of {len(records)} videos cannot be used. {failed[0]}: {failures[failed[0]]} "
            f"The others: {others}."
        )


def _write_entry(folder: Path, chunks: Iterable[FrameChunk], *, size: tuple[int, int], source: str) -> int:
    """Write an entry chunk by chunk, in constant memory, and rename it to `folder` when it is complete.

    Returns its bytes.

    If another process has completed the same entry meanwhile, that one stays: both hold the same frames.
    `source` is stored in meta.json for people who look into the cache.
    """
    temporary = folder.parent / f"{TEMPORARY}{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex}"
    temporary.mkdir(parents=True)
    try:
        with hold_lock(temporary):
            times = _stream_chunks(temporary, chunks, size)
            write_array(temporary / TIMES_FILE, times, with_checksum=True)
            meta = {"version": FORMAT_VERSION, "num_frames": len(times), "source": source}
            (temporary / "meta.json").write_text(json.dumps(meta), "utf-8")
            nbytes = sum(path.stat().st_size for path in temporary.iterdir())
            _rename(temporary, folder)
            return nbytes
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _stream_chunks(folder: Path, chunks: Iterable[FrameChunk], size: tuple[int, int]) -> NDArray[np.float64]:
    """Write the frames of all chunks and their motion, and return their times (N,)."""
    times: list[NDArray[np.float64]] = [np.empty(0)]
    with (
        write_rows(folder / FRAMES_FILE, np.uint8, (*size, 3), with_checksum=True) as append,
        _measure_motion(folder / MOTION_FILE) as push,
    ):
        for chunk in chunks:
            append(chunk.frames)
            push(chunk.frames, chunk.times)
            times.append(chunk.times)
    return np.concatenate(times)


@contextmanager
def _measure_motion(path: Path) -> Iterator[Callable[[NDArray[np.uint8], NDArray[np.float64]], None]]:
    """Create the motion file of a video and yield a function that takes its next frames and their times."""
    meter = MotionMeter()
    with write_rows(path, np.float16, MOTION_SHAPE) as append:
        yield lambda frames, times: append(meter.push(frames, times))
    motion = np.load(path, mmap_mode="r")
    if len(motion) > 1:
        with path.open("r+b") as stream:  # no frame is shown before the first
            stream.seek(motion.offset)
            stream.write(motion[1].tobytes())
    add_checksum(path)


def _rename(temporary: Path, folder: Path) -> None:
    """Rename a complete entry to its final name; an existing entry stays."""
    try:
        os.replace(temporary, folder)
    except OSError:
        if not folder.is_dir():
            raise


def _discard_damaged(folder: Path, is_whole: Callable[[Path], bool]) -> None:
    """Remove a damaged entry; if another process has just replaced it, put the good one back."""
    trash = folder.parent / f"{TEMPORARY}{uuid.uuid4().hex}"
    try:
        os.replace(folder, trash)
    except FileNotFoundError:
        return
    if is_whole(trash):
        _rename(trash, folder)
    shutil.rmtree(trash, ignore_errors=True)


def remove_abandoned(folder: Path) -> None:
    """Remove temporary folders whose process was killed while filling."""
    for path in filter(_is_abandoned, folder.glob(f"{TEMPORARY}*")):
        shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(temporary: Path) -> bool:
    try:
        age = time.time() - temporary.stat().st_mtime
    except OSError:
        return False  # just renamed or removed
    return age >= MIN_AGE_S and is_abandoned(temporary)
