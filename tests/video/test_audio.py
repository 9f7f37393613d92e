from itertools import pairwise

import numpy as np
import pytest

from cycleback.errors import DamagedVideoWarning, VideoError
from cycleback.video import Audio, read_audio, write_video
from cycleback.video.audio import iter_audio, resample

CLICKS = [0.25, 0.5, 1.2]  # seconds


def clicks(rate=44100, seconds=2.0, channels=1):
    """Silence with short beeps at CLICKS."""
    samples = np.zeros((channels, round(seconds * rate)), dtype=np.float32)
    beep = 0.9 * np.sin(2 * np.pi * 2000 * np.arange(rate // 100) / rate) * np.hanning(rate // 100)
    for at in CLICKS:
        samples[:, round(at * rate) : round(at * rate) + len(beep)] = beep
    return Audio(samples, rate)


def times_of_clicks(audio):
    """Seconds at which each stretch above a quarter of the peak begins."""
    loud = np.abs(audio.samples).max(axis=0) > 0.25 * np.abs(audio.samples).max()
    starts = [b for a, b in pairwise([-audio.rate, *np.flatnonzero(loud)]) if b - a > audio.rate / 20]
    return np.array(starts) / audio.rate


def pitch(audio):
    """Hertz of the strongest tone of the first channel."""
    spectrum = np.abs(np.fft.rfft(audio.samples[0]))
    return np.argmax(spectrum) * audio.rate / audio.samples.shape[1]


@pytest.fixture
def beeping(tmp_path, numbered):
    """A video of 2 s with beeps at CLICKS."""
    return write_video(tmp_path / "beeping.mp4", numbered(60), fps=30, audio=clicks(channels=2))


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".mov"])
def test_tone_survives_the_round_trip(tmp_path, numbered, tone, suffix):
    path = write_video(
        tmp_path / f"a{suffix}", numbered(60), fps=30, audio=tone(seconds=2, hertz=1000, channels=2)
    )
    audio = read_audio(path)
    assert audio.samples.dtype == np.float32 and audio.samples.shape[0] == 2
    assert audio.rate == 44100
    assert audio.duration_s == pytest.approx(2.0, abs=0.025)
    assert pitch(audio) == pytest.approx(1000, abs=1)
    assert np.abs(audio.samples).max() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("rate", [8000, 22050, 44000, 48000])
@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_sound_stays_in_time(tmp_path, numbered, rate, suffix):
    path = write_video(tmp_path / f"a{suffix}", numbered(60), fps=30, audio=clicks(rate))
    assert times_of_clicks(read_audio(path)) == pytest.approx(np.add(CLICKS, 0.002), abs=0.003)
    assert times_of_clicks(read_audio(path, rate=16000)) == pytest.approx(np.add(CLICKS, 0.002), abs=0.003)


def test_resampling_to_another_rate_keeps_length_and_pitch(beeping, tone):
    audio = read_audio(beeping, rate=16000, mono=True)
    assert audio.samples.shape == (1, 32000)
    assert audio.rate == 16000
    assert pitch(resample(tone(seconds=1.5, hertz=700), 11025)) == pytest.approx(700, abs=1)


def test_mono_is_the_mean_of_the_channels(beeping):
    both, mono = read_audio(beeping), read_audio(beeping, mono=True)
    np.testing.assert_allclose(mono.samples[0], both.samples.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 6])
def test_every_number_of_channels_can_be_written_and_read(tmp_path, numbered, tone, channels):
    path = write_video(tmp_path / "a.mp4", numbered(15), fps=30, audio=tone(seconds=0.5, channels=channels))
    assert read_audio(path).samples.shape == (channels, 22050)
    assert read_audio(path, rate=8000).samples.shape == (channels, 4000)


def test_sound_that_starts_late_is_preceded_by_silence(beeping, ffmpeg, tmp_path):
    path = tmp_path / "late.mp4"
    ffmpeg(
        "-i", beeping, "-itsoffset", "0.4", "-i", beeping, "-map", "0:v", "-map", "1:a", "-c", "copy", path
    )
    assert times_of_clicks(read_audio(path)) == pytest.approx(np.add(CLICKS, 0.402), abs=0.003)


