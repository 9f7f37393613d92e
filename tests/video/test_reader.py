import threading
import tracemalloc

import numpy as np
import pytest

from cycleback.video import frame_times, iter_frames, probe, read_frames

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
