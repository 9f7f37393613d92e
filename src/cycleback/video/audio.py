"""Sound as an array: read from any file, on the clock of its pictures."""

import os
import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.errors import DamagedVideoWarning, VideoError
from cycleback.video.backend import load_av
from cycleback.video.source import checked_file, open_container, video_stream

GAP_S = 0.02  # time stamps this far ahead of the sound so far mean a hole; less is rounding
BLOCK = 1 << 16  # samples resampled at once


@dataclass(frozen=True)
class Audio:
    """Sound: `samples` float32 (channels, num_samples) in [-1, 1] at `rate` samples a second."""

    samples: NDArray[np.float32]
    rate: int

    def __post_init__(self) -> None:
        samples = np.asarray(self.samples, dtype=np.float32)
        if samples.ndim != 2 or samples.shape[0] == 0:
            raise ValueError(f"samples must be (channels >= 1, num_samples), got {samples.shape}")
        if self.rate <= 0:
            raise ValueError(f"rate must be above 0, got {self.rate!r}")
        object.__setattr__(self, "samples", samples)

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return float(self.samples.shape[1] / self.rate)


def read_audio(path: str | os.PathLike[str], *, rate: int | None = None, mono: bool = False) -> Audio:
    """The sound of a video, or of a sound file; sample 0 is heard with the first frame.

    Sound that starts later is preceded by silence, sound before the first frame is cut off, holes are silent.

    Args:
        path: Video or sound file.
        rate: Samples a second to resample to; None keeps the file's own.
        mono: Average all channels into one.
    """
    if rate is not None and rate <= 0:
        raise ValueError(f"rate must be above 0, got {rate!r}")
    audio = _decode_sound(checked_file(path))
    if mono:
        audio = Audio(audio.samples.mean(axis=0, keepdims=True), audio.rate)
    return audio if rate is None else resample(audio, rate)


def resample(audio: Audio, rate: int) -> Audio:
    """The same sound at another `rate`."""
    if rate == audio.rate:
        return audio
    av = load_av("resampling sound")
    resampler = av.AudioResampler(format="fltp", layout=f"{audio.samples.shape[0]}c", rate=rate)
    pieces = []
    for start in range(0, audio.samples.shape[1], BLOCK):
        block = np.ascontiguousarray(audio.samples[:, start : start + BLOCK])
        frame = to_frame(block, layout=f"{len(block)}c", rate=audio.rate, start=start)
        pieces += [piece.to_ndarray() for piece in resampler.resample(frame)]
    pieces += [piece.to_ndarray() for piece in resampler.resample(None)]
    length = round(audio.samples.shape[1] * Fraction(rate, audio.rate))
    joined = np.concatenate([audio.samples[:, :0], *pieces], axis=1)
    return Audio(_exactly(joined, length), rate)


def to_frame(samples: NDArray[np.float32], *, layout: str, rate: int, start: int) -> Any:
    """Samples (channels, n) → av.AudioFrame whose first sample is number `start`."""
    av = load_av("sound")
    frame = av.AudioFrame.from_ndarray(samples, format="fltp", layout=layout)
    frame.sample_rate = rate
    frame.time_base = Fraction(1, rate)
    frame.pts = start
    return frame


def _decode_sound(path: Path) -> Audio:
    """The sound at the file's own rate and channels, starting with the first frame."""
    av = load_av("reading sound")
    track = _Track()
    with open_container(path) as container:
        stream = next(iter(container.streams.audio), None)
        if stream is None:
            raise VideoError(f"{path} has no sound track")
        try:
            for packet in container.demux(*filter(None, [stream, video_stream(container)])):
                if packet.stream.type == "audio":
                    track.read(packet)
                else:
                    track.see_picture(packet)
        except av.error.FFmpegError:
            track.broken += 1
    if track.rate == 0:
        raise VideoError(f"no sound of {path} can be decoded; record or copy it again")
    if track.broken:
        holes = f"{track.broken} broken packet(s) became silence, {track.length_s:.2f} s in all"
        message = f"sound of {path} is damaged: {holes}; copy or record it again if that matters"
        warnings.warn(message, DamagedVideoWarning, stacklevel=3)
    return track.audio()


class _Track:
    """Decoded sound put together by its time stamps."""

    def __init__(self) -> None:
        self.rate = 0
        self.broken = 0
        self._pieces: list[NDArray[np.float32]] = []
        self._length = 0  # samples in the pieces
        self._start_s = 0.0
        self._end_s: float | None = None
        self._picture_s: float | None = None
        self._converter: Any = None
        self._kind: tuple[int, str, str] | None = None
        self._layout = ""

    @property
    def length_s(self) -> float:
        """Seconds of sound so far."""
        return self._length / self.rate

    def see_picture(self, packet: Any) -> None:
        """Learn from a packet of pictures when the first is shown."""
        if packet.pts is not None and not packet.is_discard:
            seconds = float(packet.pts * packet.time_base)
            self._picture_s = seconds if self._picture_s is None else min(seconds, self._picture_s)

    def read(self, packet: Any) -> None:
        """Decode a packet of sound; a broken one leaves a hole, which the next fills with silence."""
        av = load_av("reading sound")
        try:
            frames = packet.decode()
        except av.error.FFmpegError:
            self.broken += 1
            return
        for frame in frames:
            self._add(frame)
        if packet.pts is not None and packet.duration:
            self._end_s = float((packet.pts + packet.duration) * packet.time_base)

    def _add(self, frame: Any) -> None:
        self._prepare(frame)
        expected = self._length if frame.time is None else round((frame.time - self._start_s) * self.rate)
        pieces = [piece.to_ndarray() for piece in self._converter.resample(frame)]
        if pieces and expected - self._length > GAP_S * self.rate:
            pieces.insert(0, np.zeros((len(pieces[0]), expected - self._length), dtype=np.float32))
        self._pieces += pieces
        self._length += sum(piece.shape[1] for piece in pieces)

    def _prepare(self, frame: Any) -> None:
        """A converter to the first frame's rate and channels; a new one where the stream changes midway."""
        av = load_av("reading sound")
        kind = (frame.sample_rate, frame.layout.name, frame.format.name)
        if self._kind is None:
            self.rate, self._layout = frame.sample_rate, frame.layout.name
            self._start_s = frame.time or 0.0
        if kind != self._kind:
            self._kind = kind
            self._converter = av.AudioResampler(format="fltp", layout=self._layout, rate=self.rate)

    def audio(self) -> Audio:
        """All of it, from the moment of the first picture."""
        samples = np.concatenate(self._pieces, axis=1)
        if self._end_s is not None:  # coders pad their last block; the file says where the sound really ends
            samples = samples[:, : max(0, round((self._end_s - self._start_s) * self.rate))]
        offset = 0
        if self._picture_s is not None:
            offset = round((self._start_s - self._picture_s) * self.rate)
        samples = np.pad(samples, ((0, 0), (max(0, offset), 0)))[:, max(0, -offset) :]
        return Audio(np.clip(samples, -1.0, 1.0), self.rate)


def _exactly(samples: NDArray[np.float32], length: int) -> NDArray[np.float32]:
    """Samples (channels, n) cut or padded with silence to (channels, length)."""
    missing = max(0, length - samples.shape[1])
    return np.pad(samples, ((0, 0), (0, missing)))[:, :length]
