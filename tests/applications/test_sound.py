"""Sound transfer between videos whose true match is known."""

import subprocess
import wave
from fractions import Fraction
from pathlib import Path

import av
import imageio_ffmpeg
import numpy as np
import pytest
from numpy.typing import NDArray

from cycleback.applications import sound
from cycleback.applications.sound import (
    Pair,
    add_motion,
    join_blocks,
    match_times,
    transfer_sound,
    write_with_sound,
)
from cycleback.data import Pin
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError, OutputExistsError, UserError, VideoError
from cycleback.video import Audio, frame_times, iter_frames, probe, read_audio, write_video

RATE = 16_000


def write_clip(path: Path, num_frames: int, *, fps: float = 20, audio: Audio | None = None) -> Path:
    frames = (np.full((32, 32, 3), 10 + 2 * i, np.uint8) for i in range(num_frames))
    return write_video(path, frames, fps=fps, audio=audio)


def ramp(num_frames: int) -> NDArray[np.float64]:
    return np.linspace(0, 1, num_frames)[:, None]


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> EmbeddingSet:
    """`swept` has 2 s of a rising tone at 20 fps, `slow` shows the same in 4 s at 15 fps and is silent."""
    folder = tmp_path_factory.mktemp("clips")
    t = np.arange(2 * RATE) / RATE
    tone = Audio(0.5 * np.sin(2 * np.pi * (400 * t + 200 * t**2))[None], RATE)  # 400 + 400 t Hz
    files = {
        "swept": write_clip(folder / "swept.mp4", 40, audio=tone),
        "slow": write_clip(folder / "slow.mp4", 60, fps=15),
        "still": write_clip(folder / "still.mp4", 1, fps=15),
        "beep": write_clip(folder / "beep.mp4", 40, audio=Audio(np.ones((2, 5)) * 0.5, 44_100)),
    }
    arrays = {"swept": ramp(40), "slow": ramp(60), "still": np.full((1, 1), 0.5), "beep": ramp(40)}
    fps = {"swept": 20.0, "slow": 15.0, "still": 15.0}
    return EmbeddingSet.from_arrays(arrays, paths=files, fps=fps)


def pitch(audio: Audio, second: float) -> float:
    part = audio.samples[0, round(second * RATE) :][:1024] * np.hanning(1024)
    return float(np.argmax(np.abs(np.fft.rfft(part, 1 << 15))) * RATE / (1 << 15))


def test_half_the_pace_gives_each_moment_the_pitch_of_its_match(clips: EmbeddingSet) -> None:
    heard = transfer_sound(clips, "swept", "slow")
    assert heard.audio.samples.shape == (1, 4 * RATE)
    assert heard.confidence.shape == (60,)
    for second in (0.75, 1.5, 2.25, 3.0):
        assert pitch(heard.audio, second) == pytest.approx(400 + 400 * second / 2, abs=50)


def test_the_blocks_of_the_paper_are_as_long_and_as_high(clips: EmbeddingSet) -> None:
    heard = transfer_sound(clips, "swept", "slow", method="blocks")
    assert heard.audio.samples.shape == (1, 4 * RATE)
    assert pitch(heard.audio, 2.0) == pytest.approx(800, abs=80)


@pytest.mark.parametrize("frames", [1, 4, 100])
def test_blocks_equal_a_plain_loop(frames: int) -> None:
    rng = np.random.default_rng(0)
    source, target = rng.standard_normal((11, 3)), rng.standard_normal((9, 3))
    sound = rng.uniform(-1, 1, (2, 1300)).astype(np.float32)
    pair = Pair(source, target, np.arange(11) / 10, np.arange(9) / 8)
    found = join_blocks(Audio(sound, 1000), pair, duration_s=9 / 8, frames=frames)
    count, expected = min(frames, 9), []
    for start in range(0, 9, count):
        first = min(start, 9 - count)
        mean = target[first : first + count].mean(axis=0)
        away = [((source[j : j + count].mean(axis=0) - mean) ** 2).sum() for j in range(11 - count + 1)]
        begin = (int(np.argmin(away)) + start - first) * 100
        length = round(min(start + count, 9) * 125) - start * 125
        expected.append(np.pad(sound[:, begin : begin + length], ((0, 0), (0, 200)))[:, :length])
    np.testing.assert_array_equal(found.samples, np.concatenate(expected, axis=1))


