"""Where every frame of a file is: found by reading the packets, without decoding.

Letters: N frames of a whole video, K keyframes.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cycleback.errors import DamagedVideoWarning, VideoError
from cycleback.video.backend import load_av
from cycleback.video.source import VideoSource

VP8_SHOW_FRAME = 0x10  # bit of the first byte (RFC 6386, 9.1)
SLACK = 0.02  # a header that counts or times its frames loosely may be off by this share


class Promise(NamedTuple):
    """How many frames a file should show by its header, counted or estimated from its length."""

    frames: int
    is_exact: bool = True


@dataclass(frozen=True)
class FrameIndex:
    """The frames of a file in the order they are shown.

    Attributes:
        pts: Time stamps int64 (N,), ascending, in ticks of the stream.
        times: Seconds float64 (N,), the first 0.0.
        duration_s: From the first frame to the end of the last.
        key_numbers: Frame numbers int64 (K,) of the keyframes, ascending.
        can_seek: Whether frames can be found by `pts`; otherwise only by decoding from the start.
        promise: The frames the file should have; more than N when its end is missing.
    """

    pts: NDArray[np.int64]
    times: NDArray[np.float64]
    duration_s: float
    key_numbers: NDArray[np.int64]
    can_seek: bool
    promise: Promise

    @property
    def num_frames(self) -> int:
        """N."""
        return len(self.times)

    def keyframe_before(self, number: int) -> int:
        """Number of the last keyframe at or before frame `number`; 0 where an edit list hides it."""
        place = int(np.searchsorted(self.key_numbers, number, side="right")) - 1
        return int(self.key_numbers[place]) if place >= 0 else 0


@dataclass
class PacketCount:
    """Packets met while reading a file."""

    codec: str
    all: int = 0
    shown: int = 0
    end: int = 0  # latest stamp at which one of them ends
    stopped_early: bool = False

    def add(self, packet: Any) -> Any:
        """Count one packet and hand it on."""
        self.all += 1
        self.shown += is_shown(packet, self.codec)
        self.end = max(self.end, (packet.pts or 0) + (packet.duration or 0))
        return packet


def is_shown(packet: Any, codec: str) -> bool:
    """Whether a packet gives a frame: not if an edit list hides it, or VP8 keeps it as a mere reference."""
    if packet.is_discard:
        return False
    return codec != "vp8" or bool(memoryview(packet)[0] & VP8_SHOW_FRAME)


def read_index(source: VideoSource) -> FrameIndex:
    """The index of an open file; an incomplete file gives a DamagedVideoWarning."""
    count = PacketCount(source.canonical_codec)
    stamps, keys, last_duration = _read_stamps(source, count)
    if count.shown == 0:
        raise VideoError(f"{source.path} has a video stream, but no frame in it")
    pts = np.sort(np.array([0 if stamp is None else stamp for stamp in stamps], dtype=np.int64))
    timed = source.has_times and None not in stamps and bool(np.all(np.diff(pts) > 0))
    tick = float(source.stream.time_base)
    times = (pts - pts[0]) * tick if timed else np.arange(len(pts)) / source.rate
    index = FrameIndex(
        pts=pts,
        times=times,
        duration_s=float(times[-1]) + (last_duration * tick if timed and last_duration else 1 / source.rate),
        key_numbers=np.searchsorted(pts, np.sort(np.array(keys, dtype=np.int64))),
        can_seek=timed and source.can_seek and len(keys) > 0,
        promise=promised_frames(source, count),
    )
    warn_if_damaged(source.path, kept=index.num_frames, promise=index.promise)
    return index


def _read_stamps(source: VideoSource, count: PacketCount) -> tuple[list[int | None], list[int], int]:
    """Time stamps of all shown packets, of all keyframes, and the duration of the last frame in ticks."""
    stamps: list[int | None] = []
    keys: list[int] = []
    last, duration = -(2**63), 0
    for packet in readable_packets(source, count):
        pts = packet.pts
        if packet.is_keyframe and pts is not None:
            keys.append(pts)
        if not is_shown(packet, count.codec):
            continue
        stamps.append(pts)
        if pts is not None and pts > last:
            last, duration = pts, packet.duration or 0
    return stamps, keys, duration


def readable_packets(source: VideoSource, count: PacketCount) -> Iterator[Any]:
    """Packets up to the end of the file, or to where it cannot be read any more, counted.

    A last packet of which only a part is there is left out: it would decode to half a picture, or to none.
    """
    av = load_av("reading video")
    held = None
    try:
        for packet in source.container.demux(source.stream):
            if packet.size == 0:
                continue
            if held is not None:
                yield count.add(held)
            held = packet
    except av.error.FFmpegError:
        count.stopped_early = True
    if held is not None and not held.is_corrupt:
        yield count.add(held)


def promised_frames(source: VideoSource, count: PacketCount) -> Promise:
    """What the header promises, given the packets found."""
    stream = source.stream
    if "mp4" in source.container.format.name:
        entries = getattr(stream, "index_entries", None)  # not in older PyAV; knows of edit lists
        promised = stream.frames if entries is None else len(entries)
        return Promise(count.shown + max(0, promised - count.all))
    missing = stream.frames - count.all
    if not stream.frames and "DURATION" in stream.metadata:
        missing_s = _seconds(stream.metadata["DURATION"]) - float(count.end * stream.time_base)
        missing = round(missing_s * source.rate)
    is_loose = missing > max(3, SLACK * count.all)
    return Promise(count.shown + missing, is_exact=False) if is_loose else Promise(count.shown)


def _seconds(clock: str) -> float:
    """Seconds of a clock reading such as 00:01:02.5."""
    try:
        hours, minutes, seconds = clock.split(":")
        return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    except ValueError:
        return 0.0


def warn_if_damaged(path: Path, *, kept: int, promise: Promise) -> None:
    """Say how much of a file was lost, if any."""
    if kept < promise.frames:
        about = "" if promise.is_exact else "about "
        share = f"kept {kept} of {about}{promise.frames} frames, lost {about}{promise.frames - kept}"
        message = f"{path} is damaged or cut short: {share}; copy or record it again if that matters"
        warnings.warn(message, DamagedVideoWarning, stacklevel=3)
