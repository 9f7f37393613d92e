"""Any frames of a video by number: jump to the keyframe before each, decode forward, match by time stamp.

Letters: T sampled frames, H W pixels.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.video.backend import load_av
from cycleback.video.decoding import decode_in_order
from cycleback.video.index import FrameIndex, read_index
from cycleback.video.scaling import Fit, FrameScaler, Size
from cycleback.video.source import VideoSource, check_range, open_video

SEEK_GAIN = 8  # to decode this many frames more is cheaper than to jump over them


def read_ascending(
    file: Path, numbers: NDArray[np.int64], *, size: Size | None, fit: Fit
) -> NDArray[np.uint8]:
    """Frames uint8 (T, H, W, 3) at frame `numbers` (T >= 1,), which ascend."""
    with open_video(file) as source:
        index = read_index(source)
    check_range(file, numbers, index.num_frames)
    frames = _read_by_seeking(file, index, numbers, size=size, fit=fit) if index.can_seek else None
    return _read_in_order(file, numbers, size=size, fit=fit) if frames is None else frames


def _read_by_seeking(
    file: Path, index: FrameIndex, numbers: NDArray[np.int64], *, size: Size | None, fit: Fit
) -> NDArray[np.uint8] | None:
    """The frames (T, H, W, 3), or None where the file does not lead to one of them."""
    out: NDArray[np.uint8] | None = None
    with open_video(file) as source:
        scaler = FrameScaler(size, fit, aspect=source.pixel_aspect)
        for slot, frame in enumerate(_found_frames(source, index, numbers)):
            if frame is None:
                return None
            if out is None:
                out = scaler.buffer(len(numbers), frame)
            scaler.write(frame, out[slot])
    return out


def _found_frames(source: VideoSource, index: FrameIndex, numbers: NDArray[np.int64]) -> Iterator[Any | None]:
    """The av.VideoFrame of each of `numbers`, which ascend; None where it cannot be found."""
    av = load_av("reading video")
    position = -1  # number of the frame decoded last
    decoder = source.container.decode(source.stream)
    try:
        for number in numbers.tolist():
            keyframe = index.keyframe_before(number)
            if keyframe - position > SEEK_GAIN:
                source.container.seek(int(index.pts[keyframe]), stream=source.stream)
                decoder = source.container.decode(source.stream)
            yield _advance(decoder, int(index.pts[number]))
            position = number
    except av.error.FFmpegError:
        yield None


def _advance(decoder: Iterator[Any], pts: int) -> Any | None:
    """Decode up to the frame stamped `pts`; None where the decoder passes it by."""
    for frame in decoder:
        if frame.pts == pts:
            return frame
        if frame.pts is None or frame.pts > pts:
            return None
    return None


def _read_in_order(
    file: Path, numbers: NDArray[np.int64], *, size: Size | None, fit: Fit
) -> NDArray[np.uint8]:
    """The frames (T, H, W, 3) by decoding from the start, for files that cannot be searched."""
    out: NDArray[np.uint8] | None = None
    scaler: FrameScaler | None = None
    slots = {number: slot for slot, number in enumerate(numbers.tolist())}
    count = 0
    for count, (source, frame, _) in enumerate(decode_in_order(file), start=1):
        slot = slots.get(count - 1)
        if slot is None:
            continue
        scaler = scaler or FrameScaler(size, fit, aspect=source.pixel_aspect)
        if out is None:
            out = scaler.buffer(len(numbers), frame)
        scaler.write(frame, out[slot])
    check_range(file, numbers, count)
    assert out is not None  # numbers is not empty and all of them were met
    return out
