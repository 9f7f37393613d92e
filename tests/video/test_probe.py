import numpy as np
import pytest

from cycleback.video import frame_times, probe, write_video
from cycleback.video.timing import average_rate, is_variable


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


def test_steps_rounded_to_milliseconds_are_a_constant_rate():
    times = np.round(np.arange(1000) / 29.97, 3)
    assert not is_variable(times)
    assert average_rate(times, times[-1] + 1 / 29.97, stated=30000 / 1001) == 30000 / 1001


def test_rate_of_one_frame_is_one_over_its_length():
    assert average_rate(np.zeros(1), 0.5, stated=30.0) == 2.0
    assert average_rate(np.zeros(1), 0.0, stated=30.0) == 30.0
    assert not is_variable(np.zeros(1))
