"""Several processes on one entry, and processes that die while writing it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from cycleback.data import FrameCache, VideoRecord
from cycleback.data.cache_entry import remove_abandoned

SLOW_FILL = """
import sys, time
from pathlib import Path
import numpy as np
import cycleback.data.cache as module
from cycleback.data import FrameCache, VideoRecord
from cycleback.video import FrameChunk

def slow(path, *, size, fit):
    for number in range(30):
        time.sleep(float(sys.argv[3]))
        yield FrameChunk(np.full((1, *size, 3), number, np.uint8), np.array([number / 10]), number)

module.iter_frames = slow
cached = FrameCache(Path(sys.argv[1]), size=(2, 3)).load(VideoRecord("a", Path(sys.argv[2])))
assert (cached.frames[:, 0, 0, 0] == np.arange(30)).all()
print("filled")
"""


@pytest.fixture
def video(tmp_path: Path) -> VideoRecord:
    (tmp_path / "a.mp4").write_text("30 0")
    return VideoRecord("a", tmp_path / "a.mp4")


@pytest.fixture
def start_fill(cache: FrameCache, video: VideoRecord) -> Iterator[Callable[[float], subprocess.Popen[str]]]:
    """start_fill(pause): another process that decodes the video, with a pause a frame."""
    started = []

    def start(pause: float) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SLOW_FILL, str(cache.root), str(video.path), str(pause)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def temporaries(cache: FrameCache) -> list[Path]:
    return list((cache.root / "frames").glob(".filling-*")) if cache.root.exists() else []


def wait_for_temporary(cache: FrameCache, count: int = 1) -> list[Path]:
    deadline = time.monotonic() + 20
    while len(found := temporaries(cache)) < count:
        assert time.monotonic() < deadline, "no process began to fill the cache"
        time.sleep(0.005)
    return found


def test_two_processes_may_fill_one_entry_at_once(
    cache: FrameCache, video: VideoRecord, start_fill: Callable[[float], subprocess.Popen[str]]
) -> None:
    processes = [start_fill(0.05), start_fill(0.05)]
    wait_for_temporary(cache, count=2)
    results = [process.communicate(timeout=30) for process in processes]
    assert [out for out, _ in results] == ["filled\n", "filled\n"], results
    assert [path.name for path in (cache.root / "frames").iterdir()] == [cache.folder(video).name]


def test_a_killed_fill_is_ignored_and_later_cleaned_up(
    cache: FrameCache,
    video: VideoRecord,
    fake_reader: None,
    start_fill: Callable[[float], subprocess.Popen[str]],
) -> None:
    process = start_fill(0.2)
    (left,) = wait_for_temporary(cache)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not cache.folder(video).exists()
    np.testing.assert_array_equal(cache.load(video).frames[:, 0, 0, 0], np.arange(30))
    assert left.exists()  # too young to tell from one that is just being made
    os.utime(left, (0, 0))
    assert remove_abandoned(left.parent) == 1 and not left.exists()
    assert cache.load(video).num_frames == 30


def test_a_fill_that_still_runs_is_never_cleaned_up(
    cache: FrameCache, start_fill: Callable[[float], subprocess.Popen[str]]
) -> None:
    process = start_fill(0.03)
    (busy,) = wait_for_temporary(cache)
    time.sleep(0.1)
    os.utime(busy, (0, 0))
    assert remove_abandoned(busy.parent) == 0 and busy.exists()
    assert process.communicate(timeout=30)[0] == "filled\n"


def test_a_damaged_entry_in_the_way_of_two_readers_is_replaced(
    cache: FrameCache, video: VideoRecord, fake_reader: None
) -> None:
    cache.fill([video])
    os.truncate(cache.folder(video) / "frames.npy", 100)
    cache.fill([video, video, video], workers=3)
    assert cache.load(video).num_frames == 30
    assert temporaries(cache) == []
