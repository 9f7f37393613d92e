import sys

import numpy as np
import pytest

from cycleback.errors import DamagedVideoWarning, VideoError
from cycleback.video import frame_times, iter_frames, probe, read_frames


@pytest.fixture(autouse=True)
def without_pyav(request, monkeypatch):
    """Make PyAV look not installed, after the clip was made."""
    pytest.importorskip("cv2", reason="OpenCV is not installed; it only matters where PyAV is missing")
    monkeypatch.setitem(sys.modules, "av", None)


@pytest.mark.parametrize("name", ["a.mp4", "b.mkv"])
def test_frames_by_number_are_exact(clip, numbers_of, name):
    path = clip(name, "-c:v", "libx264", "-bf", "3")
    assert numbers_of(read_frames(path, [0, 7, 7, 3, 59])) == [0, 7, 7, 3, 59]


def test_frames_in_order(clip, numbers_of):
    chunks = list(iter_frames(clip("a.mp4"), chunk_frames=16))
    assert [chunk.start for chunk in chunks] == [0, 16, 32, 48]
    assert numbers_of(np.concatenate([chunk.frames for chunk in chunks])) == list(range(60))
    np.testing.assert_allclose(
        np.concatenate([chunk.times for chunk in chunks]), np.arange(60) / 30, atol=1e-3
    )


def test_facts(clip):
    info = probe(clip("a.mp4"))
    assert (info.width, info.height, info.num_frames, info.has_audio) == (64, 64, 60, False)
    assert info.fps == pytest.approx(30, rel=1e-3)
    assert frame_times(clip("a.mp4"))[[0, -1]] == pytest.approx([0, 59 / 30], abs=1e-3)


@pytest.mark.parametrize("fit", ["stretch", "crop"])
def test_size(clip, fit):
    assert read_frames(clip("a.mp4"), [4], size=(20, 30), fit=fit).shape == (1, 20, 30, 3)


def test_rotation_is_applied(clip, ffmpeg, tmp_path):
    path = tmp_path / "turned.mp4"
    ffmpeg("-display_rotation", "90", "-i", clip("a.mp4"), "-c", "copy", path)
    upright, stored = read_frames(path, [21])[0].astype(int), read_frames(clip("a.mp4"), [21])[0]
    assert np.abs(upright - np.rot90(stored)).mean() < 3


def test_frame_outside_the_video(clip):
    with pytest.raises(VideoError, match=r"a.mp4 has no frame 60: it has 60 frames, 0 to 59"):
        read_frames(clip("a.mp4"), [60])


def test_garbage(tmp_path):
    path = tmp_path / "garbage.mp4"
    path.write_bytes(b"no video" * 1000)
    with pytest.raises(VideoError, match=r"garbage.mp4 is not a video, or its header is damaged"):
        probe(path)


def test_truncated_file_says_how_much_was_kept(clip, tmp_path):
    whole = clip("a.mp4", "-c:v", "libx264", "-movflags", "+faststart", count=300).read_bytes()
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) * 3 // 4])
    with pytest.warns(
        DamagedVideoWarning, match=r"kept \d+ of about 300 frames of .*cut.mp4; pip install av"
    ):
        assert 0 < sum(len(chunk.times) for chunk in iter_frames(tmp_path / "cut.mp4")) < 300
