import numpy as np
import pytest

from cycleback.errors import VideoError
from cycleback.video import iter_frames, random_access, read_frames


@pytest.fixture
def fallbacks(monkeypatch):
    """Grows by one each time frames are read in order instead of by seeking."""
    seen = []
    original = random_access._read_in_order

    def read_in_order(*arguments, **options):
        seen.append(arguments)
        return original(*arguments, **options)

    monkeypatch.setattr(random_access, "_read_in_order", read_in_order)
    return seen


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.mov"])
def test_common_formats_are_read_by_seeking(clip, fallbacks, numbers_of, name):
    path = clip(name, "-c:v", "libx264", "-bf", "3", "-g", "10")
    assert numbers_of(read_frames(path, [55, 2, 31])) == [55, 2, 31]
    assert fallbacks == []


@pytest.mark.parametrize("name", ["h264.avi", "x.ts", "raw.h264"])
def test_formats_without_own_time_stamps_are_read_in_order(clip, fallbacks, numbers_of, name):
    path = clip(name, "-c:v", "libx264", "-bf", "3", "-g", "10")
    assert numbers_of(read_frames(path, [55, 2, 31])) == [55, 2, 31]
    assert len(fallbacks) == 1


def test_a_group_of_pictures_is_decoded_once_and_no_other(clip, monkeypatch):
    path = clip("a.mp4", "-c:v", "libx264", "-g", "20", "-keyint_min", "20", "-sc_threshold", "0", "-bf", "3")
    decoded = []

    def advance(decoder, pts):
        for frame in decoder:
            decoded.append(round(frame.time * 30))
            if frame.pts == pts:
                return frame

    monkeypatch.setattr(random_access, "_advance", advance)
    read_frames(path, [45, 5, 58, 45, 7, 41, 3])
    assert decoded == [*range(8), *range(40, 59)]


def test_a_frame_the_decoder_does_not_give_is_read_in_order(clip, fallbacks, monkeypatch, numbers_of):
    monkeypatch.setattr(random_access, "_advance", lambda decoder, pts: None)
    assert numbers_of(read_frames(clip("a.mp4"), [9, 4])) == [9, 4]
    assert len(fallbacks) == 1


def test_start_cut_off_by_an_edit_list(clip, ffmpeg, tmp_path, decode, numbers_of):
    path = tmp_path / "trimmed.mp4"
    ffmpeg("-ss", "0.5", "-i", clip("g.mp4", "-c:v", "libx264", "-bf", "3"), "-c", "copy", path)
    expected = numbers_of(decode(path))
    assert expected[0] == 15
    assert numbers_of(read_frames(path, range(45))) == expected == list(range(15, 60))


@pytest.mark.parametrize("indices, bad", [([60], 60), ([3, -1], -1), ([1000, 0], 1000)])
def test_frame_outside_the_video(clip, indices, bad):
    with pytest.raises(VideoError, match=rf"a.mp4 has no frame {bad}: it has 60 frames, 0 to 59$"):
        read_frames(clip("a.mp4"), indices)


def test_random_choices_equal_reading_everything(clip):
    path = clip("b.mkv", "-c:v", "libx264", "-bf", "3", "-g", "12", count=150)
    everything = np.concatenate([chunk.frames for chunk in iter_frames(path, size=(20, 30))])
    for seed in range(5):
        indices = np.random.default_rng(seed).integers(0, 150, size=12)
        np.testing.assert_array_equal(read_frames(path, indices, size=(20, 30)), everything[indices])
