import numpy as np
import pytest

from cycleback.synth import RenderedVideo, Take, plan_take, render_audio
from cycleback.synth.containers import Container
from cycleback.synth.sound import narrow_noise, pour_pitch

TAKE = plan_take(34)  # a pour of more than two seconds


def loudest_frequency(samples: np.ndarray, rate: int) -> float:
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples)), 4 * len(samples)))
    frequencies = np.fft.rfftfreq(4 * len(samples), 1 / rate)
    band = (frequencies > 250) & (frequencies < 8000)
    return float(frequencies[band][spectrum[band].argmax()])


def test_the_pitch_is_that_of_a_pipe_closed_at_one_end() -> None:
    glass = Container(kind="mug", height=0.2, radius=0.08)
    height, radius = (0.96 - 0.07) * 0.2 * 0.62, 0.08 * 0.9 * 0.62  # metres
    empty, full = 343 / (4 * (height + 0.62 * radius)), 343 / (4 * 0.62 * radius)
    np.testing.assert_allclose(pour_pitch(np.array([0.0, 1.0]), glass), [empty, full])


def test_the_loudest_frequency_follows_the_pitch_of_the_truth() -> None:
    audio, pitch = render_audio(TAKE), TAKE.pitch
    sounding = np.flatnonzero(~np.isnan(pitch))
    tracked = []
    for frame in sounding[4:-4:6]:
        start, end = (round((frame + edge) / TAKE.fps * audio.rate) for edge in (-1, 2))
        tracked.append(loudest_frequency(audio.samples[0, start:end], audio.rate) / pitch[frame])
    assert len(tracked) >= 5
    assert np.median(np.abs(np.array(tracked) - 1)) < 0.06


def test_the_pitch_rises_with_the_fill(takes: list[Take]) -> None:
    for take in takes:
        pitch = take.pitch
        sounding = pitch[~np.isnan(pitch)]
        assert (np.diff(sounding) >= 0).all() and sounding[-1] > 1.25 * sounding[0]


def test_there_is_no_pitch_without_liquid_landing_in_the_glass() -> None:
    take = plan_take(3, anomaly="missed glass")
    pitch = take.pitch
    start, end = take.anomaly_range
    assert np.isnan(pitch[start : end + 1]).all()
    assert np.isnan(pitch[take.motion.flow == 0]).all()


def test_clicks_are_where_the_truth_says() -> None:
    audio = render_audio(TAKE)
    loudness = np.abs(audio.samples[0])
    for second in TAKE.clicks.values():
        at = round(second * audio.rate)
        around = loudness[max(at - 2000, 0) : at + 2000]
        assert abs(int(around.argmax()) - min(at, 2000)) < 0.002 * audio.rate
        assert around.max() > 8 * loudness[max(at - 2000, 0) : at - 10].max()


def test_the_room_is_quiet_and_nothing_clips(video: RenderedVideo) -> None:
    samples, rate = video.audio.samples[0], video.audio.rate
    before = samples[: int(video.take.clicks["hand touches bottle"] * rate) - 10]
    assert 0 < np.abs(before).max() < 0.02
    assert np.abs(samples).max() < 1


def test_the_sound_is_as_long_as_the_video(video: RenderedVideo) -> None:
    assert video.audio.samples.dtype == np.float32
    assert video.audio.samples.shape == (1, round(len(video.frames) / video.take.fps * video.audio.rate))


def test_narrow_noise_keeps_to_its_pitch() -> None:
    tone = narrow_noise(np.full(44_100, 2000.0), np.random.default_rng(0))
    power = np.abs(np.fft.rfft(tone)) ** 2  # bins of 1 Hz
    assert power[1800:2200].sum() > 0.98 * power.sum()
    assert tone.std() == pytest.approx(1.0, rel=0.1)
