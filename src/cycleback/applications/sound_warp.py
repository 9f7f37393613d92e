"""Play a sound by another clock: its pitch stays, and a sharp sound stays sharp and is heard once.

The result is made of straight copies of the source with short cross-fades between them. A copy runs on for as
long as it is near enough to where the clock wants it. Then it jumps to the place, on the other side of the
wanted one, whose waveform is most like what would have come next. So a steady pace needs no cut at all, a
slow one repeats stretches of sound, and none repeats a grain so short that it hums.
Each onset is played at the moment the clock gives it, and at no other.

Letters: M samples of the source, K onsets. Positions are sample numbers; before 0 and from M on is silence.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.sound_onsets import find_onsets
from cycleback.applications.time_map import TimeMap
from cycleback.video import Audio

FADE_S = 0.015  # a cross-fade; jumps start on this grid of the result
DRIFT_S = 0.08  # how far a copy may run from where the clock wants it; eyes and ears allow about this much
STILL_DRIFT_S = 0.3  # more of it where the clock stands still for seconds: short loops would be heard as such
STILL_S = 1.0  # the pace is the mean over so much before and after
IN_SYNC_S = 0.002  # a copy this near to an onset's place need not jump for it
GUARD_S = 0.003  # no copy but its own reads this close before an onset
TAIL_S = 0.06  # how long an onset sounds on with no jump

Float = TypeVar("Float", np.float32, np.float64)
Samples = NDArray[np.float64]  # (M,), all channels mixed


@dataclass(frozen=True)
class Copy:
    """From `start` of the result on, the source from `position` on; `likeness` in 0..1 at their joint."""

    start: int
    position: int
    likeness: float = 0.0


@dataclass(frozen=True)
class Stretch:
    """Where a hop may read: `low` to `high`, or just at `forced`; from `sync` it runs into the next onset."""

    low: int
    high: int
    forced: int | None
    sync: int | None


def warp_sound(audio: Audio, clock: TimeMap, *, duration_s: float) -> Audio:
    """`duration_s` of sound in which second t plays second `clock.source(t)` of `audio`."""
    length = round(duration_s * audio.rate)
    shares = 1 / np.arange(1.0, len(audio.samples) + 1)  # unequal: channels in antiphase must not cancel out
    mono = np.average(audio.samples.astype(np.float64), axis=0, weights=shares)
    copies = plan_copies(mono, clock, rate=audio.rate, length=length)
    return Audio(
        join_copies(audio.samples, copies, fade=_samples(FADE_S, audio.rate), length=length), audio.rate
    )


def plan_copies(mono: Samples, clock: TimeMap, *, rate: int, length: int) -> list[Copy]:
    """The copies that make `length` samples of the result from `mono` (M,), the first at 0."""
    fade = _samples(FADE_S, rate)
    starts = np.arange(0, max(length, 1), fade)
    wanted = np.round(clock.source(starts / rate) * rate).astype(np.int64)
    drifts = np.round(_drift(clock, starts / rate) * rate).astype(np.int64)
    limits = _stretches(find_onsets(mono, rate), clock, starts=starts, rate=rate)
    copies = [Copy(0, int(wanted[0]))]
    for start, want, drift, limit in zip(
        *(x.tolist() for x in (starts, wanted, drifts)), limits, strict=True
    ):
        position = copies[-1].position + start - copies[-1].start
        want = min(max(want, limit.low), limit.high)
        if _may_run_on(position, want, limit, drift=drift, near=_samples(IN_SYNC_S, rate)):
            continue
        ahead = position > want
        low, high = (want - drift, want - drift // 2) if ahead else (want + drift // 2, want + drift)
        low, high = (min(max(edge, limit.low), limit.high) for edge in (low, high))
        if limit.forced is not None:
            low = high = limit.forced
        place, likeness = most_alike(mono, position, low=low, high=high, length=fade)
        copies.append(Copy(start, place, likeness))
    return copies


def _drift(clock: TimeMap, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many seconds copies may run from where the clock wants them at `seconds` of the result."""
    pace = (clock.source(seconds + STILL_S) - clock.source(seconds - STILL_S)) / (2 * STILL_S)
    return DRIFT_S + STILL_DRIFT_S * (1 - np.minimum(pace, 1)) ** 4


