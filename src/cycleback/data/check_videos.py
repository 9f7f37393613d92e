"""Look into one video: how long and large it is, and whether all of it can be read.

Letters: N frames of a video, F features.
"""

import warnings
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cycleback.data.image_folder import folder_fps, image_paths, iter_images, read_image
from cycleback.data.records import VideoRecord
from cycleback.data.report import Problem, VideoRow
from cycleback.data.sequences import load_sequence
from cycleback.errors import DamagedVideoWarning, DataError, VideoError
from cycleback.video import FrameChunk, frame_times, iter_frames, probe

THUMBNAIL = (16, 16)  # the pictures are decoded and thrown away

Measured = tuple[VideoRow, NDArray[np.float64], list[Problem]]


def measure(record: VideoRecord, *, decode: bool) -> Measured:
    """The row of a video, its frame times (N,), and its problems; an unreadable video has no frames."""
    row = VideoRow(record.name, record.action, record.split, record.kind, labels=len(record.events))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DamagedVideoWarning)
            row, times, problems = _measure(record, row, decode=decode)
    except (VideoError, DataError) as error:
        return row, np.empty(0), [Problem("error", record.name, f"cannot be read: {error}")]
    damages = [str(each.message) for each in caught if issubclass(each.category, DamagedVideoWarning)]
    problems += [Problem("warning", record.name, damage) for damage in dict.fromkeys(damages)]
    return row, times, problems


def _measure(record: VideoRecord, row: VideoRow, *, decode: bool) -> Measured:
    if record.kind == "sequence":
        return _measure_sequence(record, row)
    if record.kind == "frames":
        return _measure_images(record, row, decode=decode)
    info = probe(record.path)
    times = _times(iter_frames(record.path, size=THUMBNAIL)) if decode else frame_times(record.path)
    size = (info.height, info.width)
    return replace(row, num_frames=len(times), fps=info.fps, size=size, duration_s=info.duration_s), times, []


def _measure_images(record: VideoRecord, row: VideoRow, *, decode: bool) -> Measured:
    paths, fps = image_paths(record.path), folder_fps(record.path)
    size = read_image(paths[0]).shape[:2]
    times = _times(iter_images(record.path, size=THUMBNAIL)) if decode else np.arange(len(paths)) / fps
    return replace(row, num_frames=len(times), fps=fps, size=size, duration_s=len(times) / fps), times, []


def _times(chunks: Iterable[FrameChunk]) -> NDArray[np.float64]:
    """Times (N,) of the frames that can be decoded."""
    return np.concatenate([np.empty(0), *(chunk.times for chunk in chunks)])


def _measure_sequence(record: VideoRecord, row: VideoRow) -> Measured:
    sequence = load_sequence(record)
    num_frames, size = sequence.features.shape
    duration = float(sequence.times[-1] - sequence.times[0]) * num_frames / max(1, num_frames - 1)
    fps = num_frames / duration if duration > 0 else 0.0
    row = replace(row, num_frames=num_frames, fps=fps, size=(size,), duration_s=duration)
    bad = np.flatnonzero(~np.isfinite(sequence.features).all(axis=1))
    if not bad.size:
        return row, sequence.times, []
    message = f"{bad.size} of {num_frames} frames hold NaN or infinity (first: {bad[0]})."
    return row, sequence.times, [Problem("error", record.name, f"{message} Fill them in, or cut them out.")]
