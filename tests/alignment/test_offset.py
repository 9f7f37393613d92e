"""The offset of two recordings against a known line, a plain loop, and recordings that have none."""

import numpy as np
import pytest

from cycleback.alignment.offset import (
    Line,
    correlate,
    fit_offset,
    robust_slope,
    vote_drift,
    weighted_median,
)
from cycleback.alignment.sound_offset import RATE, fit_sound_offset, is_silent, rising_loudness


def event(rng: np.random.Generator, lasts_s: float, size: int = 6):
    """A smooth random event: a function of seconds that returns vectors."""
    moments = np.arange(-1, lasts_s + 1, 0.1)
    values = rng.normal(size=(len(moments), size))
    return lambda seconds: np.stack([np.interp(seconds, moments, column) for column in values.T], axis=1)


def film(show, line: Line, *, fps: float, start: float, stop: float, jitter: float = 0.0, rng=None):
    """Times by the camera's own clock, and what it sees then; frames are late by up to `jitter` frames."""
    times = np.arange(0, stop - start, 1 / fps)
    if jitter:
        times = times + rng.uniform(0, jitter / fps, len(times))
        times -= times[0]
    return times, show(line.to_a(times))


def test_a_line_maps_there_and_back_and_can_be_turned_and_moved() -> None:
    line, seconds = Line(1.5, 0.01), np.linspace(-2, 9, 5)
    assert np.allclose(line.to_a(line.to_b(seconds)), seconds)
    assert np.allclose(line.turned().to_b(line.to_b(seconds)), seconds)
    moved = line.moved(0.2, 0.001, 3.0)
    assert np.allclose(moved.to_b(seconds), line.to_b(seconds + 0.2 + 0.001 * (seconds - 3.0)))


def test_correlations_are_those_of_a_plain_loop(rng) -> None:
    a, b = rng.normal(size=(9, 2)), rng.normal(size=(6, 2)) + 3
    values, shared = correlate(a, b)
    for k in range(len(values)):
        shift = k - (len(b) - 1)
        pairs = [(a[i], b[i - shift]) for i in range(len(a)) if 0 <= i - shift < len(b)]
        assert shared[k] == len(pairs)
        x, y = (np.array(each) for each in zip(*pairs, strict=True))
        x, y = x - x.mean(axis=0), y - y.mean(axis=0)
        scale = np.sqrt((x**2).sum() * (y**2).sum())
        assert values[k] == pytest.approx((x * y).sum() / scale if scale > 1e-6 else 0.0, abs=1e-6)


@pytest.mark.parametrize(("offset", "fps"), [(1.234, 25.0), (-0.777, 24.0), (0.01, 60.0)])
def test_pictures_at_other_rates_give_the_shift_to_a_part_of_a_frame(rng, offset, fps) -> None:
    show = event(rng, 12)
    times_a, a = film(show, Line(0.0), fps=30, start=0, stop=8)
    times_b, b = film(show, Line(offset), fps=fps, start=0, stop=7, jitter=0.6, rng=rng)
    b = 3 * b + 0.3 * rng.normal(size=b.shape) + 5  # another camera: scale, noise and background differ
    for method in ("offset", "affine"):
        found = fit_offset(a, b, times_a=times_a, times_b=times_b, method=method)
        assert found.offset_s == pytest.approx(offset, abs=0.008)
        assert found.line.drift == pytest.approx(0, abs=0.002) and found.is_linear
        assert found.confidence > 0.9


def test_a_drift_of_pictures_is_found_with_affine_only(rng) -> None:
    show, line = event(rng, 45), Line(2.0, 0.01)
    times_a, a = film(show, Line(0.0), fps=30, start=0, stop=40)
    times_b, b = film(show, line, fps=25, start=0, stop=36)
    found = fit_offset(a, b, times_a=times_a, times_b=times_b)
    assert found.line.drift == pytest.approx(0.01, abs=0.0003)
    inside = np.linspace(*found.common_s, 9)
    assert np.abs(found.to_b(inside) - line.to_b(inside)).max() < 0.01
    constant = fit_offset(a, b, times_a=times_a, times_b=times_b, method="offset")
    assert constant.line.drift == 0


def test_a_relation_that_is_no_line_is_told(rng) -> None:
    show = event(rng, 20)
    times = np.arange(0, 16, 1 / 30)
    bent = times + 0.25 * np.sin(times / 2)  # another take: now faster, now slower
    found = fit_offset(show(times), show(bent), times_a=times, times_b=times)
    assert not found.is_linear and found.residual_s > 0.05


def test_different_events_are_not_trusted(rng) -> None:
    times = np.arange(0, 8, 1 / 30)
    for _ in range(5):
        a, b = event(rng, 10)(times), event(rng, 10)(times)
        assert fit_offset(a, b, times_a=times, times_b=times).confidence < 0.5


