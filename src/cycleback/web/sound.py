"""The sound of a video in blocks, so that hours of it fit in memory, and its peaks."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.video.audio import GAP_S
from cycleback.video.source import load_av, open_container
from cycleback.web.project import ProjectVideo

Block = NDArray[np.float32]  # (channels, samples)
LARGE_BLOCK = 1 << 16  # samples
FALLBACK_RATE = 48000  # for a file that does not tell its own


def iter_sound(video: ProjectVideo, *, rate: int, channels: int) -> Iterator[Block]:
    """Yield the sound of a video in blocks (channels, samples); sample 0 is heard with the first frame.

    Gaps become silence, and sound before the first frame is dropped. Broken packets are gaps.
    """
    position = 0  # samples yielded
    for block, seconds in _decode_blocks(video, rate=rate, channels=channels):
        start = round(seconds * rate)
        if start - position > GAP_S * rate:
            for begin in range(position, start, LARGE_BLOCK):
                yield np.zeros((channels, min(LARGE_BLOCK, start - begin)), dtype=np.float32)
            position = start
        surplus = max(0, position - start) if start < 0 else 0
        if surplus < block.shape[1]:
            yield np.clip(block[:, surplus:], -1, 1)
            position += block.shape[1] - surplus


def _decode_blocks(video: ProjectVideo, *, rate: int, channels: int) -> Iterator[tuple[Block, float]]:
    """Yield resampled blocks and the time of their first sample, counted from the first frame."""
    av = load_av("reading sound")
    layout = "mono" if channels == 1 else "stereo"
    kind: object = None
    end = 0.0
    with open_container(video.path) as container:
        picture = _first_picture_s(container, video)
        resampler: Any = None
        for frame in _decode_frames(container):
            if kind != (kind := (frame.sample_rate, frame.layout.name, frame.format.name)):
                resampler = av.AudioResampler(format="fltp", layout=layout, rate=rate)
            end = (frame.time or 0.0) - picture
            for piece in resampler.resample(frame):
                yield piece.to_ndarray(), end
                end += piece.samples / rate
        for piece in resampler.resample(None) if resampler is not None else ():
            yield piece.to_ndarray(), end


def _decode_frames(container: Any) -> Iterator[Any]:
    """Yield each av.AudioFrame that can be decoded."""
    av = load_av("reading sound")
    stream = next(iter(container.streams.audio), None)
    try:
        for packet in container.demux(stream) if stream is not None else ():
            try:
                frames = packet.decode()
            except av.error.FFmpegError:
                continue
            yield from frames
    except av.error.FFmpegError:
        return  # the file is cut short


def _first_picture_s(container: Any, video: ProjectVideo) -> float:
    """Return the time stamp of the first frame in seconds."""
    index = video.index
    for stream in container.streams.video:
        if stream.time_base is not None and index.can_seek:
            return float(index.pts[0] * stream.time_base)
    return float(container.start_time or 0) / 1e6


def read_peaks(video: ProjectVideo, count: int) -> list[float]:
    """Return the loudest sample, 0 to 1, in each of `count` equal parts of a video; [] without sound."""
    info = video.info
    if not info.has_audio:
        return []
    rate = info.audio_rate or FALLBACK_RATE
    peaks, position = np.zeros(count), 0
    share = count / max(1.0, info.duration_s * rate)  # parts per sample
    for loud in _gather(np.abs(block[0]) for block in iter_sound(video, rate=rate, channels=1)):
        parts = ((position + np.arange(len(loud))) * share).astype(np.int64)
        starts = np.flatnonzero(np.diff(parts, prepend=-1))
        loudest, inside = np.maximum.reduceat(loud, starts), parts[starts] < count
        peaks[parts[starts][inside]] = np.maximum(peaks[parts[starts][inside]], loudest[inside])
        position += len(loud)
    return [round(float(peak), 3) for peak in peaks]


def _gather(blocks: Iterable[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
    """Yield the same samples in larger blocks: arrays of a thousand numbers cost more time than they hold."""
    waiting: list[NDArray[np.float32]] = []
    for block in blocks:
        waiting.append(block)
        if sum(map(len, waiting)) >= LARGE_BLOCK:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)
