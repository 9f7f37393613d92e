"""Read a video: its properties, all its frames in chunks, or any frames by number.

Letters: T requested frames, N frames of a whole video, H W pixels.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.errors import VideoError
from cycleback.video.decoding import decode_first_frame, decode_in_order
from cycleback.video.index import FrameIndex, read_index, scan_packets, warn_if_damaged
from cycleback.video.scaling import Fit, FrameScaler, Size, check_size, count_quarter_turns, display_size
from cycleback.video.source import VideoSource, check_file, load_av, open_video

Indices = Sequence[int] | NDArray[np.integer[Any]]
SEEK_GAIN = 8  # decoding up to this many extra frames is cheaper than a seek


@dataclass(frozen=True)
class VideoInfo:
    """Properties of a video file; width and height are those of the picture as displayed."""

    path: Path
    width: int
    height: int
    num_frames: int  # frames that can be shown
    fps: float  # average
    duration_s: float  # from the first frame to the end of the last
    codec: str  # "h264", "vp9", …
    pixel_format: str  # how pixels are stored: "yuv420p", "gray", …
    rotation: int  # degrees the stored picture is turned counter-clockwise for display: 0, 90, 180 or 270
    is_variable_rate: bool  # whether the time between frames varies
    has_audio: bool
    audio_rate: int | None  # samples per second; None without sound
    audio_channels: int  # 0 without sound
    container: str = ""  # "mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm", …, as FFmpeg names the format
    pixel_aspect: float = 1.0  # width of a displayed pixel over its height

    @property
    def aspect(self) -> float:
        """Width over height of the picture as displayed, also if its pixels are not square."""
        return self.width * self.pixel_aspect / self.height


@dataclass(frozen=True)
class FrameChunk:
    """Consecutive frames of a video, or of the frames chosen from it."""

    frames: NDArray[np.uint8]  # (n, H, W, 3) RGB
    times: NDArray[np.float64]  # (n,) seconds since the first frame of the video
    start: int  # how many frames were yielded before these


def probe(path: str | os.PathLike[str]) -> VideoInfo:
    """Read the properties of a video file; reads all packets, decodes one frame.

    If the end of the file is missing, only the frames it has are counted, with a DamagedVideoWarning.
    """
    info, index = inspect(path)
    warn_if_damaged(info.path, kept=index.num_frames, promise=index.promise)
    return info


def inspect(path: str | os.PathLike[str]) -> tuple[VideoInfo, FrameIndex]:
    """Read the properties of a video file and where its frames are, without a warning for a damaged file."""
    file = check_file(path)
    with open_video(file, threaded=False) as source:
        frame = decode_first_frame(source)
    with open_video(file) as source:
        index = scan_packets(source)
        height, width = display_size(frame)
        turns = count_quarter_turns(frame)
        sound = next(iter(source.container.streams.audio), None)
        info = VideoInfo(
            path=file,
            width=width,
            height=height,
            num_frames=index.num_frames,
            fps=index.average_rate(source.rate),
            duration_s=index.duration_s,
            codec=source.canonical_codec,
            pixel_format=frame.format.name,
            rotation=turns * 90,
            is_variable_rate=index.is_variable_rate,
            has_audio=sound is not None,
            audio_rate=None if sound is None else sound.rate,
            audio_channels=0 if sound is None else sound.channels,
            container=source.container.format.name,
            pixel_aspect=source.pixel_aspect if turns % 2 == 0 else 1 / source.pixel_aspect,
        )
        return info, index


def frame_times(path: str | os.PathLike[str]) -> NDArray[np.float64]:
    """Read the display times of all frames in seconds (N,); the first is 0.0."""
    with open_video(check_file(path)) as source:
        return read_index(source).times


def iter_frames(
    path: str | os.PathLike[str],
    *,
    size: Size | None = None,
    chunk_frames: int = 64,
    fit: Fit = "stretch",
    max_side: int | None = None,
    numbers: Indices | None = None,
) -> Iterator[FrameChunk]:
    """Yield all frames of a video in display order, `chunk_frames` at a time.

    Memory grows with the chunk, not with the video. A damaged file yields the frames that can be decoded and
    then gives a DamagedVideoWarning.

    Args:
        path: Video file.
        size: (height, width) of the frames; None keeps the video's own.
        chunk_frames: Frames per chunk; the last may have fewer.
        fit: "stretch" to `size`, or "crop": scale until `size` is covered, then crop the middle.
        max_side: without `size`, shrink larger frames to this at their displayed proportions.
        numbers: yield only the frames with these numbers. The others are decoded but not converted.
    """
    check_size(size, fit)
    if chunk_frames < 1:
        raise ValueError(f"chunk_frames must be at least 1, got {chunk_frames!r}")
    file = check_file(path)
    load_av("reading video")
    wanted = None if numbers is None else frozenset(np.asarray(numbers).tolist())
    scaling = partial(FrameScaler, size, fit, max_side=max_side)
    return _iter_chunks(file, scaling=scaling, chunk_frames=chunk_frames, wanted=wanted)


def _iter_chunks(
    file: Path, *, scaling: Callable[..., FrameScaler], chunk_frames: int, wanted: frozenset[int] | None
) -> Iterator[FrameChunk]:
    scaler: FrameScaler | None = None
    frames: NDArray[np.uint8] | None = None
    times: list[float] = []
    start = 0
    for number, (source, frame, seconds) in enumerate(decode_in_order(file)):
        if wanted is not None and number not in wanted:
            continue
        scaler = scaler or scaling(aspect=source.pixel_aspect)
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
    index: FrameIndex | None = None,
) -> NDArray[np.uint8]:
    """Read frames uint8 (T, H, W, 3) at exactly `indices` (T,), in that order; repeats are allowed.

    Frame 0 is the first one shown. Each part of the file is decoded at most once.

    Args:
        path: Video file.
        indices: Frame numbers, each from 0 to N - 1.
        size: (height, width) of the frames; None keeps the video's own.
        fit: "stretch" to `size`, or "crop": scale until `size` is covered, then crop the middle.
        index: Where the frames are, if known: a long file is then not read from start to end.
    """
    check_size(size, fit)
    wanted = np.asarray(indices)
    if wanted.size and (wanted.ndim != 1 or not np.issubdtype(wanted.dtype, np.integer)):
        raise ValueError(f"indices must be whole numbers (T,), got {wanted.dtype} {wanted.shape}")
    file = check_file(path)
    if wanted.size == 0:
        info = probe(file)
        return np.empty((0, *(size or (info.height, info.width)), 3), dtype=np.uint8)
    numbers, places = np.unique(wanted.astype(np.int64), return_inverse=True)
    if index is None:
        with open_video(file) as source:
            index = read_index(source)
    _check_range(file, numbers, index.num_frames)
    frames = _read_by_seeking(file, index, numbers, size=size, fit=fit) if index.can_seek else None
    frames = _read_in_order(file, numbers, size=size, fit=fit) if frames is None else frames
    return frames[places]


def _check_range(path: Path, numbers: NDArray[np.int64], num_frames: int) -> None:
    """Raise if a video of `num_frames` does not have all frame `numbers` (T,), which ascend."""
    if numbers[0] < 0 or numbers[-1] >= num_frames:
        bad = numbers[0] if numbers[0] < 0 else numbers[-1]
        raise VideoError(f"{path} has no frame {bad}: it has {num_frames} frames, 0 to {num_frames - 1}")


def _read_by_seeking(
    file: Path, index: FrameIndex, numbers: NDArray[np.int64], *, size: Size | None, fit: Fit
) -> NDArray[np.uint8] | None:
    """Read ascending frames (T, H, W, 3), or return None if seeking does not reach one of them."""
    out: NDArray[np.uint8] | None = None
    with open_video(file) as source:
        scaler = FrameScaler(size, fit, aspect=source.pixel_aspect)
        for slot, frame in enumerate(_seek_frames(source, index, numbers)):
            if frame is None:
                return None
            if out is None:
                out = scaler.buffer(len(numbers), frame)
            scaler.write(frame, out[slot])
    return out


def _seek_frames(source: VideoSource, index: FrameIndex, numbers: NDArray[np.int64]) -> Iterator[Any | None]:
    """Yield the av.VideoFrame of each of the ascending `numbers`; None if it cannot be found.

    For each, seek to the keyframe before it, decode forward, and match by time stamp.
    """
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
    """Decode up to the frame with time stamp `pts`; None if the decoder skips it."""
    for frame in decoder:
        if frame.pts == pts:
            return frame
        if frame.pts is None or frame.pts > pts:
            return None
    return None


def _read_in_order(
    file: Path, numbers: NDArray[np.int64], *, size: Size | None, fit: Fit
) -> NDArray[np.uint8]:
    """Read ascending frames (T, H, W, 3) by decoding from the start, for files that cannot seek."""
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
    _check_range(file, numbers, count)
    assert out is not None  # numbers is not empty and every one was decoded
    return out