def _may_run_on(position: int, want: int, limit: Stretch, *, drift: int, near: int) -> bool:
    """Whether the copy that reads at `position` may go on for one more hop."""
    if limit.forced is not None:
        return abs(position - limit.forced) <= near
    if abs(position - want) > drift or position < limit.low:
        return False
    return position <= limit.high or (limit.sync is not None and abs(position - limit.sync) <= near)


def _stretches(
    onsets: NDArray[np.int64], clock: TimeMap, *, starts: NDArray[np.int64], rate: int
) -> list[Stretch]:
    """What each hop of the result may read, so that every onset (K,) is played once, and in its place."""
    fade, guard = _samples(FADE_S, rate), _samples(GUARD_S, rate)
    places = np.round(clock.target(onsets / rate) * rate).astype(np.int64)  # (K,), in the result
    gaps = np.diff(onsets, append=np.iinfo(np.int64).max // 2) - guard - 3 * fade
    ends = onsets + np.clip(gaps, 0, _samples(TAIL_S, rate))
    stretches = []
    for start in starts.tolist():
        after = int(np.searchsorted(places - 2 * fade, start, side="right"))  # onsets begun by now
        is_playing = after > 0 and start < places[after - 1] + ends[after - 1] - onsets[after - 1]
        low = int(ends[after - 1]) if after else -(1 << 62)
        high = int(onsets[after]) - guard - 2 * fade if after < len(onsets) else 1 << 62
        stretches.append(
            Stretch(
                low=low,
                high=max(low, high),
                forced=int(onsets[after - 1] + start - places[after - 1]) if is_playing else None,
                sync=int(onsets[after] + start - places[after]) if after < len(onsets) else None,
            )
        )
    return stretches


def most_alike(mono: Samples, position: int, *, low: int, high: int, length: int) -> tuple[int, float]:
    """The place in low..high whose next `length` samples are most like those at `position`, and how alike."""
    pattern, field = read(mono, position, length), read(mono, low, high - low + length)
    size = len(field) + length
    spectrum = np.fft.rfft(field, size) * np.fft.rfft(pattern, size).conj()
    products = np.fft.irfft(spectrum, size)[: high - low + 1]
    sums = np.concatenate([[0.0], np.cumsum(field**2)])
    power = np.maximum(sums[length:] - sums[:-length], 0) * (pattern @ pattern)
    scores = products / np.sqrt(power + (1e-8 * length) ** 2)
    best = int(np.argmax(scores))
    return low + best, float(np.clip(scores[best], 0, 1))


def join_copies(
    samples: NDArray[np.float32], copies: list[Copy], *, fade: int, length: int
) -> NDArray[np.float32]:
    """Lay copies of samples (channels, M) one after another: (channels, length).

    The cross-fade keeps the loudness: like sounds add in strength, unlike ones in power.
    """
    result = np.zeros((len(samples), length + fade), dtype=np.float32)
    ends = [copy.start for copy in copies[1:]] + [length]
    ramp = (np.arange(fade) + 0.5) / fade
    for copy, end in zip(copies, ends, strict=True):
        piece = read(samples, copy.position, end + fade - copy.start)
        if copy.start > 0:
            strength = np.sqrt(ramp**2 + (1 - ramp) ** 2 + 2 * copy.likeness * ramp * (1 - ramp))
            joint = result[:, copy.start : copy.start + fade]
            piece[:, :fade] = (joint * (1 - ramp) + piece[:, :fade] * ramp) / strength
        result[:, copy.start : end + fade] = piece
    return result[:, :length]


def read(samples: NDArray[Float], start: int, length: int) -> NDArray[Float]:
    """A copy of samples (..., start to start + length), silent where there are none."""
    piece = np.zeros((*samples.shape[:-1], length), dtype=samples.dtype)
    first, last = max(0, start), min(samples.shape[-1], start + length)
    if last > first:
        piece[..., first - start : last - start] = samples[..., first:last]
    return piece


def _samples(seconds: float, rate: int) -> int:
    return max(1, round(seconds * rate))
