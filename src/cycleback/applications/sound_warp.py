"""Play a sound by another clock: the pitch stays, and a sharp sound stays sharp and is heard once.

The result is made of unchanged copies of the source with short cross-fades between them. A copy runs on while
it is near enough to the position the clock asks for. Then it jumps to the place, on the other side of that
position, whose waveform is most like the continuation. So a steady pace needs no cut at all, a slow one
repeats parts of the sound, and no repeated part is so short that it hums. Each onset (a catch, a click, a
glass set down) is played at the moment the clock gives it, and at no other.

Letters: M samples of the source, W windows of them, K onsets or points of a time map. Positions are sample
numbers; before 0 and from M on is silence.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.video import Audio

FADE_S = 0.015  # a cross-fade; jumps start at multiples of it
DRIFT_S = 0.08  # how far a copy may run from the clock; viewers tolerate about this much
STILL_DRIFT_S = 0.3  # more where the clock stands still for seconds: short loops would be audible
STILL_S = 1.0  # the pace is averaged over this long before and after
IN_SYNC_S = 0.002  # a copy this near to an onset's place need not jump for it
GUARD_S = 0.003  # only its own copy reads this close before an onset
TAIL_S = 0.06  # how long an onset plays without a jump

ONSET_WINDOW_S = 0.004
ONSET_BEFORE_S = 0.06  # an onset must stand out from this much before it; the minimum distance of two onsets
ONSET_RISE_DB = 12.0  # louder than anything before it by this much
ONSET_RANGE_DB = 35.0  # not quieter than the loudest moment by more

Float = TypeVar("Float", np.float32, np.float64)
Samples = NDArray[np.float64]  # (M,), all channels mixed
Seconds = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TimeMap:
    """`source_s` (K,) for `target_s` (K,), both rising; at full pace before the first and after the last.

    Examples:
        >>> clock = TimeMap(target_s=np.array([0.0, 2.0]), source_s=np.array([1.0, 2.0]))
        >>> clock.source([1.0, 3.0]).tolist(), clock.target(1.5).tolist()
        ([1.5, 3.0], 1.0)
    """

    target_s: Seconds
    source_s: Seconds

    def __post_init__(self) -> None:
        shapes = np.shape(self.target_s), np.shape(self.source_s)
        if shapes[0] != shapes[1] or len(shapes[0]) != 1 or 0 in shapes[0]:
            raise ValueError(f"target_s and source_s must be (K >= 1,), got {shapes[0]} and {shapes[1]}")
        for name in ("target_s", "source_s"):
            if not (np.diff(getattr(self, name)) > 0).all():
                raise ValueError(f"{name} must rise from each point to the next")

    def source(self, target_s: ArrayLike) -> Seconds:
        """Convert seconds of the target to seconds of the source."""
        return _map_seconds(np.asarray(target_s, dtype=np.float64), self.target_s, self.source_s)

    def target(self, source_s: ArrayLike) -> Seconds:
        """Convert seconds of the source to seconds of the target."""
        return _map_seconds(np.asarray(source_s, dtype=np.float64), self.source_s, self.target_s)


def _map_seconds(seconds: Seconds, given: Seconds, wanted: Seconds) -> Seconds:
    """Interpolate linearly between the points, at full pace outside of them."""
    inside = np.clip(seconds, given[0], given[-1])
    return np.asarray(np.interp(inside, given, wanted) + seconds - inside)


@dataclass(frozen=True)
class Copy:
    """From `start` of the result, play the source from `position`; `likeness` in [0, 1] at the joint."""

    start: int
    position: int
    likeness: float = 0.0


@dataclass(frozen=True)
class Limits:
    """Where a hop may read: `low` to `high`, or only `forced`; from `sync` it runs into the next onset."""

    low: int
    high: int
    forced: int | None
    sync: int | None


def warp_sound(audio: Audio, clock: TimeMap, *, duration_s: float) -> Audio:
    """Make `duration_s` of sound in which second t plays second `clock.source(t)` of `audio`."""
    length = round(duration_s * audio.rate)
    weights = 1 / np.arange(1.0, len(audio.samples) + 1)  # unequal: channels in antiphase must not cancel
    mono = np.average(audio.samples.astype(np.float64), axis=0, weights=weights)
    copies = _plan_copies(mono, clock, rate=audio.rate, length=length)
    return Audio(
        join_copies(audio.samples, copies, fade=_samples(FADE_S, audio.rate), length=length), audio.rate
    )


def _plan_copies(mono: Samples, clock: TimeMap, *, rate: int, length: int) -> list[Copy]:
    """Plan the copies that make `length` samples of the result from `mono` (M,), the first at 0."""
    fade = _samples(FADE_S, rate)
    starts = np.arange(0, max(length, 1), fade)
    wanted = np.round(clock.source(starts / rate) * rate).astype(np.int64)
    drifts = np.round(_allowed_drift(clock, starts / rate) * rate).astype(np.int64)
    limits = _limit_hops(find_onsets(mono, rate), clock, starts=starts, rate=rate)
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
        place, likeness = _find_most_alike(mono, position, low=low, high=high, length=fade)
        copies.append(Copy(start, place, likeness))
    return copies


def _allowed_drift(clock: TimeMap, seconds: Seconds) -> Seconds:
    """How far, in seconds, copies may run from the clock at `seconds` of the result."""
    pace = (clock.source(seconds + STILL_S) - clock.source(seconds - STILL_S)) / (2 * STILL_S)
    return DRIFT_S + STILL_DRIFT_S * (1 - np.minimum(pace, 1)) ** 4


def _may_run_on(position: int, want: int, limit: Limits, *, drift: int, near: int) -> bool:
    """Whether the copy that reads at `position` may continue for one more hop."""
    if limit.forced is not None:
        return abs(position - limit.forced) <= near
    if abs(position - want) > drift or position < limit.low:
        return False
    return position <= limit.high or (limit.sync is not None and abs(position - limit.sync) <= near)


def _limit_hops(
    onsets: NDArray[np.int64], clock: TimeMap, *, starts: NDArray[np.int64], rate: int
) -> list[Limits]:
    """Limit what each hop of the result may read, so that every onset (K,) is played once, in its place."""
    fade, guard = _samples(FADE_S, rate), _samples(GUARD_S, rate)
    places = np.round(clock.target(onsets / rate) * rate).astype(np.int64)  # (K,), in the result
    gaps = np.diff(onsets, append=np.iinfo(np.int64).max // 2) - guard - 3 * fade
    ends = onsets + np.clip(gaps, 0, _samples(TAIL_S, rate))
    limits = []
    for start in starts.tolist():
        after = int(np.searchsorted(places - 2 * fade, start, side="right"))  # onsets begun by now
        is_playing = after > 0 and start < places[after - 1] + ends[after - 1] - onsets[after - 1]
        low = int(ends[after - 1]) if after else -(1 << 62)
        high = int(onsets[after]) - guard - 2 * fade if after < len(onsets) else 1 << 62
        limits.append(
            Limits(
                low=low,
                high=max(low, high),
                forced=int(onsets[after - 1] + start - places[after - 1]) if is_playing else None,
                sync=int(onsets[after] + start - places[after]) if after < len(onsets) else None,
            )
        )
    return limits


def _find_most_alike(mono: Samples, position: int, *, low: int, high: int, length: int) -> tuple[int, float]:
    """Find the place in low..high whose next `length` samples are most like those at `position`.

    Returns the place and the likeness in [0, 1].
    """
    pattern = read_samples(mono, position, length)
    field = read_samples(mono, low, high - low + length)
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
    """Join copies of samples (channels, M) to a result (channels, length).

    The cross-fade keeps the loudness: like sounds add in amplitude, unlike ones in power.
    """
    result = np.zeros((len(samples), length + fade), dtype=np.float32)
    ends = [copy.start for copy in copies[1:]] + [length]
    ramp = (np.arange(fade) + 0.5) / fade
    for copy, end in zip(copies, ends, strict=True):
        piece = read_samples(samples, copy.position, end + fade - copy.start)
        if copy.start > 0:
            strength = np.sqrt(ramp**2 + (1 - ramp) ** 2 + 2 * copy.likeness * ramp * (1 - ramp))
            joint = result[:, copy.start : copy.start + fade]
            piece[:, :fade] = (joint * (1 - ramp) + piece[:, :fade] * ramp) / strength
        result[:, copy.start : end + fade] = piece
    return result[:, :length]


def read_samples(samples: NDArray[Float], start: int, length: int) -> NDArray[Float]:
    """Copy samples (..., start to start + length), with silence outside of them."""
    piece = np.zeros((*samples.shape[:-1], length), dtype=samples.dtype)
    first, last = max(0, start), min(samples.shape[-1], start + length)
    if last > first:
        piece[..., first - start : last - start] = samples[..., first:last]
    return piece


def _samples(seconds: float, rate: int) -> int:
    return max(1, round(seconds * rate))


def find_onsets(mono: Samples, rate: int) -> NDArray[np.int64]:
    """Find the samples (K,), ascending, at which `mono` (M,) rises sharply."""
    window = max(1, round(ONSET_WINDOW_S * rate))
    loudness = _loudness(mono, window)  # (W,)
    before = max(1, round(ONSET_BEFORE_S / ONSET_WINDOW_S))
    if len(loudness) < 2 or not np.isfinite(loudness).any():
        return np.zeros(0, dtype=np.int64)
    rises = loudness - _loudest_before(loudness, before)
    is_onset = (rises > ONSET_RISE_DB) & (loudness > loudness.max() - ONSET_RANGE_DB)
    chosen: list[int] = []
    for index in sorted(np.flatnonzero(is_onset), key=lambda index: -rises[index]):
        if all(abs(index - other) >= before for other in chosen):
            chosen.append(int(index))
    return np.array([_first_loud_sample(mono, index * window, window) for index in sorted(chosen)], np.int64)


def _loudness(mono: Samples, window: int) -> NDArray[np.float64]:
    """Power in dB (W,) of each window; low tones are attenuated, because hum and rumble have no onsets."""
    steps = np.diff(mono, prepend=mono[:1])
    count = len(steps) // window
    power = (steps[: count * window].reshape(count, window) ** 2).mean(axis=1)
    return np.asarray(10 * np.log10(power + 1e-12))


def _loudest_before(loudness: NDArray[np.float64], before: int) -> NDArray[np.float64]:
    """The maximum (W,) of up to `before` windows before each, without the one right before it."""
    padded = np.concatenate([np.full(before + 1, loudness[0]), loudness])
    views = np.lib.stride_tricks.sliding_window_view(padded, before)
    return np.asarray(views[: len(loudness)].max(axis=1))


def _first_loud_sample(mono: Samples, start: int, window: int) -> int:
    """The first sample near `start` that is a quarter as loud as the loudest around it."""
    first = max(0, start - window)
    steps = np.abs(np.diff(mono[first : start + 2 * window], prepend=mono[first]))
    return int(first + np.argmax(steps >= 0.25 * steps.max()))
