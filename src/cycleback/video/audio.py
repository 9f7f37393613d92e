"""Read the sound of a file as an array, and encode sound for a file that is being written.

Sample 0 is heard together with the first frame of the video.
"""

import math
import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.errors import DamagedVideoWarning, VideoError
from cycleback.video.source import check_file, find_video_stream, load_av, open_container

GAP_S = 0.02  # a time stamp this far ahead of the sound so far means a gap; less is rounding
BLOCK = 1 << 16  # samples resampled at once
AAC_RATES = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000)
FALLBACK_RATE = 48000  # for sample rates AAC does not support
LAYOUTS = {1: "mono", 2: "stereo", 3: "3.0", 4: "4.0", 5: "5.0", 6: "5.1"}


@dataclass(frozen=True)
class Audio:
    """Sound: `samples` float32 (channels, num_samples) in [-1, 1] at `rate` samples per second."""

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
    """Read the sound of a video or of a sound file; sample 0 is heard with the first frame.

    Sound that starts later is preceded by silence, sound before the first frame is dropped, gaps are silent.

    Args:
        path: Video or sound file.
        rate: Samples per second to resample to; None keeps the file's own.
        mono: Average all channels into one.
    """
    if rate is not None and rate <= 0:
        raise ValueError(f"rate must be above 0, got {rate!r}")
    audio = _decode_sound(check_file(path))
    if mono:
        audio = Audio(audio.samples.mean(axis=0, keepdims=True), audio.rate)
    return audio if rate is None else resample(audio, rate)


def iter_audio(path: str | os.PathLike[str], spans: Iterable[tuple[float, float]]) -> Iterator[Audio]:
    """Yield the sound of parts of a video, each from one second to another, in order and without overlap.

    Memory grows with the longest part, not with the video. Second 0 is that of the first frame, and what has
    no sound is silent.
    """
    av, file = load_av("reading sound"), check_file(path)
    wanted = iter(spans)
    with open_container(file) as container:
        stream = next(iter(container.streams.audio), None)
        if stream is None:
            raise VideoError(f"{file} has no sound track")
        track, packets = _TrackDecoder(), _iter_sound(container, stream)
        for start_s, end_s in wanted:
            track.forget(start_s)
            while track.known_s < end_s + GAP_S:
                try:
                    packet = next(packets, None)
                except av.error.FFmpegError:
                    packet = None
                if packet is None:
                    break
                track.take(packet)
                track.forget(start_s)
            if track.rate == 0:
                raise VideoError(f"no sound of {file} can be decoded; record or copy it again")
            yield track.cut(start_s, end_s)


def _iter_sound(container: Any, stream: Any) -> Iterator[Any]:
    """Yield the packets of the sound and of the picture, which tell where the sound begins."""
    yield from container.demux(*filter(None, [stream, find_video_stream(container)]))


def resample(audio: Audio, rate: int) -> Audio:
    """Convert sound to another `rate`."""
    if rate == audio.rate:
        return audio
    av = load_av("resampling sound")
    resampler = av.AudioResampler(format="fltp", layout=f"{audio.samples.shape[0]}c", rate=rate)
    pieces = []
    for start in range(0, audio.samples.shape[1], BLOCK):
        block = np.ascontiguousarray(audio.samples[:, start : start + BLOCK])
        frame = _make_frame(block, layout=f"{len(block)}c", rate=audio.rate, start=start)
        pieces += [piece.to_ndarray() for piece in resampler.resample(frame)]
    pieces += [piece.to_ndarray() for piece in resampler.resample(None)]
    length = round(audio.samples.shape[1] * Fraction(rate, audio.rate))
    joined = np.concatenate([audio.samples[:, :0], *pieces], axis=1)
    return Audio(_cut_or_pad(joined, length), rate)


def _make_frame(samples: NDArray[np.float32], *, layout: str, rate: int, start: int) -> Any:
    """Wrap samples (channels, n) in an av.AudioFrame whose first sample is number `start`."""
    av = load_av("sound")
    frame = av.AudioFrame.from_ndarray(samples, format="fltp", layout=layout)
    frame.sample_rate = rate
    frame.time_base = Fraction(1, rate)
    frame.pts = start
    return frame


def _cut_or_pad(samples: NDArray[np.float32], length: int) -> NDArray[np.float32]:
    """Cut samples (channels, n), or pad them with silence, to (channels, length)."""
    missing = max(0, length - samples.shape[1])
    return np.pad(samples, ((0, 0), (0, missing)))[:, :length]


def _decode_sound(path: Path) -> Audio:
    """Decode the sound at the file's own rate and channels, starting with the first frame."""
    av = load_av("reading sound")
    track = _TrackDecoder()
    with open_container(path) as container:
        stream = next(iter(container.streams.audio), None)
        if stream is None:
            raise VideoError(f"{path} has no sound track")
        try:
            for packet in _iter_sound(container, stream):
                track.take(packet)
        except av.error.FFmpegError:
            track.broken += 1
    if track.rate == 0:
        raise VideoError(f"no sound of {path} can be decoded; record or copy it again")
    if track.broken:
        gaps = f"{track.broken} broken packet(s) became silence, {track.length_s:.2f} s in all"
        message = f"sound of {path} is damaged: {gaps}; copy or record it again if that matters"
        warnings.warn(message, DamagedVideoWarning, stacklevel=3)
    return track.join()