def test_the_clock_of_the_sound_runs_through_the_pins() -> None:
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(120, 6)), axis=0)
    pair = Pair(walk[::2], walk, np.arange(60) / 20, np.arange(120) / 20)
    pins = np.array([(40, 25), (42, 26), (100, 45)])  # frames of the target and of the source
    for method in ("auto", "dtw"):
        clock, confidence = match_times(pair, method=method, pins=pins)
        assert clock.source(pins[:, 0] / 20) == pytest.approx(pins[:, 1] / 20, abs=1e-12)
        assert (np.diff(clock.source_s) > 0).all() and (confidence[pins[:, 0]] == 1).all()
    assert abs(match_times(pair)[0].source(2.0) - 25 / 20) > 0.1


@pytest.mark.parametrize("method", ["smooth", "blocks"])
def test_a_pinned_frame_has_the_pitch_of_its_pin(clips: EmbeddingSet, method) -> None:
    pins = [Pin("swept", 10, "slow", 40)]  # 600 Hz; the match alone says 933 Hz
    heard = transfer_sound(clips, "swept", "slow", method=method, pins=pins)
    assert pitch(heard.audio, 40 / 15) == pytest.approx(610, abs=40)
    assert heard.confidence[40] == 1
    with pytest.raises(UserError, match="pin 60:1 names frame 60 of slow, which has frames 0 to 59"):
        transfer_sound(clips, "swept", "slow", method=method, pins=[Pin("swept", 1, "slow", 60)])


def test_motion_is_the_change_over_two_tenths_of_a_second() -> None:
    times = np.sort(np.random.default_rng(0).uniform(0, 3, 200))
    found = add_motion(5 * times[:, None], times)
    inside = (times > times[0] + 0.1) & (times < times[-1] - 0.1)
    np.testing.assert_allclose(found[inside, 1], 2 * 5 * 0.2, atol=1e-9)
    np.testing.assert_array_equal(found[:, 0], 5 * times)


def test_one_frame_gets_the_sound_of_its_moment(clips: EmbeddingSet) -> None:
    for method in ("smooth", "blocks"):
        heard = transfer_sound(clips, "swept", "still", method=method)  # type: ignore[arg-type]
        assert heard.audio.duration_s == pytest.approx(1 / 15, abs=1e-3)
        assert np.abs(heard.audio.samples).max() > 0.3


def test_a_very_short_stereo_sound_is_no_problem(clips: EmbeddingSet) -> None:
    heard = transfer_sound(clips, "beep", "slow")  # the set does not know the times of `beep`; its file does
    assert heard.audio.samples.shape == (2, 4 * 44_100)
    assert np.isfinite(heard.audio.samples).all()


def test_a_silent_source_is_refused(clips: EmbeddingSet) -> None:
    with pytest.raises(
        VideoError, match=r"slow\.mp4 has no sound track; give the video with the sound first"
    ):
        transfer_sound(clips, "slow", "swept")


def test_a_video_is_not_given_its_own_sound(clips: EmbeddingSet) -> None:
    with pytest.raises(UserError, match=r"the same video, .*swept\.mp4"):
        transfer_sound(clips, "swept", "swept")


def test_an_unknown_method_is_named(clips: EmbeddingSet) -> None:
    with pytest.raises(ValueError, match="'smooth', 'blocks', got 'magic'"):
        transfer_sound(clips, "swept", "slow", method="magic")  # type: ignore[arg-type]


def test_embeddings_of_another_length_are_refused(clips: EmbeddingSet) -> None:
    paths = {name: str(clips.path(name)) for name in ("swept", "slow")}
    other = EmbeddingSet.from_arrays({"swept": ramp(39), "slow": ramp(60)}, paths=paths)
    with pytest.raises(EmbeddingError, match="has 40 frames, but 'swept' has 39 embeddings"):
        transfer_sound(other, "swept", "slow")


def test_a_real_catch_lands_where_the_match_puts_it(shared_data: Path) -> None:
    folder, names = shared_data / "pitch_audio" / "videos", ("videos12_1", "videos12_11")
    paths = {name: folder / f"{name}.mp4" for name in names}
    lengths = {name: len(frame_times(path)) for name, path in paths.items()}
    videos = EmbeddingSet.from_arrays({name: ramp(count) for name, count in lengths.items()}, paths=paths)
    before, heard = read_audio(paths[names[0]]), transfer_sound(videos, *names).audio
    moments = [np.abs(np.diff(sound.samples.mean(axis=0))).argmax() / sound.rate for sound in (before, heard)]
    assert moments[0] == pytest.approx(1.46, abs=0.02)
    assert moments[1] == pytest.approx(
        moments[0] * (lengths[names[1]] - 1) / (lengths[names[0]] - 1), abs=0.02
    )


