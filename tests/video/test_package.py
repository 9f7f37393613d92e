import subprocess
import sys

import pytest

import cycleback.video
from cycleback.errors import MissingDependencyError
from cycleback.video import probe, write_video

LISTED = {
    "Audio",
    "FrameChunk",
    "VIDEO_SUFFIXES",
    "VideoInfo",
    "fit_cell",
    "frame_times",
    "iter_frames",
    "probe",
    "read_audio",
    "read_frames",
    "tile",
    "write_video",
}


def test_public_names_are_those_listed():
    assert set(cycleback.video.__all__) == LISTED
    assert all(hasattr(cycleback.video, name) for name in LISTED)


def test_import_loads_no_decoder_and_no_torch():
    code = "import sys, cycleback.video; print(sorted({'av', 'torch', 'PIL'} & set(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


def test_reading_without_pyav_names_it(monkeypatch, clip):
    path = clip("a.mp4")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingDependencyError, match=r"^reading video needs av: pip install av$"):
        probe(path)


def test_writing_without_pyav_names_it(monkeypatch, tmp_path, numbered):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingDependencyError, match=r"^writing video needs av: pip install av$"):
        write_video(tmp_path / "a.mp4", numbered(2), fps=30)
