"""Decode the packets of a file into frames, in display order, as far as the file allows."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from cycleback.errors import VideoError
from cycleback.prefetch import prefetch
from cycleback.video.index import PacketCount, Promise, iter_packets, promise_frames, warn_if_damaged
from cycleback.video.source import VideoSource, load_av, open_video

FRAMES_AHEAD = 8  # decoded frames that wait for the caller, so that decoding and scaling overlap


@dataclass
class DecodingCount:
    """Packets read and frames decoded so far."""

    packets: PacketCount
    frames: int = 0
    broken: int = 0
    promise: Promise = field(default_factory=lambda: Promise(0))

    @property
    def is_complete(self) -> bool:
        """Whether every packet gave its frame."""
        return self.broken == 0 and not self.packets.stopped_early and self.frames >= self.packets.shown


def decode_in_order(path: Path) -> Iterator[tuple[VideoSource, Any, float]]:
    """Yield (file, av.VideoFrame, seconds since the first frame) for each frame that can be decoded.

    Decoding on all cores may lose good frames next to a broken packet. If frames are missing, the file is
    decoded again on one core, and frames after the last one yielded are added. Lost frames give a
    DamagedVideoWarning.
    """
    last_s = -1.0
    with open_video(path) as source:
        count = DecodingCount(PacketCount(source.canonical_codec))
        for item in prefetch(_decode(source, count), depth=FRAMES_AHEAD):
            last_s = item[2]
            yield item
    kept = count.frames
    if not count.is_complete:
        with open_video(path, threaded=False) as source:
            for item in _decode(source, DecodingCount(PacketCount(source.canonical_codec))):
                if item[2] > last_s:
                    kept += 1
                    yield item
    if kept == 0:
        raise _no_frame_error(path, count)
    warn_if_damaged(path, kept=kept, promise=count.promise)


def decode_first_frame(source: VideoSource) -> Any:
    """Return the first av.VideoFrame that can be decoded."""
    count = DecodingCount(PacketCount(source.canonical_codec))
    frame = next(_decode_packets(source, count), None)
    if frame is None:
        raise _no_frame_error(source.path, count)
    return frame


def _decode(source: VideoSource, count: DecodingCount) -> Iterator[tuple[VideoSource, Any, float]]:
    """Yield the frames of an open file with their times, and update `count`."""
    clock = Clock(source)
    for frame in _decode_packets(source, count):
        count.frames += 1
        yield source, frame, clock.read(frame)
    count.promise = promise_frames(source, count.packets)


def _decode_packets(source: VideoSource, count: DecodingCount) -> Iterator[Any]:
    """Yield the frames of all packets that are not broken."""
    av = load_av("reading video")
    flush = None  # makes the decoder return the frames it still holds
    for packet in chain(iter_packets(source, count.packets), [flush]):
        try:
            frames = source.stream.decode(packet)
        except av.error.FFmpegError:
            count.broken += 1
            continue
        yield from frames


class Clock:
    """Seconds since the first frame; they always increase, also where time stamps are missing or wrong."""

    def __init__(self, source: VideoSource) -> None:
        self._has_times = source.has_times
        self._tick = float(source.stream.time_base)
        self._rate = source.rate
        self._origin: int | None = None
        self._number = 0
        self._last = 0.0

    def read(self, frame: Any) -> float:
        """Return the time of the next frame."""
        if self._number == 0:
            self._origin = frame.pts
        seconds = self._number / self._rate
        if self._has_times and frame.pts is not None and self._origin is not None:
            seconds = (frame.pts - self._origin) * self._tick
            if self._number > 0 and seconds <= self._last:
                seconds = self._last + 1 / self._rate
        self._number += 1
        self._last = seconds
        return seconds


def _no_frame_error(path: Path, count: DecodingCount) -> VideoError:
    packets = count.packets.shown
    if packets == 0:
        return VideoError(f"{path} has a video stream, but no frame in it")
    return VideoError(f"no frame of {path} can be decoded ({packets} packets read); record or copy it again")
