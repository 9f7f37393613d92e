"""Find every frame of a file by reading its packets, without decoding.

Letters: N frames of a whole video, K keyframes.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cycleback.errors import DamagedVideoWarning, VideoError
from cycleback.video.source import VideoSource, load_av

VP8_SHOW_FRAME = 0x10  # bit of the first byte (RFC 6386, 9.1)
SLACK = 0.02  # a header that only estimates its frames may be wrong by this share
JITTER_S = 0.002  # containers round time stamps to a millisecond, also at a constant rate


class Promise(NamedTuple):
    """How many frames a file should have according to its header."""

    frames: int
    is_exact: bool = True  # False: estimated from the length of the video


@dataclass(frozen=True)
class FrameIndex:
    """The frames of a file in display order."""

    pts: NDArray[np.int64]  # (N,) time stamps, ascending, in ticks of the stream
    times: NDArray[np.float64]  # (N,) seconds, the first 0.0
    duration_s: float  # from the first frame to the end of the last
    key_numbers: NDArray[np.int64]  # (K,) frame numbers of the keyframes, ascending
    can_seek: bool  # whether frames can be found by `pts`; otherwise only by decoding from the start
    num_hidden: int = 0  # packets whose frame is not shown, because of an edit list or as a mere reference
    promise: Promise = field(default_factory=lambda: Promise(0))  # how many frames the header promises

    @property
    def is_damaged(self) -> bool:
        """Whether the file lacks frames that its header promises."""
        return self.num_frames < self.promise.frames

    @property
    def num_frames(self) -> int:
        """N."""
        return len(self.times)

    @property
    def is_variable_rate(self) -> bool:
        """Whether the time between frames varies by more than rounding."""
        steps = np.diff(self.times)
        if len(steps) < 2:
            return False
        usual = float(np.median(steps))
        return bool(np.abs(steps - usual).max() > max(JITTER_S, 0.1 * usual))

    def average_rate(self, stated: float) -> float:
        """Return frames per second; the `stated` rate if only rounding makes a difference."""
        if self.num_frames < 2:
            return 1 / self.duration_s if self.duration_s > 0 else stated
        measured = (self.num_frames - 1) / float(self.times[-1])
        off_s = abs(1 / measured - 1 / stated) * (self.num_frames - 1)
        return stated if off_s < JITTER_S else measured

    def keyframe_before(self, number: int) -> int:
        """Return the last keyframe at or before frame `number`; 0 if an edit list hides it."""
        place = int(np.searchsorted(self.key_numbers, number, side="right")) - 1
        return int(self.key_numbers[place]) if place >= 0 else 0


@dataclass
class PacketCount:
    """Packets read from a file so far."""

    codec: str
    all: int = 0
    shown: int = 0
    end: int = 0  # latest time stamp at which one of them ends
    stopped_early: bool = False

    def add(self, packet: Any) -> None:
        """Count one packet."""
        self.all += 1
        self.shown += _is_shown(packet, self.codec)
        self.end = max(self.end, (packet.pts or 0) + (packet.duration or 0))


def _is_shown(packet: Any, codec: str) -> bool:
    """Whether a packet holds a visible frame; edit lists hide some, VP8 has reference-only packets."""
    if packet.is_discard:
        return False
    return codec != "vp8" or bool(memoryview(packet)[0] & VP8_SHOW_FRAME)


def read_index(source: VideoSource) -> FrameIndex:
    """Index an open file; an incomplete file gives a DamagedVideoWarning."""
    index = scan_packets(source)
    warn_if_damaged(source.path, kept=index.num_frames, promise=index.promise)
    return index


def scan_packets(source: VideoSource) -> FrameIndex:
    """Index an open file without a warning; `is_damaged` tells whether it is incomplete."""
    count = PacketCount(source.canonical_codec)
    stamps, keys, last_duration = _read_stamps(source, count)
    if count.shown == 0:
        raise VideoError(f"{source.path} has a video stream, but no frame in it")
    pts = np.sort(np.array([0 if stamp is None else stamp for stamp in stamps], dtype=np.int64))
    timed = source.has_times and None not in stamps and bool(np.all(np.diff(pts) > 0))
    tick = float(source.stream.time_base)
    times = (pts - pts[0]) * tick if timed else np.arange(len(pts)) / source.rate
    return FrameIndex(
        pts=pts,
        times=times,
        duration_s=float(times[-1]) + (last_duration * tick if timed and last_duration else 1 / source.rate),
        key_numbers=np.searchsorted(pts, np.sort(np.array(keys, dtype=np.int64))),
        can_seek=timed and source.can_seek and len(keys) > 0,
        num_hidden=count.all - count.shown,
        promise=promise_frames(source, count),
    )


def _read_stamps(source: VideoSource, count: PacketCount) -> tuple[list[int | None], list[int], int]:
    """Read time stamps of all shown packets and of all keyframes, and the last frame's duration in ticks."""
    stamps: list[int | None] = []
    keys: list[int] = []
    last, duration = -(2**63), 0
    for packet in iter_packets(source, count):
        pts = packet.pts
        if packet.is_keyframe and pts is not None:
            keys.append(pts)
        if not _is_shown(packet, count.codec):
            continue
        stamps.append(pts)
        if pts is not None and pts > last:
            last, duration = pts, packet.duration or 0
    return stamps, keys, duration


def iter_packets(source: VideoSource, count: PacketCount) -> Iterator[Any]:
    """Yield and count the packets of a file as far as it can be read.

    An incomplete last packet is left out: it would decode to half a picture, or to none.
    """
    av = load_av("reading video")
    held = None
    try:
        for packet in source.container.demux(source.stream):
            if packet.size == 0:
                continue
            if held is not None:
                count.add(held)
                yield held
            held = packet
    except av.error.FFmpegError:
        count.stopped_early = True
    if held is not None and not held.is_corrupt:
        count.add(held)
        yield held


def promise_frames(source: VideoSource, count: PacketCount) -> Promise:
    """Read from the header how many frames the file should have; `count` are the packets it has."""
    stream = source.stream
    if "mp4" in source.container.format.name:
        entries = getattr(stream, "index_entries", None)  # not in older PyAV; accounts for edit lists
        promised = stream.frames if entries is None else len(entries)
        return Promise(count.shown + max(0, promised - count.all))
    missing = stream.frames - count.all
    if not stream.frames and "DURATION" in stream.metadata:
        missing_s = _parse_clock(stream.metadata["DURATION"]) - float(count.end * stream.time_base)
        missing = round(missing_s * source.rate)
    is_short = missing > max(3, SLACK * count.all)
    return Promise(count.shown + missing, is_exact=False) if is_short else Promise(count.shown)


def _parse_clock(clock: str) -> float:
    """Convert a clock time such as 00:01:02.5 to seconds."""
    try:
        hours, minutes, seconds = clock.split(":")
        return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    except ValueError:
        return 0.0


def warn_if_damaged(path: Path, *, kept: int, promise: Promise) -> None:
    """Warn if fewer frames were `kept` than the file promises."""
    if kept < promise.frames:
        about = "" if promise.is_exact else "about "
        share = f"kept {kept} of {about}{promise.frames} frames, lost {about}{promise.frames - kept}"
        message = f"{path} is damaged or cut short: {share}; copy or record it again if that matters"
        warnings.warn(message, DamagedVideoWarning, stacklevel=3)
