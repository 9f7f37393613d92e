"""One video in the frame cache: a folder of frames.npy, times.npy and meta.json, whole or not there.

Letters: N frames of a video, H W pixels.
"""

import json
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from cycleback.video import FrameChunk

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT_VERSION = 1
TEMPORARY = ".filling-"
YOUNG_S = 60.0  # a temporary folder of this age may not be locked yet
ABANDONED_S = 24 * 3600.0  # where files cannot be locked, age alone tells


@dataclass(frozen=True)
class CachedFrames:
    """All frames of one video at the size of the cache.

    Attributes:
        frames: uint8 (N, H, W, 3) RGB, read-only, mapped from disk: only what is indexed is read.
        times: float64 (N,) presentation time of each frame in seconds, the first at 0.
    """

    frames: NDArray[np.uint8]
    times: NDArray[np.float64]

    @property
    def num_frames(self) -> int:
        """N."""
        return len(self.times)


def open_entry(folder: Path, size: tuple[int, int]) -> CachedFrames | None:
    """The entry in `folder`, or None when there is none or it is damaged (cut short, not readable)."""
    try:
        meta = json.loads((folder / "meta.json").read_text("utf-8"))
        frames = np.load(folder / "frames.npy", mmap_mode="r", allow_pickle=False)
        times = np.load(folder / "times.npy", allow_pickle=False)
        expected = (int(meta["num_frames"]), *size, 3)
        is_whole = frames.shape == expected and frames.dtype == np.uint8 and times.shape == expected[:1]
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None
    return CachedFrames(frames, times) if is_whole else None


def write_entry(folder: Path, chunks: Iterable[FrameChunk], *, size: tuple[int, int], source: str) -> None:
    """Write an entry chunk by chunk, in constant memory, and move it to `folder` when it is complete.

    Where another process has completed the same entry meanwhile, that one stays: both hold the same frames.
    `source` is noted in meta.json for whoever looks into the cache.
    """
    temporary = folder.parent / f"{TEMPORARY}{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex}"
    temporary.mkdir(parents=True)
    try:
        with _locked(temporary):
            with (temporary / "frames.npy").open("wb") as stream:
                times = _stream_frames(stream, chunks, size)
            np.save(temporary / "times.npy", times)
            meta = {"version": FORMAT_VERSION, "num_frames": len(times), "source": source}
            (temporary / "meta.json").write_text(json.dumps(meta), "utf-8")
            _move(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _stream_frames(
    stream: IO[bytes], chunks: Iterable[FrameChunk], size: tuple[int, int]
) -> NDArray[np.float64]:
    """Append the frames of all chunks as one .npy array; returns their times (N,).

    The header is written for no frames first and again at the end: numpy leaves room in it for the first axis
    to grow.
    """
    _write_header(stream, 0, size)
    start = stream.tell()
    times: list[NDArray[np.float64]] = [np.empty(0)]
    for chunk in chunks:
        stream.write(np.ascontiguousarray(chunk.frames).data)
        times.append(chunk.times)
    joined = np.concatenate(times)
    stream.seek(0)
    _write_header(stream, len(joined), size)
    if stream.tell() != start:
        raise RuntimeError(f"the header of frames.npy grew from {start} to {stream.tell()} bytes")
    return joined


def _write_header(stream: IO[bytes], num_frames: int, size: tuple[int, int]) -> None:
    header = {"descr": "|u1", "fortran_order": False, "shape": (num_frames, *size, 3)}
    np.lib.format.write_array_header_1_0(stream, header)


def _move(temporary: Path, folder: Path) -> None:
    """Give a complete entry its name; an entry that is already there wins."""
    try:
        os.replace(temporary, folder)
    except OSError:
        if not folder.is_dir():
            raise


def discard_damaged(folder: Path, size: tuple[int, int]) -> None:
    """Remove a damaged entry in one step; one that another process has replaced meanwhile is put back."""
    trash = folder.parent / f"{TEMPORARY}{uuid.uuid4().hex}"
    try:
        os.replace(folder, trash)
    except FileNotFoundError:
        return
    if open_entry(trash, size) is not None:
        _move(trash, folder)
    shutil.rmtree(trash, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder that the system drops when this process ends, however it ends."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems cannot lock; then age tells, as without fcntl
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def remove_abandoned(folder: Path) -> int:
    """Remove temporary folders whose process is gone (killed while filling); returns how many."""
    abandoned = [path for path in folder.glob(f"{TEMPORARY}*") if _is_abandoned(path)]
    for path in abandoned:
        shutil.rmtree(path, ignore_errors=True)
    return len(abandoned)


def _is_abandoned(temporary: Path) -> bool:
    try:
        age = time.time() - temporary.stat().st_mtime
        if age < YOUNG_S or fcntl is None:
            return age > ABANDONED_S
        handle = os.open(temporary, os.O_RDONLY)
    except OSError:
        return False  # just moved or removed
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return age > ABANDONED_S
    finally:
        os.close(handle)
    return True
