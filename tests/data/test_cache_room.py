"""The cache stays within its limit, and nothing that a living program uses is removed."""

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cycleback import arrays as arrays_module
from cycleback.data import FrameCache, VideoRecord, cache_room
from cycleback.data.cache_room import (
    clear_cache,
    default_limit,
    describe_cache,
    make_room,
    read_limit,
    set_limit,
)
from cycleback.errors import UserError

Make = Callable[..., VideoRecord]
LONG_AGO = time.time() - 10 * 86400


@pytest.fixture
def root(tmp_path: Path, fake_reader: None) -> Path:
    return tmp_path / "cache"


def open_cache(root: Path) -> FrameCache:
    gc.collect()  # an object that is gone uses nothing
    return FrameCache(root, size=(64, 64))


def age(root: Path, record: VideoRecord, seconds: float) -> None:
    """Let an entry look as if it was last used that long ago."""
    for path in open_cache(root).folder(record).iterdir():
        os.utime(path, (time.time() - seconds,) * 2)


def kept(root: Path) -> set[str]:
    return {Path(entry.source).stem for entry in describe_cache(root).entries}


def with_frames(root: Path) -> set[str]:
    entries = describe_cache(root).entries
    return {Path(each.source).stem for each in entries if "frames" in [file.kind for file in each.files]}


def fill_three(root: Path, make_video: Make) -> list[VideoRecord]:
    records = [make_video(name, 40 + number) for number, name in enumerate("abc")]
    open_cache(root).fill(records)
    for number, record in enumerate(records):
        age(root, record, 1000 * (3 - number))
    return records


def test_a_report_counts_what_is_on_the_disk_by_kind(root: Path, make_video: Make) -> None:
    fill_three(root, make_video)
    report = describe_cache(root)
    du = subprocess.run(["du", "-s", "--block-size=1", root / "frames"], capture_output=True, text=True)
    folders = 4 * 4096  # which du counts, too
    assert abs(report.size + folders - int(du.stdout.split()[0])) <= folders
    assert report.kinds["frames"] > 40 * 64 * 64 * 3 and set(report.kinds) == {"frames", "motion", "other"}
    assert kept(root) == {"a", "b", "c"}


def test_beyond_the_limit_the_least_recently_used_go_first(root: Path, make_video: Make) -> None:
    first, _, _ = fill_three(root, make_video)
    assert len(open_cache(root).load(first).frames) == 40  # used now, so it is the last to go
    size = describe_cache(root).size
    removed = make_room(root, size - 1)
    assert removed.size >= size * 0.1 - 1 and with_frames(root) == {"a", "c"}
    make_room(root, size // 2)
    assert with_frames(root) == {"a"} and describe_cache(root).size <= size // 2
    assert make_room(root, 0).kept_in_use == 0 and kept(root) == set()


def test_a_write_beyond_the_limit_makes_room(root: Path, make_video: Make) -> None:
    fill_three(root, make_video)
    set_limit(root, describe_cache(root).size)
    again = open_cache(root)
    again.load(make_video("d", 30))
    assert "d" in kept(root) and "a" not in kept(root)
    assert describe_cache(root).size <= (read_limit(root) or 0)


HOLD = """
import sys
from pathlib import Path
from cycleback.data import FrameCache, VideoRecord
cache = FrameCache(Path(sys.argv[1]), size=(64, 64))
frames = cache.load(VideoRecord("a", Path(sys.argv[2]))).frames
print(frames.sum(), flush=True)
sys.stdin.read()
"""


def test_what_another_program_uses_is_never_removed(root: Path, make_video: Make) -> None:
    pytest.importorskip("fcntl")
    first, *_ = fill_three(root, make_video)
    words = [sys.executable, "-c", HOLD, str(root), str(first.path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and int(other.stdout.readline()) > 0
        removed = make_room(root, 0)
        assert kept(root) == {"a"} and removed.kept_in_use > 40 * 64 * 64 * 3
        assert clear_cache(root).files == 0 and kept(root) == {"a"}
        other.kill()  # a killed program uses nothing
    assert clear_cache(root).kept_in_use == 0 and kept(root) == set()
    assert not list((root / "in-use").iterdir())


def test_what_this_program_uses_stays_until_it_lets_go(root: Path, make_video: Make) -> None:
    cache = open_cache(root)
    cache.load(make_video("a", 40))
    assert clear_cache(root).kept_in_use > 0 and kept(root) == {"a"}
    del cache
    clear_cache(root)
    assert kept(root) == set()


def test_clearing_takes_only_the_old_or_one_kind(root: Path, make_video: Make) -> None:
    records = fill_three(root, make_video)
    age(root, records[0], 40 * 86400)
    clear_cache(root, older_s=30 * 86400)
    assert kept(root) == {"b", "c"}
    clear_cache(root, kinds=["frames"])
    assert "frames" not in describe_cache(root).kinds and kept(root) == {"b", "c"}
    again = open_cache(root)
    assert again.load(records[1]).frames[:, 0, 0, 0].tolist() == list(range(41))


@pytest.mark.parametrize("name", ["frames.npy", "times.npy", "motion.npy"])
def test_a_flipped_byte_is_found_and_the_file_is_made_again(
    root: Path, make_video: Make, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = make_video("a", 40)
    before = open_cache(root).load(record)
    expected = np.array(before.frames), np.array(before.motion), before.times
    path = before.folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)
    monkeypatch.setattr(arrays_module, "_VERIFIED", {})
    after = open_cache(root).load(record)
    for one, other in zip(expected, (after.frames, after.motion, after.times), strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(kept(root)) == 1


def test_frames_that_were_decoded_to_measure_something_are_not_kept(root: Path, make_video: Make) -> None:
    record = make_video("a", 40)
    cache = open_cache(root)
    motion = np.array(cache.load(record).motion)
    cache.release(record)
    assert set(describe_cache(root).kinds) == {"motion", "other"}
    again = open_cache(root)
    assert again.load(record).frames.shape == (40, 64, 64, 3)
    np.testing.assert_array_equal(again.load(record).motion, motion)


def test_frames_of_a_training_stay(root: Path, make_video: Make) -> None:
    record = make_video("a", 40)
    cache = open_cache(root)
    cache.fill([record])
    cache.release(record)
    open_cache(root).release(record)  # which did not decode them
    assert "frames" in describe_cache(root).kinds


def test_the_limit_is_a_tenth_of_the_disk_and_at_most_20_gb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = os.statvfs(tmp_path)
    tenth = disk.f_blocks * disk.f_frsize // 10
    assert abs(default_limit(tmp_path / "not" / "there") - min(20 * 10**9, tenth)) < 1e6
    assert read_limit(tmp_path) == default_limit(tmp_path)
    set_limit(tmp_path, None)
    assert read_limit(tmp_path) is None
    (tmp_path / cache_room.LIMIT_FILE).write_text("{damaged")
    assert read_limit(tmp_path) == default_limit(tmp_path)
    with pytest.raises(UserError, match="at least 0 bytes, got -1"):
        set_limit(tmp_path, -1)
