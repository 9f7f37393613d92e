"""Training without PyAV, from a frame cache that PyAV or OpenCV filled."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cycleback.data import FrameCache, read_dataset
from cycleback.embeddings.poses import PoseCache, write_poses
from cycleback.errors import DamagedVideoWarning, MissingDependencyError
from cycleback.synth import write_dataset
from cycleback.video import frame_times, read_frames

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "fill_cache_opencv.py"
SETTINGS = [
    *("data.frame_size=64", "optimizer.num_updates=2", "optimizer.batch_size=2"),
    'encoder.streams=["appearance", "motion"]',  # poses are found in the video itself
]
WITHOUT_PYAV = "import sys; sys.modules['av'] = None; from cycleback.cli.main import main; sys.exit(main())"


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    """Two clips, both for training."""
    folder = tmp_path_factory.mktemp("data") / "clips"
    write_dataset(folder, videos=2, seed=5, size=64, jobs=1)
    (folder / "splits.csv").write_text("video,split\npouring_000,train\npouring_001,train\n")
    return folder


@pytest.fixture
def script():
    pytest.importorskip("cv2", reason="OpenCV is not installed; only this script uses it to read files")
    spec = importlib.util.spec_from_file_location("fill_cache_opencv", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def train_without_pyav(videos, run, cache, monkeypatch):
    monkeypatch.setenv("CYCLEBACK_CACHE", str(cache))
    command = [sys.executable, "-c", WITHOUT_PYAV, "train", str(videos), "-o", str(run), *SETTINGS]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_filled_cache_trains_without_pyav(videos, tmp_path, monkeypatch):
    without = train_without_pyav(videos, tmp_path / "run", tmp_path / "cache", monkeypatch)
    assert without.returncode == 2 and "reading video needs av: pip install av" in without.stderr
    FrameCache(tmp_path / "cache", size=(64, 64)).fill(read_dataset(videos).records)
    done = train_without_pyav(videos, tmp_path / "run", tmp_path / "cache", monkeypatch)
    assert done.returncode == 0, done.stderr


def test_a_cache_filled_by_opencv_trains_without_pyav(script, videos, tmp_path, monkeypatch):
    words = ["fill_cache_opencv.py", videos, *SETTINGS, "--cache", tmp_path / "cache"]
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    script.main()
    done = train_without_pyav(videos, tmp_path / "run", tmp_path / "cache", monkeypatch)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("size, fit", [((64, 64), "stretch"), ((40, 64), "stretch"), ((48, 40), "crop")])
def test_opencv_entries_are_those_of_pyav(script, videos, tmp_path, monkeypatch, size, fit):
    records = read_dataset(videos).records
    FrameCache(tmp_path, size=size, fit=fit, decode=script.iter_frames).fill(records)
    expected = [read_frames(r.path, range(len(frame_times(r.path))), size=size, fit=fit) for r in records]
    times = [frame_times(record.path) for record in records]
    monkeypatch.setitem(sys.modules, "av", None)
    for record, frames, seconds in zip(records, expected, times, strict=True):
        entry = FrameCache(tmp_path, size=size, fit=fit).load(record)  # PyAV is not there to decode it
        np.testing.assert_allclose(entry.times, seconds, atol=1e-3)
        assert entry.frames.shape == frames.shape
        assert np.abs(entry.frames.astype(int) - frames).mean() < 4


def test_poses_found_elsewhere_are_kept(script, videos, tmp_path):
    records = read_dataset(videos).records
    here, there = (FrameCache(tmp_path / name, size=(64, 64)) for name in ("here", "there"))
    generator = np.random.default_rng(0)
    for record in records:
        shape = (here.load(record).num_frames, 17, 3)
        PoseCache(here).keep(record, generator.random(shape, dtype=np.float32))
    write_poses(PoseCache(here), records, tmp_path / "poses")
    for record in records:
        script.keep_poses(there, record, tmp_path / "poses")
        np.testing.assert_allclose(PoseCache(there).load(record), PoseCache(here).load(record), atol=1e-6)


def test_a_damaged_file_is_cached_as_far_as_it_decodes(script, videos, tmp_path):
    (tmp_path / "cut").mkdir()
    whole = (videos / "pouring_000.mp4").read_bytes()
    (tmp_path / "cut" / "a.mp4").write_bytes(whole[: len(whole) * 3 // 4])
    cache = FrameCache(tmp_path / "cache", size=(64, 64), decode=script.iter_frames)
    records = read_dataset(tmp_path / "cut").records
    with pytest.warns(DamagedVideoWarning, match=r"a.mp4 is damaged or cut short: kept \d+ of about \d+ fra"):
        cache.load(records[0])
    assert 0 < cache.load(records[0]).num_frames < len(frame_times(videos / "pouring_000.mp4"))


def test_a_video_that_is_not_in_the_cache_names_pyav(videos, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingDependencyError, match=r"^reading video needs av: pip install av$"):
        FrameCache(tmp_path, size=(64, 64)).load(read_dataset(videos).records[0])
