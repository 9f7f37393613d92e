"""Read frames: all of them in chunks, or any of them by number.

Letters: T sampled frames, N frames of a whole video, H W pixels.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.video import opencv
from cycleback.video.backend import load_opencv
from cycleback.video.decoding import decode_in_order
from cycleback.video.info import FrameChunk
from cycleback.video.probe import probe
from cycleback.video.random_access import read_ascending
from cycleback.video.scaling import Fit, FrameScaler, Size, checked_size
from cycleback.video.source import checked_file

Indices = Sequence[int] | NDArray[np.integer[Any]]


def iter_frames(
    path: str | os.PathLike[str],
    *,
    size: Size | None = None,
    chunk_frames: int = 64,
    fit: Fit = "stretch",
) -> Iterator[FrameChunk]:
    """All frames of a video in the order they are shown, `chunk_frames` at a time.

    Memory grows with the chunk, not with the video. A damaged file yields what can be decoded, then gives a
    DamagedVideoWarning.

    Args:
        path: Video file.
        size: (height, width) of the frames; None keeps the video's own.
        chunk_frames: Frames in a chunk; the last may have fewer.
        fit: "stretch" to `size`, or "crop": scale until `size` is covered, then cut the middle out.
    """
    checked_size(size, fit)
    if chunk_frames < 1:
        raise ValueError(f"chunk_frames must be at least 1, got {chunk_frames!r}")
    file = checked_file(path)
    cv2 = load_opencv()
    if cv2 is not None:
        return opencv.iter_frames(cv2, file, size=size, chunk_frames=chunk_frames, fit=fit)
    return _chunks(file, size=size, chunk_frames=chunk_frames, fit=fit)


def _chunks(file: Path, *, size: Size | None, chunk_frames: int, fit: Fit) -> Iterator[FrameChunk]:
    scaler: FrameScaler | None = None
    frames: NDArray[np.uint8] | None = None
    times: list[float] = []
    start = 0
    for source, frame, seconds in decode_in_order(file):
        scaler = scaler or FrameScaler(size, fit, aspect=source.pixel_aspect)
        if frames is None:
            frames = scaler.buffer(chunk_frames, frame)
        scaler.write(frame, frames[len(times)])
        times.append(seconds)
        if len(times) == chunk_frames:
            yield FrameChunk(frames, np.array(times), start)
            start, frames, times = start + chunk_frames, None, []
    if frames is not None:
        yield FrameChunk(frames[: len(times)], np.array(times), start)


def read_frames(
    path: str | os.PathLike[str],
    indices: Indices,
    *,
    size: Size | None = None,
    fit: Fit = "stretch",
) -> NDArray[np.uint8]:
    """Frames uint8 (T, H, W, 3) at `indices` (T,), exactly, in the order given; repeats are allowed.

    Frame 0 is the first one shown. Each stretch of the file is decoded once.

    Args:
        path: Video file.
        indices: Frame numbers, each from 0 to N - 1.
        size: (height, width) of the frames; None keeps the video's own.
        fit: "stretch" to `size`, or "crop": scale until `size` is covered, then cut the middle out.
    """
    checked_size(size, fit)
    wanted = _checked_indices(indices)
    file = checked_file(path)
    if len(wanted) == 0:
        info = probe(file)
        return np.empty((0, *(size or (info.height, info.width)), 3), dtype=np.uint8)
    numbers, places = np.unique(wanted, return_inverse=True)
    cv2 = load_opencv()
    if cv2 is not None:
        return opencv.read_ascending(cv2, file, numbers, size=size, fit=fit)[places]
    return read_ascending(file, numbers, size=size, fit=fit)[places]


def _checked_indices(indices: Indices) -> NDArray[np.int64]:
    array = np.asarray(indices)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"indices must be whole numbers (T,), got {array.dtype} {array.shape}")
    return array.astype(np.int64)
