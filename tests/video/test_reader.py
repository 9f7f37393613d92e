import threading
import tracemalloc

import numpy as np
import pytest

from cycleback.errors import VideoError
from cycleback.video import frame_times, iter_frames, probe, read_frames, reader, write_video

FORMATS = {
    "b.mp4": ["-c:v", "libx264", "-bf", "3"],
    "long_gop.mov": ["-c:v", "libx264", "-bf", "3", "-g", "1000"],
    "open_gop.mkv": ["-c:v", "libx264", "-x264-params", "open-gop=1:keyint=12:bframes=3"],
    "vp8.webm": ["-c:v", "libvpx", "-b:v", "1M", "-g", "20"],
    "h264.avi": ["-c:v", "libx264", "-bf", "3"],
    "mpeg4.avi": ["-c:v", "mpeg4", "-q:v", "2"],
    "mpeg2.mpg": ["-c:v", "mpeg2video", "-bf", "2", "-q:v", "2"],
    "stream.ts": ["-c:v", "libx264", "-bf", "2"],
    "intra.mov": ["-c:v", "mjpeg", "-q:v", "2"],
    "raw.h264": ["-c:v", "libx264", "-bf", "3"],
    "animation.gif": [],
}


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".mov"])
def test_what_was_written_is_what_is_found(tmp_path, numbered, tone, suffix):
    path = write_video(tmp_path / f"a{suffix}", numbered(45), fps=29.97, audio=tone(seconds=1.5, channels=2))
    info = probe(path)
    assert (info.width, info.height, info.num_frames, info.path) == (64, 64, 45, path)
    assert info.fps == pytest.approx(30000 / 1001, rel=1e-9)
    assert info.duration_s == pytest.approx(45 * 1001 / 30000, abs=1.1e-3)
    assert (info.codec, info.pixel_format, info.rotation) == ("h264", "yuv420p", 0)
    assert not info.is_variable_rate
    assert (info.has_audio, info.audio_rate, info.audio_channels) == (True, 44100, 2)


def test_silent_video(clip):
    info = probe(clip("a.mp4"))
    assert (info.has_audio, info.audio_rate, info.audio_channels) == (False, None, 0)


@pytest.mark.parametrize(
    "name, arguments, codec, pixel_format",
    [
        ("ten.mkv", ["-c:v", "libx264", "-pix_fmt", "yuv420p10le"], "h264", "yuv420p10le"),
        ("grey.avi", ["-c:v", "ffv1", "-pix_fmt", "gray"], "ffv1", "gray"),
        ("nine.webm", ["-c:v", "libvpx-vp9", "-cpu-used", "8", "-deadline", "realtime"], "vp9", "gbrp"),
        ("hevc.mp4", ["-c:v", "libx265", "-x265-params", "log-level=none"], "hevc", "gbrp"),
    ],
)
def test_codec_and_pixel_format(clip, name, arguments, codec, pixel_format):
    info = probe(clip(name, *arguments, count=12))
    assert (info.codec, info.pixel_format, info.num_frames) == (codec, pixel_format, 12)


@pytest.mark.parametrize("rate, fps", [("24000/1001", 24000 / 1001), ("25", 25), ("60", 60), ("12.5", 12.5)])
@pytest.mark.parametrize("name", ["r.mp4", "r.mkv"])
def test_frame_rate(clip, name, rate, fps):
    info = probe(clip(name, "-c:v", "libx264", rate=rate, count=30))
    assert info.fps == pytest.approx(fps, rel=1e-9)
    assert not info.is_variable_rate


def test_variable_rate_is_noticed(clip):
    path = clip("vfr.mkv", "-vf", "setpts=(N+N*N/60)/30/TB", "-fps_mode", "vfr", "-c:v", "libx264")
    info = probe(path)
    assert info.is_variable_rate
    assert info.fps == pytest.approx(59 / frame_times(path)[-1])


@pytest.fixture(params=FORMATS)
def path(request, clip):
    return clip(request.param, *FORMATS[request.param])


def test_frames_by_number_are_exact_in_every_format(path, numbers_of):
    assert numbers_of(read_frames(path, [0, 7, 7, 3])) == [0, 7, 7, 3]
    assert numbers_of(read_frames(path, [59, 41, 40, 12, 13, 0])) == [59, 41, 40, 12, 13, 0]


def test_frames_in_order_are_exact_in_every_format(path, numbers_of):
    chunks = list(iter_frames(path, chunk_frames=16))
    assert [chunk.start for chunk in chunks] == [0, 16, 32, 48]
    assert numbers_of(np.concatenate([chunk.frames for chunk in chunks])) == list(range(60))


