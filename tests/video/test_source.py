import re

import numpy as np
import pytest

from cycleback.errors import VideoError
from cycleback.video import VIDEO_SUFFIXES, frame_times, iter_frames, probe, read_audio, read_frames

READERS = {
    "probe": probe,
    "frame_times": frame_times,
    "read_frames": lambda path: read_frames(path, [0]),
    "iter_frames": lambda path: list(iter_frames(path)),
}


@pytest.fixture(params=READERS)
def reader(request):
    return READERS[request.param]


def test_missing_file(reader, tmp_path):
    path = tmp_path / "none.mp4"
    with pytest.raises(VideoError, match=f"^{re.escape(str(path))} does not exist; check"):
        reader(path)


def test_folder(reader, tmp_path):
    with pytest.raises(
        VideoError, match=f"^{re.escape(str(tmp_path))} is a folder, not a video; give a file"
    ):
        reader(tmp_path)


def test_zero_bytes(reader, tmp_path):
    path = tmp_path / "zero.mp4"
    path.touch()
    with pytest.raises(VideoError, match=r"zero.mp4 is empty \(0 bytes\)"):
        reader(path)


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi", ".webm"])
def test_garbage(reader, tmp_path, suffix):
    path = tmp_path / f"garbage{suffix}"
    path.write_bytes(np.random.default_rng(0).bytes(20_000))
    with pytest.raises(VideoError, match=rf"garbage{suffix} is not a video, or its header is damaged \(Inv"):
        reader(path)


def test_text_named_as_video(reader, tmp_path):
    path = tmp_path / "notes.mp4"
    path.write_text("these are notes, not pictures\n" * 50)
    with pytest.raises(VideoError, match=r"notes.mp4 "):
        reader(path)


def test_file_whose_table_of_frames_is_missing(reader, tmp_path, clip):
    path = tmp_path / "cut.mp4"
    path.write_bytes(clip("a.mp4").read_bytes()[:2000])  # the table stands at the end of the file
    with pytest.raises(
        VideoError, match=r"cut.mp4 (holds neither pictures nor sound; .* cut off|is not a video)"
    ):
        reader(path)


def test_sound_without_pictures(reader, tmp_path, ffmpeg):
    path = tmp_path / "song.m4a"
    ffmpeg("-f", "lavfi", "-i", "sine=duration=0.2", path)
    with pytest.raises(VideoError, match=r"song.m4a has sound but no pictures"):
        reader(path)


def test_sound_with_a_cover_image_has_no_pictures(reader, tmp_path, ffmpeg):
    path = tmp_path / "song.mp3"
    sources = ["-f", "lavfi", "-i", "sine=duration=0.2", "-f", "lavfi", "-i", "color=red:s=32x32:d=0.04"]
    ffmpeg(*sources, "-map", "0", "-map", "1", "-c:v", "png", "-disposition:v", "attached_pic", path)
    with pytest.raises(VideoError, match=r"song.mp3 has sound but no pictures"):
        reader(path)


def test_video_stream_without_frames(reader, tmp_path, ffmpeg):
    path = tmp_path / "none.mkv"
    ffmpeg("-f", "lavfi", "-i", "color=red:s=32x32:d=1", "-frames:v", "0", "-c:v", "libx264", path)
    with pytest.raises(VideoError, match=r"none.mkv (has|is not)"):
        reader(path)


def test_file_name_with_spaces_and_accents(tmp_path, clip, numbers_of):
    path = tmp_path / "Übung 1 %03d.mp4"
    path.write_bytes(clip("a.mp4").read_bytes())
    assert numbers_of(read_frames(path, [5])) == [5]


def test_sound_track_of_a_silent_video_is_an_error(clip):
    with pytest.raises(VideoError, match=r"a.mp4 has no sound track$"):
        read_audio(clip("a.mp4"))


def test_known_suffixes():
    assert {".mp4", ".mov", ".mkv", ".webm", ".avi"} <= VIDEO_SUFFIXES