HZ = 44_100
TONE = Audio(0.4 * np.sin(2 * np.pi * 500 * np.arange(2 * HZ) / HZ)[None].repeat(2, axis=0), HZ)


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
    raw = ffmpeg("-i", result, "-map", "0:a", "-ac", 1, "-ar", HZ, "-f", "f32le", "-")
    heard = np.frombuffer(raw, np.float32)
    assert len(heard) / HZ == pytest.approx(2.0, abs=0.03)
    middle = slice(HZ // 2, HZ)
    assert np.corrcoef(heard[middle], TONE.samples[0, middle])[0, 1] > 0.99
    assert probe(result).audio_channels == 2


def test_sound_is_cut_and_padded_to_the_length_of_the_video(video: Path, tmp_path: Path) -> None:
    for length in (0.1, 5.0):
        sound = Audio(np.full((1, round(length * HZ)), 0.1), HZ)
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
    assert (info.codec, info.num_frames, info.audio_rate) == ("h264", 50, HZ)
    assert info.duration_s == pytest.approx(2.0, abs=0.01)


def test_encoding_again_shows_each_frame_at_its_moment(
    uneven: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sound, "_remux", lambda *_: False)
    result = write_with_sound(tmp_path / "result.mp4", uneven, TONE)
    assert probe(result).duration_s == pytest.approx(probe(uneven).duration_s, abs=0.05)
    begins, ticks = frame_times(uneven), frame_times(result)
    brightness = next(iter_frames(result)).frames.mean(axis=(1, 2, 3))
    shown = np.searchsorted(begins, ticks + 0.5 / 25, side="right") - 1  # at the middle of each tick
    np.testing.assert_allclose(brightness, 6 * shown, atol=4)


def test_a_wav_holds_the_samples_themselves(video: Path, tmp_path: Path) -> None:
    with wave.open(str(write_with_sound(tmp_path / "sound.wav", video, TONE))) as file:
        assert (file.getnchannels(), file.getframerate(), file.getnframes()) == (
            2,
            HZ,
            2 * HZ,
        )
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
        write_with_sound(tmp_path / "result.mp4", video, Audio(np.zeros((9, 10)), HZ))
    with pytest.raises(
        UserError, match=r"result\.gif: expected a name ending in \.mp4, \.mkv, \.mov or \.wav"
    ):
        write_with_sound(tmp_path / "result.gif", video, TONE)
    assert list(tmp_path.iterdir()) == []


def test_takes_get_the_sound_of_takes_and_silence_lies_between_them(tmp_path: Path) -> None:
    t = np.arange(2 * RATE) / RATE
    steps = np.where(t < 1, 500.0, 900.0)  # the first take sounds at 500 Hz, the second at 900 Hz
    tone = Audio(0.5 * np.sin(2 * np.pi * steps * t)[None], RATE)
    files = {
        "heard": write_clip(tmp_path / "heard.mp4", 40, audio=tone),
        "silent": write_clip(tmp_path / "silent.mp4", 90),
    }
    arrays = {"heard": np.tile(ramp(20), (2, 1)), "silent": np.tile(ramp(30), (3, 1))}
    whole = EmbeddingSet.from_arrays(arrays, paths=files, fps=20)
    spans = {"h#1": ("heard", 0, 20), "h#2": ("heard", 20, 40)}
    spans |= {"s#1": ("silent", 0, 30), "s#2": ("silent", 40, 70), "s#3": ("silent", 72, 90)}
    found = sound.transfer_sound_of_takes(whole.cut(spans), ["h#1", "h#2"], ["s#1", "s#2", "s#3"])
    assert found.audio.duration_s == pytest.approx(4.5, abs=0.01)
    assert len(found.confidence) == 30 + 30 + 18
    for second, expected in ((0.7, 500), (2.7, 900), (4.0, 500)):  # the third take begins again
        assert pitch(found.audio, second) == pytest.approx(expected, abs=15)
    assert np.abs(found.audio.samples[0, round(1.52 * RATE) : round(1.98 * RATE)]).max() == 0