def hear(rng: np.random.Generator, lasts_s: float) -> np.ndarray:
    """A sound with knocks at random moments, above soft noise."""
    sound = 0.003 * rng.normal(size=int(lasts_s * RATE))
    for start in rng.integers(0, len(sound) - 3000, int(6 * lasts_s)):
        sound[start : start + 2000] += rng.normal(size=2000) * np.exp(-np.arange(2000) / 300) * 0.3
    return sound


def record(sound: np.ndarray, line: Line, lasts_s: float, rng: np.random.Generator) -> np.ndarray:
    """What another microphone hears, by its own clock: duller, softer, with noise of its own."""
    seconds = line.to_a(np.arange(int(lasts_s * RATE)) / RATE)
    heard = np.interp(seconds * RATE, np.arange(len(sound)), np.convolve(sound, [0.3, 0.4, 0.3], "same"))
    return 0.2 * heard + 0.002 * rng.normal(size=len(heard))


@pytest.mark.parametrize("line", [Line(1.2345), Line(0.4, 1e-4), Line(0.9, -0.01)])
def test_sound_gives_shift_and_drift_to_a_fraction_of_a_millisecond(rng, line) -> None:
    whole = hear(rng, 9)
    a, b = whole[: 7 * RATE], record(whole, line, 6.0, rng)
    found = fit_sound_offset(a, b)
    inside = np.linspace(*found.common_s, 9)
    assert np.abs(found.to_b(inside) - line.to_b(inside)).max() < 2e-4
    assert found.line.drift == pytest.approx(line.drift, abs=3e-5)
    assert found.confidence > 0.9 and found.is_linear
    turned = fit_sound_offset(b, a)
    assert np.abs(turned.to_b(line.to_b(inside)) - inside).max() < 2e-4


def test_other_sounds_are_not_trusted_and_silence_is_refused(rng) -> None:
    for _ in range(3):
        assert fit_sound_offset(hear(rng, 4), hear(rng, 5)).confidence < 0.5
    with pytest.raises(ValueError, match="a silent recording has no offset"):
        fit_sound_offset(hear(rng, 2), np.zeros(2 * RATE))
    with pytest.raises(ValueError, match=r"0\.10 s of sound are too short"):
        fit_sound_offset(hear(rng, 2), np.ones(RATE // 10))
    assert is_silent(np.zeros(0)) and not is_silent(hear(rng, 1))


def test_chunks_of_long_recordings_vote_for_the_drift(rng) -> None:
    whole, line = hear(rng, 150), Line(20.0, 0.008)
    a, b = whole, record(whole, line, 110.0, rng)
    (loud_a, times_a), (loud_b, times_b) = rising_loudness(a), rising_loudness(b)
    for pair, drift in (
        ((loud_a, loud_b, times_a, times_b), line.drift),
        ((loud_b, loud_a, times_b, times_a), line.turned().drift),
    ):
        assert vote_drift(*pair, step_s=0.01, width_s=0.1) == pytest.approx(drift, abs=3e-4)


def test_medians_are_not_moved_by_outliers(rng) -> None:
    x = np.arange(20.0)
    y = 0.5 * x + 1
    y[[3, 11, 17]] += 40
    assert robust_slope(x, y) == pytest.approx(0.5)
    assert weighted_median(np.array([1.0, 2.0, 3.0, 100.0]), np.array([1.0, 1.0, 1.0, 0.01])) < 3


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([0, 1, 2], r"times must be 4 finite seconds"),
        ([0, 2, 1, 3], r"never decrease"),
        ([0, 0, 0, 0], r"needs at least 3 frames"),
    ],
)
def test_times_that_do_not_fit_are_refused(rng, times, message) -> None:
    x = rng.normal(size=(4, 2))
    with pytest.raises(ValueError, match=message):
        fit_offset(x, x, times_a=times, times_b=np.arange(4))
    with pytest.raises(ValueError, match="nothing changes in both"):
        fit_offset(np.ones((4, 2)), x, times_a=np.arange(4), times_b=np.arange(4))
    with pytest.raises(ValueError, match="method must be one of 'offset', 'affine'"):
        fit_offset(x, x, times_a=np.arange(4), times_b=np.arange(4), method="linear")  # type: ignore[arg-type]


def test_strong_echoes_make_no_drift(rng) -> None:
    whole = hear(rng, 8)

    def echo(sound: np.ndarray) -> np.ndarray:
        tail = rng.normal(size=RATE // 2) * np.exp(-np.arange(RATE // 2) / 1200)
        tail *= 3 / np.sqrt(np.square(tail).sum())
        return sound + np.convolve(sound, tail)[: len(sound)]

    found = fit_sound_offset(echo(whole[: 6 * RATE]), echo(whole[RATE:]))
    assert found.line.drift == 0 and found.offset_s == pytest.approx(1.0, abs=0.02)