def test_sound_before_the_first_frame_is_cut_off(beeping, ffmpeg, tmp_path):
    path = tmp_path / "early.mkv"
    ffmpeg(
        "-itsoffset", "0.4", "-i", beeping, "-i", beeping, "-map", "0:v", "-map", "1:a", "-c", "copy", path
    )
    assert times_of_clicks(read_audio(path)) == pytest.approx(np.subtract(CLICKS[1:], 0.398), abs=0.003)


@pytest.mark.parametrize("name", ["a.wav", "a.m4a", "a.flac", "a.ogg"])
def test_sound_files_are_read_too(beeping, ffmpeg, tmp_path, name):
    ffmpeg("-i", beeping, "-vn", tmp_path / name)
    assert times_of_clicks(read_audio(tmp_path / name)) == pytest.approx(np.add(CLICKS, 0.002), abs=0.004)


def test_broken_bytes_become_silence_and_the_rest_stays_in_time(ffmpeg, tmp_path):
    whole, path = tmp_path / "whole.m4a", tmp_path / "hole.m4a"
    ffmpeg("-f", "lavfi", "-i", "sine=frequency=500:duration=4", whole)
    data = bytearray(whole.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 2000] = b"\xff" * 2000
    path.write_bytes(data)
    with pytest.warns(
        DamagedVideoWarning, match=r"hole.m4a is damaged: \d+ broken packet\(s\) .* 4.0\d s in all"
    ):
        audio = read_audio(path)
    np.testing.assert_allclose(audio.samples[:, -30000:], read_audio(whole).samples[:, -30000:], atol=1e-3)


def test_channels_that_change_midway_become_those_of_the_start(ffmpeg, tmp_path):
    for name, channels in (("a", "2"), ("b", "1")):
        ffmpeg(
            "-f", "lavfi", "-i", "sine=frequency=500:duration=1", "-ac", channels, tmp_path / f"{name}.aac"
        )
    path = tmp_path / "both.aac"
    path.write_bytes((tmp_path / "a.aac").read_bytes() + (tmp_path / "b.aac").read_bytes())
    audio = read_audio(path)
    assert audio.samples.shape[0] == 2
    assert audio.duration_s == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("samples", [np.zeros(5), np.zeros((0, 5)), np.zeros((1, 2, 3))])
def test_samples_must_be_channels_by_time(samples):
    with pytest.raises(ValueError, match=r"samples must be \(channels >= 1, num_samples\), got \("):
        Audio(samples, 44100)


def test_rate_must_be_positive(beeping):
    with pytest.raises(ValueError, match=r"rate must be above 0, got 0"):
        Audio(np.zeros((1, 5)), 0)
    with pytest.raises(ValueError, match=r"rate must be above 0, got -1"):
        read_audio(beeping, rate=-1)


def test_parts_of_the_sound_are_those_of_the_whole(beeping):
    whole = read_audio(beeping)
    spans = [(0.1, 0.4), (0.4, 0.9), (1.15, 1.5), (1.9, 2.4)]
    parts = list(iter_audio(beeping, spans))
    for (start_s, end_s), part in zip(spans, parts, strict=True):
        first, last = round(start_s * whole.rate), round(end_s * whole.rate)
        known = whole.samples[:, first:last]
        assert part.rate == whole.rate and part.samples.shape == (2, last - first)
        assert np.array_equal(part.samples[:, : known.shape[1]], known)
        assert not part.samples[:, known.shape[1] + whole.rate // 20 :].any()


def test_sound_before_the_picture_is_no_part(tmp_path, numbered):
    silent = write_video(tmp_path / "silent.mp4", numbered(5), fps=30)
    with pytest.raises(VideoError, match="has no sound track"):
        next(iter_audio(silent, [(0.0, 0.1)]))
