"""Sounds whose right result is known by arithmetic: tones, sweeps, clicks and noise."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cycleback.applications.sound import fit_time_map
from cycleback.applications.sound_warp import Copy, TimeMap, find_onsets, join_copies, warp_sound
from cycleback.video import Audio

RATE = 16_000
# at full pace, slow, standing almost still, fast, at full pace
CLOCK = TimeMap(
    target_s=np.array([0.0, 1.0, 2.0, 3.0, 3.5, 4.5]), source_s=np.array([0.0, 1.0, 1.5, 1.501, 3.0, 4.0])
)


def seconds(count: float, rate: int = RATE) -> NDArray[np.float64]:
    return np.arange(round(count * rate)) / rate


def warped(samples: NDArray[np.float64], clock: TimeMap = CLOCK, *, duration_s: float = 4.5) -> NDArray:
    return warp_sound(Audio(np.atleast_2d(samples), RATE), clock, duration_s=duration_s).samples


def clicks(times: list[float], length_s: float) -> NDArray[np.float64]:
    """Bursts of 3 kHz that die away within 10 ms, over faint noise."""
    sound = np.random.default_rng(0).standard_normal(round(length_s * RATE)) * 1e-4
    for second in times:
        start = round(second * RATE)
        burst = np.cos(2 * np.pi * 3000 * seconds(0.03)) * np.exp(-seconds(0.03) / 0.003)
        sound[start : start + len(burst)] += 0.8 * burst
    return sound


def peaks(sound: NDArray) -> list[float]:
    """Seconds of the loudest sample of everything louder than 0.3, a reference without our detector."""
    loud = np.flatnonzero(np.abs(sound) > 0.3)
    groups = np.split(loud, np.flatnonzero(np.diff(loud) > 0.02 * RATE) + 1)
    return [float(group[np.argmax(np.abs(sound[group]))] / RATE) for group in groups if len(group)]


def test_the_identity_gives_back_the_very_samples() -> None:
    sound = np.random.default_rng(1).uniform(-1, 1, (2, RATE)).astype(np.float32)
    same = TimeMap(target_s=np.array([0.0, 1.0]), source_s=np.array([0.0, 1.0]))
    np.testing.assert_array_equal(warped(sound, same, duration_s=1.0), sound)


def test_a_jittering_match_at_full_pace_is_no_reason_to_cut() -> None:
    grid = np.linspace(0, 2, 61)
    jitter = TimeMap(grid, grid + 0.01 * np.sin(9 * grid))
    sound = clicks([0.4, 1.1, 1.7], 2.0) + 0.1 * np.sin(700 * seconds(2.0))
    assert peaks(warped(sound, jitter, duration_s=2.0)[0]) == pytest.approx([0.4, 1.1, 1.7], abs=0.012)


@pytest.mark.parametrize("hertz", [110.0, 440.0, 3100.0])
def test_a_constant_tone_stays_one(hertz: float) -> None:
    tone = warped(0.5 * np.sin(2 * np.pi * hertz * seconds(4.0)))[0, : 4 * RATE]
    period = round(RATE / hertz) * 4
    loudness = np.sqrt(np.convolve(tone**2, np.ones(period) / period, mode="valid"))
    assert 20 * np.log10(loudness.max() / loudness.min()) < 1.0
    assert np.abs(np.diff(tone)).max() < 1.1 * 0.5 * 2 * np.pi * hertz / RATE


def test_a_constant_tone_keeps_its_pitch_and_has_no_side_tones() -> None:
    tone = warped(0.5 * np.sin(2 * np.pi * 440 * seconds(4.0)))[0, : 4 * RATE]
    spectrum = np.abs(np.fft.rfft(tone * np.hanning(len(tone)))) ** 2
    hertz = np.fft.rfftfreq(len(tone), 1 / RATE)
    assert spectrum[np.abs(hertz - 440) < 10].sum() > 0.99 * spectrum.sum()


def test_a_sweep_has_at_each_moment_the_pitch_of_its_mapped_moment() -> None:
    sweep = warped(np.sin(2 * np.pi * (300 * seconds(4.0) + 200 * seconds(4.0) ** 2)))[0]  # 300 + 400 t Hz
    for start in np.arange(0.1, 4.3, 0.1):
        part = sweep[round(start * RATE) :][:1024] * np.hanning(1024)
        heard = np.argmax(np.abs(np.fft.rfft(part, 1 << 15))) * RATE / (1 << 15)
        wanted = 300 + 400 * float(CLOCK.source(start + 512 / RATE))
        assert heard == pytest.approx(wanted, abs=400 * 0.15)  # drift, hop, fade and half a window


def test_every_click_is_heard_once_in_its_place() -> None:
    times = [0.3, 0.6, 1.1, 1.3, 1.5005, 1.9, 2.4, 3.2, 3.7]
    heard = peaks(warped(clicks(times, 4.0))[0])
    assert heard == pytest.approx(CLOCK.target(times).tolist(), abs=0.005)


def test_clicks_keep_their_shape() -> None:
    times = [0.6, 1.3, 2.4]
    sound = clicks(times, 4.0)
    result = warped(sound)[0]
    for second, place in zip(peaks(sound), peaks(result), strict=True):
        before, after = (round(moment * RATE) for moment in (second, place))
        np.testing.assert_allclose(result[after - 20 :][:400], sound[before - 20 :][:400], atol=1e-3)


def test_a_standing_clock_does_not_hum_on_noise() -> None:
    noise = 0.2 * np.random.default_rng(2).standard_normal(4 * RATE)
    still = warped(noise)[0, round(2.05 * RATE) : round(2.95 * RATE)].astype(np.float64)
    power = np.fft.irfft(np.abs(np.fft.rfft(still, 1 << 15)) ** 2)
    echoes = power[round(0.002 * RATE) : round(0.05 * RATE)] / power[0]  # repeats at 20 to 500 Hz
    assert np.abs(echoes).max() < 0.25
    assert np.std(still) == pytest.approx(0.2, rel=0.15)


def test_an_onset_beside_a_long_stand_does_not_make_the_loop_short() -> None:
    noise = 0.05 * np.random.default_rng(4).standard_normal(6 * RATE)
    noise[round(3.03 * RATE)] += 0.9
    clock = TimeMap(target_s=np.array([0.0, 3.0, 9.0, 12.0]), source_s=np.array([0.0, 3.0, 3.006, 6.0]))
    still = warped(noise, clock, duration_s=12.0)[0, 4 * RATE : 8 * RATE].astype(np.float64)
    power = np.fft.irfft(np.abs(np.fft.rfft(still, 1 << 17)) ** 2)
    assert np.abs(power[round(0.002 * RATE) : round(0.3 * RATE)]).max() < 0.2 * power[0]


def test_noise_is_as_loud_across_the_joints() -> None:
    noise = 0.2 * np.random.default_rng(3).standard_normal(4 * RATE)
    result = warped(noise)[0, : 4 * RATE].reshape(-1, RATE // 10)
    np.testing.assert_allclose(result.std(axis=1), 0.2, rtol=0.2)


def test_channels_move_together() -> None:
    tone = np.stack([np.sin(2 * np.pi * 300 * seconds(4.0)), np.zeros(4 * RATE)]) * 0.5
    result = warped(tone)
    assert np.abs(result[0]).max() > 0.4
    assert not result[1].any()


def test_channels_in_antiphase_have_no_clicks() -> None:
    tone = 0.5 * np.sin(2 * np.pi * 300 * seconds(4.0))
    result = warped(np.stack([tone, -tone]))[:, : 4 * RATE]
    assert np.abs(np.diff(result)).max() < 1.1 * 0.5 * 2 * np.pi * 300 / RATE


@pytest.mark.parametrize("length", [1, 7, 100])
def test_a_very_short_sound_is_followed_by_silence(length: int) -> None:
    result = warped(np.full(length, 0.5), duration_s=1.0)
    assert result.shape == (1, RATE)
    assert np.isfinite(result).all()
    assert not result[:, 2 * length + RATE // 5 :].any()


def test_no_sound_at_all_gives_silence() -> None:
    assert not warped(np.zeros(0), duration_s=0.5).any()
    assert warped(np.ones(5), duration_s=0.0).shape == (1, 0)


def test_a_target_longer_than_the_source_ends_in_silence() -> None:
    same = TimeMap(target_s=np.array([0.0, 1.0]), source_s=np.array([0.0, 1.0]))
    result = warped(np.ones(RATE), same, duration_s=2.0)
    assert (result[0, :RATE] == 1).all()
    assert not result[0, round(1.1 * RATE) :].any()


def test_joints_of_like_and_unlike_sounds_are_equally_loud() -> None:
    alike = join_copies(np.ones((1, 100), np.float32), [Copy(0, 0), Copy(50, 0, 1.0)], fade=10, length=80)
    np.testing.assert_allclose(alike, 1.0, rtol=1e-6)
    both = np.array([[1.0] * 100], np.float32)
    unlike = join_copies(both, [Copy(0, 0), Copy(50, 0, 0.0)], fade=10, length=80)
    assert unlike[0, 54] == pytest.approx(2**0.5, rel=0.01)


def test_onsets_are_found_to_the_millisecond_and_tones_have_none() -> None:
    found = find_onsets(clicks([0.3, 0.6, 1.1], 2.0), RATE)
    np.testing.assert_allclose(found / RATE, [0.3, 0.6, 1.1], atol=0.001)
    assert len(find_onsets(np.sin(2 * np.pi * 440 * seconds(2.0)), RATE)) == 0
    assert len(find_onsets(np.random.default_rng(0).standard_normal(RATE), RATE)) == 0
    assert len(find_onsets(np.zeros(3), RATE)) == 0


def test_there_and_back_is_where_one_started() -> None:
    clock = TimeMap(target_s=np.array([0.0, 1.0, 4.0]), source_s=np.array([2.0, 2.5, 3.0]))
    seconds = np.linspace(-1, 6, 50)
    np.testing.assert_allclose(clock.target(clock.source(seconds)), seconds, atol=1e-12)


def test_the_diagonal_is_the_identity() -> None:
    times = np.arange(40) / 25
    clock = fit_time_map(np.arange(40.0), target_times=times, source_times=times)
    np.testing.assert_allclose(clock.source(times), times, atol=2e-3)


def test_frame_rates_do_not_matter() -> None:
    slow, fast = np.arange(30) / 10, np.arange(90) / 30  # three seconds each
    clock = fit_time_map(3 * np.arange(30.0) + 1, target_times=slow, source_times=fast)
    np.testing.assert_allclose(clock.source(slow)[3:-3], slow[3:-3] + 1 / 30, atol=0.005)


def test_uneven_frame_times_count_as_seconds() -> None:
    uneven = np.cumsum(np.tile([0.02, 0.06], 40)) - 0.02
    even = np.arange(80) / 25
    clock = fit_time_map(np.arange(80.0), target_times=uneven, source_times=even)
    assert float(clock.source(1.6)) == pytest.approx(1.6, abs=0.03)


def test_a_match_that_stands_still_has_a_way_back() -> None:
    positions = np.array([0.0] * 29 + [2.5])
    clock = fit_time_map(positions, target_times=np.arange(30) / 30, source_times=np.arange(5) / 30)
    assert (np.diff(clock.source(np.linspace(0, 1, 100))) > 0).all()


def test_one_frame_is_enough() -> None:
    clock = fit_time_map(np.array([1.0]), target_times=np.zeros(1), source_times=np.array([0.0, 0.5, 1.0]))
    assert float(clock.source(0.1)) == pytest.approx(0.6)


def test_points_that_do_not_rise_are_refused() -> None:
    with pytest.raises(ValueError, match="source_s must rise"):
        TimeMap(target_s=np.array([0.0, 1.0]), source_s=np.array([1.0, 1.0]))
    with pytest.raises(ValueError, match=r"got \(2,\) and \(3,\)"):
        TimeMap(target_s=np.zeros(2), source_s=np.zeros(3))
