"""Pictures copied beside a new sound, checked with the ffmpeg program."""

import subprocess
import wave
from fractions import Fraction
from pathlib import Path

import av
import imageio_ffmpeg
import numpy as np
import pytest

from cycleback.applications import sound_track
from cycleback.applications.sound_track import write_with_sound
from cycleback.errors import OutputExistsError, UserError
from cycleback.video import Audio, frame_times, iter_frames, probe, read_audio, write_video

RATE = 44_100
TONE = Audio(0.4 * np.sin(2 * np.pi * 500 * np.arange(2 * RATE) / RATE)[None].repeat(2, axis=0), RATE)


def ffmpeg(*words: object) -> bytes:
    program = imageio_ffmpeg.get_ffmpeg_exe()
    return subprocess.run([program, "-v", "error", *map(str, words)], check=True, capture_output=True).stdout


def picture_packets(path: Path) -> bytes:
    """The coded pictures alone, as ffmpeg takes them out of the file."""
    return ffmpeg("-i", path, "-map", "0:v", "-c", "copy", "-bsf:v", "h264_mp4toannexb", "-f", "h264", "-")


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds at 25 fps, with a sound of its own that must go."""
    rng = np.random.default_rng(0)
    frames = (rng.integers(0, 255, (48, 64, 3), np.uint8) for _ in range(50))
    loud = Audio(rng.uniform(-1, 1, (1, 32_000)), 16_000)
    return write_video(tmp_path_factory.mktemp("track") / "video.mp4", frames, fps=25, audio=loud)


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".mov"])
def test_pictures_are_copied_packet_by_packet(video: Path, tmp_path: Path, suffix: str) -> None:
    result = write_with_sound(tmp_path / f"result{suffix}", video, TONE)
    assert picture_packets(result) == picture_packets(video)
    np.testing.assert_allclose(frame_times(result), frame_times(video), atol=0.002)
    assert probe(result).duration_s == pytest.approx(2.0, abs=0.002)


def test_the_new_sound_is_the_only_one_and_on_time(video: Path, tmp_path: Path) -> None:
    result = write_with_sound(tmp_path / "result.mp4", video, TONE)
    raw = ffmpeg("-i", result, "-map", "0:a", "-ac", 1, "-ar", RATE, "-f", "f32le", "-")
    heard = np.frombuffer(raw, np.float32)
    assert len(heard) / RATE == pytest.approx(2.0, abs=0.03)
    middle = slice(RATE // 2, RATE)
    assert np.corrcoef(heard[middle], TONE.samples[0, middle])[0, 1] > 0.99
    assert probe(result).audio_channels == 2


def test_sound_is_cut_and_padded_to_the_length_of_the_video(video: Path, tmp_path: Path) -> None:
    for length in (0.1, 5.0):
        sound = Audio(np.full((1, round(length * RATE)), 0.1), RATE)
        result = write_with_sound(tmp_path / f"{length}.mp4", video, sound)
        assert read_audio(result).duration_s == pytest.approx(2.0, abs=0.03)
        assert probe(result).num_frames == 50


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frames that begin 0, 60, 80, 140, 160 ... ms after the first; frame i is 6 i bright."""
    path = tmp_path_factory.mktemp("uneven") / "uneven.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, width=64, height=48)
        stream.codec_context.time_base = Fraction(1, 1000)
        for number, pts in enumerate(np.cumsum(np.tile([20, 60], 20)).tolist()):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 6 * number, np.uint8), format="rgb24")
            frame.pts, frame.time_base = pts, Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def test_uneven_frame_times_are_kept(uneven: Path, tmp_path: Path) -> None:
    result = write_with_sound(tmp_path / "result.mp4", uneven, TONE)
    np.testing.assert_allclose(
        frame_times(result), np.cumsum(np.tile([20, 60], 20)) / 1000 - 0.02, atol=0.002
    )


def test_a_turned_picture_stays_turned(video: Path, tmp_path: Path) -> None:
    turned = tmp_path / "turned.mp4"
    ffmpeg("-display_rotation", 90, "-i", video, "-c", "copy", turned)
    result = write_with_sound(tmp_path / "result.mp4", turned, TONE)
    assert (probe(result).rotation, probe(result).width) == (probe(turned).rotation, 48)


def test_pictures_the_file_cannot_hold_are_encoded_again(video: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.avi"
    ffmpeg("-i", video, "-c:v", "msmpeg4v2", "-an", old)
    info = probe(write_with_sound(tmp_path / "result.mp4", old, TONE))
    assert (info.codec, info.num_frames, info.audio_rate) == ("h264", 50, RATE)
    assert info.duration_s == pytest.approx(2.0, abs=0.01)


def test_encoding_again_shows_each_frame_at_its_moment(
    uneven: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sound_track, "_remux", lambda *_: False)
    result = write_with_sound(tmp_path / "result.mp4", uneven, TONE)
    assert probe(result).duration_s == pytest.approx(probe(uneven).duration_s, abs=0.05)
    begins, ticks = frame_times(uneven), frame_times(result)
    brightness = next(iter_frames(result)).frames.mean(axis=(1, 2, 3))
    shown = np.searchsorted(begins, ticks + 0.5 / 25, side="right") - 1  # at the middle of each tick
    np.testing.assert_allclose(brightness, 6 * shown, atol=4)


def test_a_wav_holds_the_samples_themselves(video: Path, tmp_path: Path) -> None:
    with wave.open(str(write_with_sound(tmp_path / "sound.wav", video, TONE))) as file:
        assert (file.getnchannels(), file.getframerate(), file.getnframes()) == (2, RATE, 2 * RATE)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
    np.testing.assert_allclose(samples.T / 32767, TONE.samples, atol=1 / 32767)


def test_a_rate_that_aac_does_not_know_is_heard_at_the_right_pitch(video: Path, tmp_path: Path) -> None:
    odd = Audio(0.4 * np.sin(2 * np.pi * 500 * np.arange(20_000) / 10_000)[None], 10_000)
    heard = read_audio(write_with_sound(tmp_path / "result.mp4", video, odd))
    spectrum = np.abs(np.fft.rfft(heard.samples[0]))
    assert np.argmax(spectrum) / heard.duration_s == pytest.approx(500, abs=2)


def test_an_existing_file_is_kept_and_nothing_else_is_left(video: Path, tmp_path: Path) -> None:
    existing = tmp_path / "result.mp4"
    existing.write_bytes(b"mine")
    with pytest.raises(OutputExistsError, match=r"result\.mp4 exists\. Add --overwrite"):
        write_with_sound(existing, video, TONE)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("result.mp4", b"mine")]
    assert write_with_sound(existing, video, TONE, overwrite=True) == existing
    assert probe(existing).num_frames == 50


def test_a_failure_leaves_nothing_behind(video: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must have 1 to 6 channels, got 9"):
        write_with_sound(tmp_path / "result.mp4", video, Audio(np.zeros((9, 10)), RATE))
    with pytest.raises(
        UserError, match=r"result\.gif: expected a name ending in \.mp4, \.mkv, \.mov or \.wav"
    ):
        write_with_sound(tmp_path / "result.gif", video, TONE)
    assert list(tmp_path.iterdir()) == []
