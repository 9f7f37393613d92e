"""The frame cache: decode and resize each video once, then map its frames from disk.

A cache is a folder that may be deleted at any time. Entries are found by the content of the video and the
settings, so moved or renamed videos are not decoded again. Several processes may use one cache at once.

An entry is a folder of frames.npy, times.npy, motion.npy and meta.json. It is not written through
`cycleback.files`: several processes may write the same entry, the first complete one stays, and gigabytes
that can be decoded again are not flushed to disk. Entries of earlier versions have no motion.npy; it is
measured from their frames when it is first read. A new formula of motion needs a new file name.

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
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cycleback.data.records import VideoRecord
from cycleback.data.sources import iter_images, record_digest
from cycleback.errors import DataError, UserError
from cycleback.files import atomic_file
from cycleback.progress import Counter, ignore
from cycleback.video import FrameChunk, iter_frames
from cycleback.video.motion import MOTION_SHAPE, MotionMeter
from cycleback.video.scaling import Fit

if TYPE_CHECKING:
    import torch
    from torch import Tensor

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

CACHE_VARIABLE = "CYCLEBACK_CACHE"
FORMAT_VERSION = 1
MOTION_FILE = "motion.npy"
CHUNK_FRAMES = 64  # read at a time to measure motion
MAX_ATTEMPTS = 4  # to open an entry: another process may be replacing the same damaged one
TEMPORARY = ".filling-"
MIN_AGE_S = 60.0  # a temporary folder younger than this may not be locked yet
ABANDONED_S = 24 * 3600.0  # where files cannot be locked, only the age tells


def default_cache_root() -> Path:
    """Return the folder named by the environment variable CYCLEBACK_CACHE, or ~/.cache/cycleback."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "cycleback").expanduser()