def test_times_start_at_zero_and_agree_with_the_index(path):
    times = np.concatenate([chunk.times for chunk in iter_frames(path)])
    assert times[0] == 0.0
    np.testing.assert_allclose(times, frame_times(path), atol=1e-9)
    if path.suffix != ".gif":  # stored in hundredths of a second
        np.testing.assert_allclose(times, np.arange(60) / 30, atol=1.1e-3)


def test_every_single_frame_can_be_reached(clip, numbers_of):
    path = clip("b.mp4", "-c:v", "libx264", "-bf", "3", "-g", "15")
    assert [numbers_of(read_frames(path, [number]))[0] for number in range(60)] == list(range(60))


def test_references_that_are_never_shown_are_not_counted(clip, ffmpeg, tmp_path, numbers_of):
    path = tmp_path / "hidden.webm"
    coder = ["-c:v", "libvpx", "-b:v", "1M", "-auto-alt-ref", "1", "-lag-in-frames", "16"]
    for number in ("1", "2"):  # only the second of two passes makes such references
        ffmpeg("-i", clip("a.mp4"), *coder, "-pass", number, "-passlogfile", tmp_path / "log", path)
    assert probe(path).num_frames == 60
    assert numbers_of(read_frames(path, [31, 5, 59])) == [31, 5, 59]


def test_one_frame(clip, numbers_of):
    path = clip("one.mp4", count=1)
    assert probe(path).num_frames == 1
    assert numbers_of(read_frames(path, [0, 0])) == [0, 0]
    assert [chunk.frames.shape for chunk in iter_frames(path)] == [(1, 64, 64, 3)]


def test_no_indices_give_no_frames(clip):
    assert read_frames(clip("a.mp4"), []).shape == (0, 64, 64, 3)
    assert read_frames(clip("a.mp4"), [], size=(8, 9)).shape == (0, 8, 9, 3)


@pytest.mark.parametrize("indices", [[0.5], [[1, 2]], np.ones((2, 2), int)])
def test_indices_must_be_whole_numbers_in_one_row(clip, indices):
    with pytest.raises(ValueError, match=r"indices must be whole numbers \(T,\), got (float|int)64 \("):
        read_frames(clip("a.mp4"), indices)


def test_chunk_of_no_frames_is_an_error(clip):
    with pytest.raises(ValueError, match=r"chunk_frames must be at least 1, got 0"):
        iter_frames(clip("a.mp4"), chunk_frames=0)


def test_memory_does_not_grow_with_the_video(clip):
    path = clip("long.mp4", count=400)
    tracemalloc.start()
    for _ in iter_frames(path, chunk_frames=8, size=(128, 128)):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 8 * 128 * 128 * 3  # at most the chunk, the one before it, and small change


def test_a_chunk_is_not_written_to_after_it_was_handed_out(clip, numbers_of):
    chunks = iter_frames(clip("a.mp4"), chunk_frames=10)
    first = next(chunks)
    next(chunks)
    assert numbers_of(first.frames) == list(range(10))


def test_stopping_early_ends_the_decoding_thread(clip):
    before = threading.active_count()
    chunks = iter_frames(clip("a.mp4"), chunk_frames=2)
    next(chunks)
    chunks.close()
    assert threading.active_count() == before


@pytest.fixture
def fallbacks(monkeypatch):
    """Grows by one each time frames are read in order instead of by seeking."""
    seen = []
    original = reader._read_in_order

    def read_in_order(*arguments, **options):
        seen.append(arguments)
        return original(*arguments, **options)

    monkeypatch.setattr(reader, "_read_in_order", read_in_order)
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

    monkeypatch.setattr(reader, "_advance", advance)
    read_frames(path, [45, 5, 58, 45, 7, 41, 3])
    assert decoded == [*range(8), *range(40, 59)]


def test_a_frame_the_decoder_does_not_give_is_read_in_order(clip, fallbacks, monkeypatch, numbers_of):
    monkeypatch.setattr(reader, "_advance", lambda decoder, pts: None)
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


def test_chosen_frames_are_yielded_with_their_times(clip, numbers_of):
    path, wanted = clip("a.mp4", count=40), [0, 7, 8, 21, 39]
    chunks = list(iter_frames(path, numbers=wanted, chunk_frames=3))
    assert [(chunk.start, len(chunk.frames)) for chunk in chunks] == [(0, 3), (3, 2)]
    assert [number for chunk in chunks for number in numbers_of(chunk.frames)] == wanted
    assert np.array_equal(np.concatenate([chunk.times for chunk in chunks]), frame_times(path)[wanted])


def test_pixels_that_are_not_square_count_in_the_proportions(tmp_path, ffmpeg):
    path = tmp_path / "wide.mp4"
    ffmpeg("-f", "lavfi", "-i", "testsrc=s=64x48:d=0.4", "-vf", "setsar=2", path)
    info = probe(path)
    assert (info.width, info.height, info.pixel_aspect) == (64, 48, 2.0)
    assert info.aspect == pytest.approx(128 / 48)
