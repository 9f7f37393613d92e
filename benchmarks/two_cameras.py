"""Make two cameras of one event from a real clip: the ground truth for `offsets.py`.

Each camera sees a part of the clip, from another moment on, at a frame rate of its own (the nearest frame of
the clip is taken), cropped, mirrored, blurred, with other colours and noise, and is encoded again. It hears
the sound of the clip at another volume, through a filter, with echoes and noise. The clock of the second
camera may drift.

    seconds of b = (seconds of a - offset) * (1 + drift)
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.signal import butter, fftconvolve, sosfilt

from cycleback.alignment.sound_offset import RATE, is_silent
from cycleback.video import Audio, frame_times, probe, read_audio, read_frames, write_video

DRIFTS_PPM = (0, 0, 0, 100, -100, 1000, -1000, 10_000, -10_000)
HEIGHT = 180  # pixels of a camera
SOUND_RATE = 44_100
NOISE_DB = (6.0, 20.0)  # sound over noise
ECHO_S = (0.05, 0.4)  # time in which echoes fade by 60 dB


@dataclass(frozen=True)
class Camera:
    """What one camera records: a part of the clip, at its own rate and by its own clock."""

    start_s: float  # of the clip
    lasts_s: float
    fps: float
    drift: float = 0.0


@dataclass(frozen=True)
class Pair:
    """Two cameras of one clip, or of two different ones; the truth is None then."""

    clips: tuple[Path, Path]
    cameras: tuple[Camera, Camera]
    has_sound: bool
    seed: int

    @property
    def offset_s(self) -> float | None:
        """How much later b starts, on the clock of a."""
        return self.cameras[1].start_s - self.cameras[0].start_s if self.clips[0] == self.clips[1] else None

    @property
    def name(self) -> str:
        """A short name that no other pair has."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:12]

    def map_seconds(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the seconds of b at `seconds` of a."""
        assert self.offset_s is not None
        mapped: NDArray[np.float64] = (seconds - self.offset_s) * (1 + self.cameras[1].drift)
        return mapped


def draw_pair(clip: Path, seed: int, *, other: Path | None = None) -> Pair:
    """Draw two cameras of a clip, or the second of another clip."""
    rng = np.random.default_rng([seed, int(hashlib.sha256(clip.name.encode()).hexdigest()[:8], 16)])
    infos = [probe(path) for path in (clip, other or clip)]
    a, b = (
        _draw_camera(info.duration_s or 0.0, info.fps, rng, is_first=k == 0) for k, info in enumerate(infos)
    )
    if rng.random() < 0.5 and other is None:
        a, b = Camera(b.start_s, b.lasts_s, a.fps), Camera(a.start_s, a.lasts_s, b.fps, b.drift)
    has_sound = all(
        info.has_audio and is_heard(path) for info, path in zip(infos, (clip, other or clip), strict=True)
    )
    return Pair((clip, other or clip), (a, b), has_sound, seed)


@cache
def is_heard(clip: Path) -> bool:
    """Whether the sound track of a clip holds more than silence."""
    return not is_silent(read_audio(clip, rate=RATE, mono=True).samples[0])


def _draw_camera(lasts_s: float, fps: float, rng: np.random.Generator, *, is_first: bool) -> Camera:
    """The first camera sees the beginning, the second the end; they share at least 30 % of the clip."""
    part = float(rng.uniform(0.65, 0.95)) * lasts_s
    if is_first:
        return Camera(0.0, part, fps)
    rates = (24.0, 25.0, 30.0) if fps > 22 else (0.8 * fps, fps)
    drift = 1e-6 * float(rng.choice(DRIFTS_PPM))
    return Camera(lasts_s - part, part, float(rng.choice(rates)), drift)


def write_pair(pair: Pair, folder: Path) -> tuple[Path, Path]:
    """Write the videos of both cameras, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / f"{pair.name}a.mp4", folder / f"{pair.name}b.mp4"
    for number, path in enumerate(paths):
        if not path.exists():
            rng = np.random.default_rng([pair.seed, number, *pair.name.encode()])
            clip, camera = pair.clips[number], pair.cameras[number]
            frames = list(film_frames(clip, camera, rng))
            sound = (
                record_sound(read_audio(clip, rate=SOUND_RATE, mono=True), camera, rng)
                if pair.has_sound
                else None
            )
            write_video(path, frames, fps=camera.fps, audio=sound, crf=int(rng.integers(23, 31)))
    return paths


def film_frames(clip: Path, camera: Camera, rng: np.random.Generator) -> Iterator[NDArray[np.uint8]]:
    """Yield the frames of a camera: the nearest ones of the clip, as this camera shows them."""
    times, info = frame_times(clip), probe(clip)
    count = int(camera.lasts_s * (1 + camera.drift) * camera.fps)
    moments = camera.start_s + np.arange(count) / camera.fps / (1 + camera.drift)
    nearest = np.abs(times[None] - moments[:, None]).argmin(axis=1)
    size = HEIGHT, 2 * round(HEIGHT * info.width / info.height / 2)
    film = read_frames(clip, np.arange(len(times)), size=size)
    rows, columns = (slice(*np.sort(_draw_edges(side, rng))) for side in size)
    is_mirrored, blur, noise = rng.random() < 0.3, float(rng.uniform(0, 1.2)), float(rng.uniform(0, 6))
    gain, gamma = rng.uniform(0.7, 1.3, size=3), float(rng.uniform(0.7, 1.4))
    for number in nearest:
        image = film[number][rows, columns].astype(np.float64)
        image = image[:, ::-1] if is_mirrored else image
        image = gaussian_filter(image, (blur, blur, 0))
        image = 255 * (image / 255) ** gamma * gain + rng.normal(0, noise, image.shape)
        yield np.ascontiguousarray(np.clip(image, 0, 255).astype(np.uint8))


def _draw_edges(side: int, rng: np.random.Generator) -> tuple[int, int]:
    """Cut up to 15 % off each edge."""
    return round(side * float(rng.uniform(0, 0.15))), round(side * float(rng.uniform(0.85, 1)))


def record_sound(whole: Audio, camera: Camera, rng: np.random.Generator) -> Audio:
    """Return what the microphone of a camera hears: filtered, with echoes, noise and another volume."""
    count = int(camera.lasts_s * (1 + camera.drift) * whole.rate)
    moments = camera.start_s * whole.rate + np.arange(count) / (1 + camera.drift)
    sound = np.interp(moments, np.arange(whole.samples.shape[1]), whole.samples[0])
    low, high = float(rng.uniform(60, 300)), float(rng.uniform(4000, 10_000))
    sound = sosfilt(butter(2, (low, high), "bandpass", fs=whole.rate, output="sos"), sound)
    fade = float(rng.uniform(*ECHO_S))
    tail = np.arange(int(fade * whole.rate)) / whole.rate
    echoes = rng.normal(0, 1, len(tail)) * np.exp(-6.9 * tail / fade)
    echoes *= float(rng.uniform(0.2, 1)) / np.sqrt(np.square(echoes).sum())
    echoes[0] = 1.0
    sound = fftconvolve(sound, echoes)[:count]
    level = np.sqrt(np.square(sound).mean())
    sound = sound + rng.normal(0, level * 10 ** (-float(rng.uniform(*NOISE_DB)) / 20), count)
    peak = np.abs(sound).max()
    sound *= float(rng.uniform(0.1, 0.9)) / max(peak, 1e-9)
    return Audio(sound[None].astype(np.float32), whole.rate)


def halve(clips: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Split clips by their names into those to choose settings by, and those to report on."""
    chosen = [int(hashlib.sha256(path.name.encode()).hexdigest(), 16) % 2 == 0 for path in clips]
    return (
        [path for path, first in zip(clips, chosen, strict=True) if first],
        [path for path, first in zip(clips, chosen, strict=True) if not first],
    )
