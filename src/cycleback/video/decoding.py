"""Compressed packets → decoded frames, in the order they are shown, as far as the file allows."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from cycleback.errors import VideoError
from cycleback.prefetch import prefetch
from cycleback.video.backend import load_av
from cycleback.video.index import PacketCount, Promise, promised_frames, readable_packets, warn_if_damaged
from cycleback.video.source import VideoSource, open_video

FRAMES_AHEAD = 8  # decoded frames that wait for the caller: decoding and scaling then overlap


@dataclass
class Progress:
    """How far decoding came."""

    packets: PacketCount
    frames: int = 0
    broken: int = 0
    promise: Promise = field(default_factory=lambda: Promise(0))

    @classmethod
    def of(cls, source: VideoSource) -> "Progress":
        """At the start of a file."""
        return cls(PacketCount(source.canonical_codec))

    @property
    def is_whole(self) -> bool:
        """Whether every packet gave its frame."""
        return self.broken == 0 and not self.packets.stopped_early and self.frames >= self.packets.shown


def decode_in_order(path: Path) -> Iterator[tuple[VideoSource, Any, float]]:
    """(file, av.VideoFrame, seconds since the first frame) for each frame that can be decoded.

    Decoding on all cores may swallow good frames beside a broken packet, so a file that comes out short is
    decoded once more on one core from where the first pass ended. What is lost gives a DamagedVideoWarning.
    """
    last_s = -1.0
    with open_video(path) as source:
        progress = Progress.of(source)
        for item in prefetch(_decode(source, progress), depth=FRAMES_AHEAD):
            last_s = item[2]
            yield item
    kept = progress.frames
    if not progress.is_whole:
        with open_video(path, threaded=False) as source:
            for item in _decode(source, Progress.of(source)):
                if item[2] > last_s:
                    kept += 1
                    yield item
    if kept == 0:
        raise _no_frame(path, progress.packets.shown)
    warn_if_damaged(path, kept=kept, promise=progress.promise)


def _decode(source: VideoSource, progress: Progress) -> Iterator[tuple[VideoSource, Any, float]]:
    """Frames of an open file from its start, counted in `progress`."""
    clock = Clock(source)
    for frame in _decodable(source, progress):
        progress.frames += 1
        yield source, frame, clock.read(frame)
    progress.promise = promised_frames(source, progress.packets)


def _decodable(source: VideoSource, progress: Progress) -> Iterator[Any]:
    """Frames of all packets that are not broken."""
    av = load_av("reading video")
    flush = None  # makes the decoder give out what it still holds
    for packet in chain(readable_packets(source, progress.packets), [flush]):
        try:
            frames = source.stream.decode(packet)
        except av.error.FFmpegError:
            progress.broken += 1
            continue
        yield from frames


class Clock:
    """Seconds since the first frame; always advances, also where time stamps are missing or wrong."""

    def __init__(self, source: VideoSource) -> None:
        self._has_times = source.has_times
        self._tick = float(source.stream.time_base)
        self._rate = source.rate
        self._origin: int | None = None
        self._number = 0
        self._last = 0.0

    def read(self, frame: Any) -> float:
        """The time of the next frame."""
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


def first_frame(source: VideoSource) -> Any:
    """The first av.VideoFrame that can be decoded."""
    progress = Progress.of(source)
    frame = next(_decodable(source, progress), None)
    if frame is None:
        raise _no_frame(source.path, progress.packets.shown)
    return frame


def _no_frame(path: Path, packets: int) -> VideoError:
    if packets == 0:
        return VideoError(f"{path} has a video stream, but no frame in it")
    return VideoError(f"no frame of {path} can be decoded ({packets} packets read); record or copy it again")
