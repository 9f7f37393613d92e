import numpy as np
import pytest

from cycleback.video import iter_frames, probe, read_audio, read_frames


@pytest.fixture(scope="module")
def videos(shared_data):
    """The four smallest real videos."""
    return sorted(shared_data.rglob("*.mp4"), key=lambda path: path.stat().st_size)[:4]


def test_every_frame_matches_the_ffmpeg_program(videos, decode):
    for path in videos:
        info = probe(path)
        expected = decode(path, info.height, info.width)
        frames = np.concatenate([chunk.frames for chunk in iter_frames(path)])
        assert frames.shape == expected.shape == (info.num_frames, info.height, info.width, 3)
        assert np.abs(frames.astype(int) - expected).mean() < 4


def test_frames_by_number_match_reading_in_order(videos):
    for path in videos:
        frames = np.concatenate([chunk.frames for chunk in iter_frames(path, size=(64, 64), fit="crop")])
        indices = np.random.default_rng(0).integers(0, len(frames), size=8)
        np.testing.assert_array_equal(read_frames(path, indices, size=(64, 64), fit="crop"), frames[indices])


def test_sound_is_about_as_long_as_the_pictures(shared_data):
    for path in sorted((shared_data / "pouring_audio").glob("*.mp4"))[:2]:
        audio = read_audio(path, rate=16000, mono=True)
        assert audio.duration_s == pytest.approx(probe(path).duration_s, abs=0.3)
        assert 0.001 < np.abs(audio.samples).max() <= 1
