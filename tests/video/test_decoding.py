import warnings
from fractions import Fraction

import numpy as np
import pytest

from cycleback.errors import DamagedVideoWarning, VideoError
from cycleback.video import frame_times, iter_frames, probe, read_frames, write_video


@pytest.fixture
def truncated(clip, tmp_path):
    """The first three quarters of the bytes of a clip of 300 frames."""

    def cut(name, *arguments):
        whole = clip(name, "-c:v", "libx264", "-bf", "3", *arguments, count=300).read_bytes()
        path = tmp_path / name
        path.write_bytes(whole[: len(whole) * 3 // 4])
        return path

    return cut


def read_all(path):
    return np.concatenate([chunk.frames for chunk in iter_frames(path)])


def test_truncated_file_yields_what_decodes_and_says_how_much(truncated, numbers_of):
    with pytest.warns(DamagedVideoWarning) as caught:
        frames = read_all(truncated("cut.mp4", "-movflags", "+faststart"))
    kept = len(frames)
    assert 50 < kept < 250
    assert numbers_of(frames[: kept - 8]) == list(range(kept - 8))  # a gap may remain just before the cut
    assert f"kept {kept} of 300 frames, lost {300 - kept}; copy or record" in str(caught[0].message)


def test_truncated_matroska_estimates_what_was_lost(truncated, numbers_of):
    with pytest.warns(
        DamagedVideoWarning, match=r"kept \d+ of about (29[5-9]|30[0-5]) frames, lost about \d+;"
    ):
        frames = read_all(truncated("cut.mkv"))
    assert numbers_of(frames[:50]) == list(range(50))


def test_truncated_file_is_counted_alike_by_all_readers(truncated):
    path = truncated("cut.mp4", "-movflags", "+faststart")
    with pytest.warns(DamagedVideoWarning, match=r"cut.mp4 is damaged or cut short: kept \d+ of 300 frames"):
        counts = {len(read_all(path)), probe(path).num_frames, len(frame_times(path))}
    assert len(counts) == 1


def test_last_frame_of_a_truncated_file_can_be_read_by_number(truncated):
    path = truncated("cut.mp4", "-movflags", "+faststart")
    with pytest.warns(DamagedVideoWarning):
        frames = read_all(path)
    with pytest.warns(DamagedVideoWarning):
        np.testing.assert_array_equal(read_frames(path, [len(frames) - 1, 0]), frames[[-1, 0]])


def test_frame_lost_by_truncation_is_out_of_range(truncated):
    with (
        pytest.warns(DamagedVideoWarning),
        pytest.raises(VideoError, match=r"no frame 299: it has \d+ frames, 0 to"),
    ):
        read_frames(truncated("cut.mp4", "-movflags", "+faststart"), [299])


def test_broken_bytes_in_the_middle_do_not_stop_the_reader(clip, tmp_path, numbers_of):
    data = bytearray(clip("i.mp4", "-c:v", "mjpeg", "-q:v", "2").read_bytes())
    middle = data.find(b"\xff\xd8", len(data) // 2)  # a picture begins here
    data[middle : middle + 40] = bytes(40)
    (tmp_path / "hole.mp4").write_bytes(data)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        numbers = numbers_of(read_all(tmp_path / "hole.mp4"))
    assert len(numbers) >= 58
    assert numbers[:20] == list(range(20)) and numbers[-1] == 59


def test_file_of_which_no_frame_decodes(clip, tmp_path):
    data = bytearray(clip("i.mp4", "-c:v", "mjpeg", "-q:v", "2", count=3).read_bytes())
    start = data.find(b"mdat") + 4
    data[start : data.find(b"moov") - 4] = bytes(data.find(b"moov") - 4 - start)
    (tmp_path / "blank.mp4").write_bytes(data)
    for reader in (read_all, probe):
        with pytest.raises(VideoError, match=r"no frame of .*blank.mp4 can be decoded \(3 packets read\)"):
            reader(tmp_path / "blank.mp4")


def test_sound_files_give_no_warning_when_shorter_than_the_pictures(tmp_path, numbered):
    path = write_video(tmp_path / "a.mp4", numbered(30), fps=30)
    assert len(read_all(path)) == 30


def test_variable_frame_rate_follows_the_time_stamps(clip, ffmpeg, numbers_of):
    arguments = ["-vf", "setpts=(N+N*N/60)/30/TB", "-fps_mode", "vfr", "-enc_time_base", "1/600"]
    path = clip("vfr.mp4", *arguments, "-c:v", "libx264", "-bf", "3")
    listing = ffmpeg("-i", path, "-fps_mode", "passthrough", "-f", "framecrc", "-").decode()
    base = Fraction(listing.split("#tb 0: ")[1].split()[0])
    stamps = [int(line.split(",")[2]) for line in listing.splitlines() if not line.startswith("#")]
    expected = [float((stamp - stamps[0]) * base) for stamp in stamps]
    np.testing.assert_allclose(frame_times(path), expected, atol=1e-9)
    np.testing.assert_allclose(np.concatenate([c.times for c in iter_frames(path)]), expected, atol=1e-9)
    assert numbers_of(read_frames(path, [50, 10, 33])) == [50, 10, 33]


@pytest.mark.parametrize("offset", ["2.5", "-0.2"])
def test_first_frame_is_at_zero_whatever_the_first_stamp(clip, ffmpeg, tmp_path, numbers_of, offset):
    path = tmp_path / "late.mkv"
    ffmpeg("-i", clip("a.mp4"), "-c", "copy", "-copyts", "-output_ts_offset", offset, path)
    assert frame_times(path)[0] == 0.0
    assert numbers_of(read_frames(path, [0, 59, 30])) == [0, 59, 30]
