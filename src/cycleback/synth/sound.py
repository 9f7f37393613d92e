"""Synthesise the sound of a take: room noise, a click at the touch and at the put-down, and the pour.

The air over the liquid in a glass is a pipe closed at one end. Its first resonance rises as the glass fills:

    f(fill) = c / (4 * (h * (1 - fill) + 0.62 * r)),   c = 343 m/s,

with h the inner height and r the inner radius of the glass in metres; 0.62 r corrects for the open end.
Letters: N frames of the video, M samples of the sound.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cycleback.synth.containers import WALL, Container
from cycleback.synth.motion import EVENTS, Motion
from cycleback.video import Audio

RATE = 44_100
SPEED_OF_SOUND = 343.0
PITCH_FORMULA = "343 / (4 * (height * (1 - fill) + 0.62 * radius))"  # stored with the ground truth
END_CORRECTION = 0.62
METRES = 0.62  # one width of the scene
RESONANCE_BANDWIDTH = 40.0  # Hz
ROOM = 0.0015  # loudness of the room; full scale is 1

Signal = NDArray[np.float64]  # (M,)


class Click(NamedTuple):
    """The sound of an impact."""

    partials: tuple[float, ...]  # Hz
    decay: float  # seconds
    seconds: float
    volume: float


CLICKS: dict[str, Click] = {
    EVENTS[0]: Click((2_100.0, 3_350.0), 0.006, 0.05, 0.35),  # fingertips on glass
    EVENTS[3]: Click((240.0, 690.0, 1_280.0), 0.02, 0.15, 0.8),  # a bottle set on wood
}


def pour_pitch(fill: NDArray[np.float64], glass: Container) -> NDArray[np.float64]:
    """Return the resonance in Hz of a glass at each fill."""
    pipe = pipe_metres(glass)
    return SPEED_OF_SOUND / (4 * (pipe["height"] * (1 - fill) + END_CORRECTION * pipe["radius"]))


def pipe_metres(glass: Container) -> dict[str, float]:
    """Return h and r of the formula: the inside of the glass in metres."""
    return {"height": (glass.surface(1.0) - glass.floor) * METRES, "radius": glass.radius * WALL * METRES}


def audible_pitch(motion: Motion, glass: Container) -> NDArray[np.float64]:
    """Return the pitch (N,) in Hz while liquid falls into the glass, NaN otherwise."""
    sounding = (motion.flow > 0) & (motion.head >= 1) & (motion.astray < 1)
    return np.where(sounding, pour_pitch(motion.fill, glass), np.nan)


def synthesise(
    motion: Motion, glass: Container, *, clicks: dict[str, float], fps: float, rng: np.random.Generator
) -> Audio:
    """Make the sound track, mono, as long as the video; `clicks` maps key events to seconds."""
    samples = round(motion.num_frames / fps * RATE)
    sound = _room_noise(samples, rng) + _pour(motion, glass, samples=samples, fps=fps, rng=rng)
    for event, second in clicks.items():
        _mix_in(sound, _strike(CLICKS[event], rng), second)
    peak = max(float(np.abs(sound).max()), 1e-9)
    sound *= min(1.0, 0.95 / peak)
    return Audio(samples=sound.astype(np.float32)[None], rate=RATE)


def _room_noise(samples: int, rng: np.random.Generator) -> Signal:
    """Make quiet noise, mostly below a few hundred Hz."""
    return _band_pass(rng.standard_normal(samples), low=20.0, high=300.0) * ROOM


def _pour(motion: Motion, glass: Container, *, samples: int, fps: float, rng: np.random.Generator) -> Signal:
    """Make noise while liquid flows, and the resonance of the glass while liquid lands in it."""
    at = np.arange(samples) / RATE * fps - 0.5  # frame numbers; the values of a frame hold at its middle
    frames = np.arange(motion.num_frames)
    landing = motion.flow * (motion.head >= 1)
    loudness = np.interp(at, frames, landing)
    ringing = np.interp(at, frames, landing * (1 - motion.astray))
    pitch = np.interp(at, frames, pour_pitch(motion.fill, glass))
    tone = narrow_noise(pitch, rng)
    rush = _band_pass(rng.standard_normal(samples), low=500.0, high=5_000.0)
    return 0.16 * tone * ringing + 0.018 * rush * loudness


def narrow_noise(pitch: Signal, rng: np.random.Generator) -> Signal:
    """Make noise of unit strength in a narrow band around `pitch` (M,) by modulating slow noise."""
    slow = [_band_pass(rng.standard_normal(len(pitch)), low=0.0, high=RESONANCE_BANDWIDTH) for _ in range(2)]
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    return np.asarray(slow[0] * np.cos(phase) - slow[1] * np.sin(phase))


def _strike(click: Click, rng: np.random.Generator) -> Signal:
    """Make damped partials with a first millisecond of noise; the loudest sample comes first."""
    time = np.arange(round(click.seconds * RATE)) / RATE
    tones = sum(np.cos(2 * np.pi * partial * time) / len(click.partials) for partial in click.partials)
    noise = rng.standard_normal(len(time)) * np.exp(-time / 0.001) * 0.3
    return np.asarray(click.volume * np.asarray((tones + noise) * np.exp(-time / click.decay)))


def _mix_in(sound: Signal, piece: Signal, second: float) -> None:
    """Mix `piece` into `sound` from `second` on, in place; samples past the end are dropped."""
    start = round(second * RATE)
    part = sound[start : start + len(piece)]
    part += piece[: len(part)]


def _band_pass(signal: Signal, *, low: float, high: float) -> Signal:
    """Keep frequencies between `low` and `high` Hz, and scale to unit strength."""
    frequencies = np.fft.rfftfreq(len(signal), 1 / RATE)
    response = 1 / np.sqrt(1 + (frequencies / high) ** 4)
    if low > 0:
        response = response * (1 - 1 / np.sqrt(1 + (frequencies / low) ** 4))
    filtered = np.fft.irfft(np.fft.rfft(signal) * response, len(signal))
    return np.asarray(filtered / max(float(filtered.std()), 1e-12))