@dataclass(frozen=True)
class CachedFrames:
    """All frames of one video at the size of the cache."""

    frames: NDArray[np.uint8]  # (N, H, W, 3) RGB, read-only, mapped from disk: only indexed frames are read
    times: NDArray[np.float64]  # (N,) presentation time of each frame in seconds, the first at 0
    folder: Path  # of the entry

    @property
    def num_frames(self) -> int:
        """N."""
        return len(self.times)

    @property
    def motion(self) -> NDArray[np.float16]:
        """Motion (N, 4, 8, 8) to the right, down, left and up in 8 x 8 cells: see `MotionMeter`.

        Read-only and mapped from disk. It is measured from the frames if the file is missing or damaged.
        """
        path = self.folder / MOTION_FILE
        motion = _open_motion(path, self.num_frames)
        if motion is None:
            self._measure_motion(path)
            motion = _open_motion(path, self.num_frames)
        if motion is None:
            raise DataError(f"the motion of a video cannot be stored in {path}. Delete that file.")
        return motion

    def _measure_motion(self, path: Path) -> None:
        with atomic_file(path, overwrite=True) as draft, _measure_motion(draft) as push:
            for start in range(0, self.num_frames, CHUNK_FRAMES):
                chunk = slice(start, start + CHUNK_FRAMES)
                push(self.frames[chunk], self.times[chunk])


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
        """Return the frames of a video, decoding them if the entry is missing or damaged."""
        return self._load(record, threading.Event())

    def load_tensors(self, records: Iterable[VideoRecord], *, device: "torch.device") -> "list[Tensor]":
        """Copy all frames of the videos into the memory of `device`, each video uint8 (N, H, W, 3)."""
        import torch

        videos = [self.load(record).frames for record in records]
        nbytes = sum(frames.nbytes for frames in videos)
        too_large = DataError(
            f"{nbytes / 2**30:.1f} GiB of frames do not fit into the memory of {device}. "
            "Lower data.frame_size, or use fewer videos."
        )
        if device.type == "cpu" and nbytes > _memory_bytes():
            raise too_large
        try:
            return [torch.tensor(frames, device=device) for frames in videos]
        except torch.cuda.OutOfMemoryError as error:
            raise too_large from error

    def fill(
        self, records: Iterable[VideoRecord], *, progress: Counter = ignore, workers: int | None = None
    ) -> None:
        """Decode all videos that are not in the cache yet; sequences need no decoding and are skipped.

        An interrupted fill keeps every finished video, and the next fill continues from there.
        When some videos cannot be used, a `DataError` names them; all others are then in the cache.

        Args:
            progress: called with (videos done, videos) after each video, in the calling thread.
            workers: videos decoded at a time (default: half the cores, at least 2). Decoding one video
                already uses several cores.
        """
        videos = [record for record in records if record.kind != "sequence"]
        for done, _ in enumerate(self._decode_all(videos, workers=workers), start=1):
            progress(done, len(videos))

    def iter_filled(self, records: Sequence[VideoRecord]) -> Iterator[VideoRecord]:
        """Yield each video as soon as it is in the cache, while the others are being decoded.

        After a video that cannot be used no more are yielded. The error is raised when all are decoded, as by
        `fill`.
        """
        has_failed = False
        for record, is_usable in self._decode_all(records):
            has_failed |= not is_usable
            if not has_failed:
                yield record

    def _decode_all(
        self, videos: Sequence[VideoRecord], *, workers: int | None = None
    ) -> Iterator[tuple[VideoRecord, bool]]:
        """Yield each video once it is decoded, and whether it can be used; raise the errors at the end."""
        stop = threading.Event()
        failures: dict[str, UserError] = {}

        def fill_one(record: VideoRecord) -> None:
            self._load(record, stop)  # the result is dropped, so that a thousand videos are not held open

        with ThreadPoolExecutor(workers or max(2, (os.cpu_count() or 1) // 2)) as pool:
            futures = {pool.submit(fill_one, record): record for record in videos}
            try:
                for future in as_completed(futures):
                    error = future.exception()
                    if isinstance(error, UserError):
                        failures[futures[future].name] = error
                    elif error is not None:
                        raise error
                    yield futures[future], error is None
            except BaseException:  # Ctrl-C, or the caller stops: end the workers at their next chunk
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        _raise_failures(failures, videos)

    def _load(self, record: VideoRecord, stop: threading.Event) -> CachedFrames:
        folder = self.folder(record)
        for attempt in range(MAX_ATTEMPTS):
            is_there = folder.exists()
            entry = _open_entry(folder, self.size)
            if entry is not None:
                return entry
            if attempt + 1 < MAX_ATTEMPTS:
                self._write(record, folder, stop, is_damaged=is_there)
        raise DataError(f"{record.name}: its frames cannot be stored in {folder}. Delete that folder.")

    def _write(self, record: VideoRecord, folder: Path, stop: threading.Event, *, is_damaged: bool) -> None:
        read = iter_images if record.kind == "frames" else self._decode or iter_frames

        def decode() -> Iterator[FrameChunk]:
            for chunk in read(record.path, size=self.size, fit=self.fit):
                if stop.is_set():
                    raise DataError("decoding was stopped")
                yield chunk

        try:
            if is_damaged:
                _discard_damaged(folder, self.size)
            remove_abandoned(folder.parent)
            _write_entry(folder, decode(), size=self.size, source=str(record.path))
        except OSError as error:
            raise DataError(
                f"cannot write the frame cache in {self.root}: {error.strerror or error}. "
                f"Set {CACHE_VARIABLE} to a writable folder with enough space."
            ) from error


def _memory_bytes() -> float:
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


def _open_entry(folder: Path, size: tuple[int, int]) -> CachedFrames | None:
    """Open the entry in `folder`, or return None if it is missing or damaged (truncated, unreadable)."""
    try:
        meta = json.loads((folder / "meta.json").read_text("utf-8"))
        frames = np.load(folder / "frames.npy", mmap_mode="r", allow_pickle=False)
        times = np.load(folder / "times.npy", allow_pickle=False)
        expected = (int(meta["num_frames"]), *size, 3)
        is_whole = frames.shape == expected and frames.dtype == np.uint8 and times.shape == expected[:1]
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None
    return CachedFrames(frames, times, folder) if is_whole else None


def _open_motion(path: Path, num_frames: int) -> NDArray[np.float16] | None:
    """Open the motion of an entry, or return None if it is missing or damaged."""
    try:
        motion: NDArray[np.float16] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return motion if motion.shape == (num_frames, *MOTION_SHAPE) and motion.dtype == np.float16 else None


def _write_entry(folder: Path, chunks: Iterable[FrameChunk], *, size: tuple[int, int], source: str) -> None:
    """Write an entry chunk by chunk, in constant memory, and rename it to `folder` when it is complete.

    If another process has completed the same entry meanwhile, that one stays: both hold the same frames.
    `source` is stored in meta.json for people who look into the cache.
    """
    temporary = folder.parent / f"{TEMPORARY}{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex}"
    temporary.mkdir(parents=True)
    try:
        with _lock(temporary):
            times = _stream_chunks(temporary, chunks, size)
            np.save(temporary / "times.npy", times)
            meta = {"version": FORMAT_VERSION, "num_frames": len(times), "source": source}
            (temporary / "meta.json").write_text(json.dumps(meta), "utf-8")
            _rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _stream_chunks(folder: Path, chunks: Iterable[FrameChunk], size: tuple[int, int]) -> NDArray[np.float64]:
    """Write the frames of all chunks and their motion, and return their times (N,)."""
    times: list[NDArray[np.float64]] = [np.empty(0)]
    with (
        _grow_array(folder / "frames.npy", np.uint8, (*size, 3)) as append,
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
    with _grow_array(path, np.float16, MOTION_SHAPE) as append:
        yield lambda frames, times: append(meter.push(frames, times))
    motion = np.load(path, mmap_mode="r+")
    if len(motion) > 1:
        motion[0] = motion[1]  # no frame is shown before the first


@contextmanager
def _grow_array(
    path: Path, dtype: DTypeLike, shape: tuple[int, ...]
) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Create an .npy file (N, *shape) and yield a function that appends rows (n, *shape) to it.

    The header is first written for zero rows and rewritten at the end: numpy leaves room in it for the first
    axis to grow.
    """
    length = 0

    def append(rows: NDArray[Any]) -> None:
        nonlocal length
        stream.write(np.ascontiguousarray(rows).data)
        length += len(rows)

    with path.open("wb") as stream:
        _write_header(stream, dtype, (0, *shape))
        start = stream.tell()
        yield append
        stream.seek(0)
        _write_header(stream, dtype, (length, *shape))
        if stream.tell() != start:
            raise RuntimeError(f"the header of {path.name} grew from {start} to {stream.tell()} bytes")


def _write_header(stream: IO[bytes], dtype: DTypeLike, shape: tuple[int, ...]) -> None:
    descr = np.lib.format.dtype_to_descr(np.dtype(dtype))
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)


def _rename(temporary: Path, folder: Path) -> None:
    """Rename a complete entry to its final name; an existing entry stays."""
    try:
        os.replace(temporary, folder)
    except OSError:
        if not folder.is_dir():
            raise


def _discard_damaged(folder: Path, size: tuple[int, int]) -> None:
    """Remove a damaged entry; if another process has just replaced it, put the good one back."""
    trash = folder.parent / f"{TEMPORARY}{uuid.uuid4().hex}"
    try:
        os.replace(folder, trash)
    except FileNotFoundError:
        return
    if _open_entry(trash, size) is not None:
        _rename(trash, folder)
    shutil.rmtree(trash, ignore_errors=True)


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder; the system releases it when this process ends for any reason."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems cannot lock; then only the age tells
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def remove_abandoned(folder: Path) -> None:
    """Remove temporary folders whose process was killed while filling."""
    for path in filter(_is_abandoned, folder.glob(f"{TEMPORARY}*")):
        shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(temporary: Path) -> bool:
    try:
        age = time.time() - temporary.stat().st_mtime
        if age < MIN_AGE_S or fcntl is None:
            return age > ABANDONED_S
        handle = os.open(temporary, os.O_RDONLY)
    except OSError:
        return False  # just renamed or removed
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return age > ABANDONED_S
    finally:
        os.close(handle)
    return True