class _TrackDecoder:
    """Decodes the packets of a sound track and joins them by their time stamps."""

    def __init__(self) -> None:
        self.rate = 0
        self.broken = 0
        self._pieces: list[NDArray[np.float32]] = []
        self._length = 0  # samples so far
        self._dropped = 0  # of these, samples that are not in the pieces any more
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

    @property
    def known_s(self) -> float:
        """The second, since the first picture, up to which sound is known."""
        return -math.inf if self.rate == 0 else (self._length - self._offset) / self.rate

    @property
    def _offset(self) -> int:
        """Number of the sample that is heard with the first picture; below 0 if the sound starts later."""
        late_s = 0.0 if self._picture_s is None else self._picture_s - self._start_s
        return round(late_s * self.rate)

    def take(self, packet: Any) -> None:
        """Take the next packet of the sound or of the picture."""
        if packet.stream.type == "audio":
            self.decode(packet)
        else:
            self.note_picture(packet)

    def forget(self, second: float) -> None:
        """Drop pieces that end before a second, which nobody will ask for."""
        first = round(second * self.rate) + self._offset
        while self._pieces and self._dropped + self._pieces[0].shape[1] <= first:
            self._dropped += self._pieces.pop(0).shape[1]

    def cut(self, start_s: float, end_s: float) -> Audio:
        """Return the sound between two seconds; what is not known is silent."""
        first, last = (round(second * self.rate) + self._offset for second in (start_s, end_s))
        channels = len(self._pieces[0]) if self._pieces else 1
        silent = np.zeros((channels, 0), dtype=np.float32)
        known = np.concatenate([silent, *self._pieces], axis=1)
        early = max(0, self._dropped - first)
        inside = known[:, max(0, first - self._dropped) : max(0, last - self._dropped)]
        samples = np.pad(inside, ((0, 0), (early, 0)))
        return Audio(np.clip(_cut_or_pad(samples, last - first), -1.0, 1.0), self.rate)

    def note_picture(self, packet: Any) -> None:
        """Update the time of the first picture from a video packet."""
        if packet.pts is not None and not packet.is_discard:
            seconds = float(packet.pts * packet.time_base)
            self._picture_s = seconds if self._picture_s is None else min(seconds, self._picture_s)

    def decode(self, packet: Any) -> None:
        """Decode a sound packet; a broken one leaves a gap, which becomes silence with the next packet."""
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
        self._prepare_converter(frame)
        expected = self._length if frame.time is None else round((frame.time - self._start_s) * self.rate)
        pieces = [piece.to_ndarray() for piece in self._converter.resample(frame)]
        if pieces and expected - self._length > GAP_S * self.rate:
            pieces.insert(0, np.zeros((len(pieces[0]), expected - self._length), dtype=np.float32))
        self._pieces += pieces
        self._length += sum(piece.shape[1] for piece in pieces)

    def _prepare_converter(self, frame: Any) -> None:
        """Convert to the first frame's rate and channels; replace the converter if the stream changes."""
        av = load_av("reading sound")
        kind = (frame.sample_rate, frame.layout.name, frame.format.name)
        if self._kind is None:
            self.rate, self._layout = frame.sample_rate, frame.layout.name
            self._start_s = frame.time or 0.0
        if kind != self._kind:
            self._kind = kind
            self._converter = av.AudioResampler(format="fltp", layout=self._layout, rate=self.rate)

    def join(self) -> Audio:
        """Return all sound from the time of the first picture on."""
        samples = np.concatenate(self._pieces, axis=1)
        if self._end_s is not None:  # encoders pad their last block; the file says where the sound ends
            samples = samples[:, : max(0, round((self._end_s - self._start_s) * self.rate))]
        samples = np.pad(samples, ((0, 0), (max(0, -self._offset), 0)))[:, max(0, self._offset) :]
        return Audio(np.clip(samples, -1.0, 1.0), self.rate)


class SoundTrack:
    """An AAC stream of `container` that encodes `audio` step by step; silence follows when it ends."""

    def __init__(self, container: Any, audio: Audio) -> None:
        channels = audio.samples.shape[0]
        if channels not in LAYOUTS:
            raise ValueError(f"audio must have 1 to {max(LAYOUTS)} channels, got {channels}")
        if not np.isfinite(audio.samples).all():
            raise ValueError("audio samples must be finite, got NaN or infinity")
        self.audio = audio
        self.position = 0  # samples already encoded
        self.container = container
        rate = audio.rate if audio.rate in AAC_RATES else FALLBACK_RATE
        self.stream = container.add_stream("aac", rate=rate, layout=LAYOUTS[channels])

    def write_until(self, seconds: Fraction) -> None:
        """Encode all sound before `seconds` that is not encoded yet."""
        end = round(seconds * self.audio.rate)
        if end <= self.position:
            return
        part = np.clip(self.audio.samples[:, self.position : end], -1.0, 1.0)
        samples = np.ascontiguousarray(_cut_or_pad(part, end - self.position), dtype=np.float32)
        layout = LAYOUTS[samples.shape[0]]
        frame = _make_frame(samples, layout=layout, rate=self.audio.rate, start=self.position)
        self.position = end
        self.container.mux(self.stream.encode(frame))

    def finish(self) -> None:
        """Write the sound that the encoder still holds."""
        self.container.mux(self.stream.encode(None))
