"""Sound transfer between videos whose true match is known."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cycleback.applications.sound import Pair, sound_by_blocks, transfer_sound, with_motion
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError, UserError, VideoError
from cycleback.video import Audio, frame_times, read_audio, write_video

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
    found = sound_by_blocks(Audio(sound, 1000), pair, duration_s=9 / 8, frames=frames)
    count, expected = min(frames, 9), []
    for start in range(0, 9, count):
        first = min(start, 9 - count)
        mean = target[first : first + count].mean(axis=0)
        away = [((source[j : j + count].mean(axis=0) - mean) ** 2).sum() for j in range(11 - count + 1)]
        begin = (int(np.argmin(away)) + start - first) * 100
        length = round(min(start + count, 9) * 125) - start * 125
        expected.append(np.pad(sound[:, begin : begin + length], ((0, 0), (0, 200)))[:, :length])
    np.testing.assert_array_equal(found.samples, np.concatenate(expected, axis=1))


def test_motion_is_the_change_over_two_tenths_of_a_second() -> None:
    times = np.sort(np.random.default_rng(0).uniform(0, 3, 200))
    found = with_motion(5 * times[:, None], times)
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
