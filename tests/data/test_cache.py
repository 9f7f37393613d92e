"""Several processes on one entry, and processes that die while writing it."""

import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cycleback.data import FrameCache, VideoRecord, default_cache_root
from cycleback.data import cache as cache_module
from cycleback.data.cache import remove_abandoned
from cycleback.errors import DamagedVideoWarning, DataError, VideoError
from cycleback.video import FrameChunk, read_frames, write_video
from cycleback.video.motion import MotionMeter

Make = Callable[..., VideoRecord]


@pytest.fixture
def forbid_decoding(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def fail(*args: object, **settings: object) -> None:
        raise AssertionError("decoded again")

    return lambda: monkeypatch.setattr("cycleback.data.cache.iter_frames", fail)


def entries(cache: FrameCache) -> list[str]:
    return sorted(path.name for path in (cache.root / "frames").iterdir())


def test_frames_and_times_stay_together(cache: FrameCache, make_video: Make) -> None:
    cached = cache.load(make_video("a", 11, first=50))
    assert (
        cached.frames.shape == (11, 2, 3, 3) and cached.frames.dtype == np.uint8 and cached.num_frames == 11
    )
    np.testing.assert_array_equal(cached.frames[:, 1, 2, 0], 50 + np.arange(11))
    np.testing.assert_allclose(cached.times, np.arange(11) / 10)


def test_frames_are_mapped_from_disk_and_cannot_be_written(cache: FrameCache, make_video: Make) -> None:
    frames = cache.load(make_video("a", 5)).frames
    assert isinstance(frames, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        frames[0] = 0


def test_a_video_is_decoded_once_also_under_another_name(
    cache: FrameCache, make_video: Make, forbid_decoding: Callable[[], None]
) -> None:
    first = make_video("a", 5)
    cache.load(first)
    copy = make_video("deep/er/b", 5)
    forbid_decoding()
    again = FrameCache(cache.root, size=cache.size)
    assert again.folder(copy) == cache.folder(first)
    assert again.load(copy).num_frames == 5


def test_another_content_size_or_fit_is_another_entry(cache: FrameCache, make_video: Make) -> None:
    record = make_video("a", 5)
    folders = {cache.folder(record), FrameCache(cache.root, size=(3, 2)).folder(record)}
    folders |= {FrameCache(cache.root, size=(2, 3), fit="crop").folder(record)}
    folders |= {cache.folder(make_video("a", 6))}
    assert len(folders) == 4


@pytest.mark.parametrize("name", ["frames.npy", "times.npy", "meta.json"])
@pytest.mark.parametrize("kept", [None, 0, 20, 0.9])
def test_a_damaged_entry_is_built_again(
    cache: FrameCache, make_video: Make, name: str, kept: float | None
) -> None:
    record = make_video("a", 11)
    cache.load(record)
    path = cache.folder(record) / name
    if kept is None:
        path.unlink()
    else:
        os.truncate(path, int(kept * path.stat().st_size) if isinstance(kept, float) else kept)
    np.testing.assert_array_equal(cache.load(record).frames[:, 0, 0, 0], np.arange(11))
    assert entries(cache) == [cache.folder(record).name]


def make_moving_video(path: Path) -> VideoRecord:
    noise = np.random.default_rng(0).integers(0, 255, (48, 150, 3), dtype=np.uint8)
    return VideoRecord("a", write_video(path, [noise[:, f : f + 64] for f in range(70)], fps=25))


def test_the_motion_of_a_video_is_kept_beside_its_frames(tmp_path: Path) -> None:
    cached = FrameCache(tmp_path / "cache", size=(24, 24)).load(make_moving_video(tmp_path / "a.mp4"))
    assert isinstance(cached.motion, np.memmap) and cached.motion.dtype == np.float16
    expected = MotionMeter().push(np.array(cached.frames), cached.times)
    np.testing.assert_array_equal(cached.motion[1:], expected[1:])
    np.testing.assert_array_equal(cached.motion[0], expected[1])
    assert expected[1:].max() > 0.01


@pytest.mark.parametrize("kept", [None, 0, 20, 0.9])
def test_the_motion_of_an_old_or_damaged_entry_is_measured_without_decoding(
    tmp_path: Path, kept: float | None, forbid_decoding: Callable[[], None]
) -> None:
    cache = FrameCache(tmp_path / "cache", size=(24, 24))
    record = make_moving_video(tmp_path / "a.mp4")
    expected = np.array(cache.load(record).motion)
    path = cache.folder(record) / "motion.npy"
    if kept is None:
        path.unlink()
    else:
        os.truncate(path, int(kept * path.stat().st_size) if isinstance(kept, float) else kept)
    forbid_decoding()
    np.testing.assert_array_equal(cache.load(record).motion, expected)
    assert path.exists() and len(list(path.parent.iterdir())) == 4


def test_a_video_of_one_frame_has_motion_zero(cache: FrameCache, make_video: Make) -> None:
    assert not cache.load(make_video("a", 1)).motion.any()


def test_a_failure_while_decoding_leaves_nothing(
    cache: FrameCache, make_video: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(path: Path, **settings: object) -> Iterator[object]:
        raise VideoError("broken at frame 3")
        yield

    record = make_video("a", 11)
    monkeypatch.setattr("cycleback.data.cache.iter_frames", break_off)
    with pytest.raises(VideoError, match="broken at frame 3"):
        cache.load(record)
    assert entries(cache) == []


def test_memory_does_not_grow_with_the_video(tmp_path: Path, make_video: Make) -> None:
    large = FrameCache(tmp_path / "cache", size=(64, 64))
    record = make_video("a", 2000)  # 24.6 MB
    tracemalloc.start()
    try:
        large.load(record)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5e6


def test_filling_reports_each_video_and_leaves_sequences_out(cache: FrameCache, make_video: Make) -> None:
    calls: list[tuple[int, int]] = []
    records = [make_video(f"v{number}", 4 + number) for number in range(5)]
    records.append(VideoRecord("s", Path("s.npz"), kind="sequence"))
    cache.fill(records, progress=lambda done, total: calls.append((done, total)), workers=3)
    assert calls == [(done, 5) for done in range(1, 6)]
    assert len(entries(cache)) == 5


def test_filling_goes_on_past_videos_that_fail(cache: FrameCache, make_video: Make) -> None:
    records = [make_video(f"v{number}", 4 + number) for number in range(6)]
    for number in (1, 4):
        records[number].path.unlink()
    with pytest.raises(
        DataError, match=r"2 of 6 videos cannot be used\. v\d: cannot read .*\. The others: v\d\."
    ):
        cache.fill(records)
    assert len(entries(cache)) == 4
    with pytest.raises(DataError, match=r"^cannot read .*v1\.mp4: No such file"):
        cache.fill(records[:2])


@pytest.fixture
def held_back(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Videos named `late` are decoded only once this is set."""
    decode, event = cache_module.iter_frames, threading.Event()

    def wait(path: Path, **settings: Any) -> Iterator[FrameChunk]:
        assert path.stem != "late" or event.wait(timeout=30)
        return decode(path, **settings)

    monkeypatch.setattr(cache_module, "iter_frames", wait)
    return event


def test_videos_are_handed_out_while_others_are_decoded(
    cache: FrameCache, make_video: Make, held_back: threading.Event
) -> None:
    found = cache.iter_filled([make_video("late", 5), make_video("early", 6)])
    assert next(found).name == "early"
    held_back.set()
    assert [record.name for record in found] == ["late"]
    assert len(entries(cache)) == 2


def test_after_a_video_that_fails_none_is_handed_out_and_all_are_decoded(
    cache: FrameCache, make_video: Make, held_back: threading.Event
) -> None:
    records = [make_video("gone", 4), make_video("late", 5)]
    records[0].path.unlink()
    threading.Timer(0.2, held_back.set).start()
    with pytest.raises(DataError, match=r"^cannot read .*gone\.mp4"):
        next(cache.iter_filled(records))
    assert len(entries(cache)) == 1


def test_an_interrupt_stops_at_once_and_keeps_what_is_done(cache: FrameCache, make_video: Make) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    records = [make_video(f"v{number}", 4 + number) for number in range(40)]
    with pytest.raises(KeyboardInterrupt):
        cache.fill(records, progress=interrupt)
    assert 1 <= len(entries(cache)) < 40
    cache.fill(records)
    assert len(entries(cache)) == 40


def test_a_cache_that_cannot_be_written_says_what_to_do(tmp_path: Path, make_video: Make) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = FrameCache(tmp_path / "file" / "cache", size=(2, 2))
    with pytest.raises(
        DataError, match=r"cannot write the frame cache in .*file/cache: Not a dir.*CYCLEBACK_CACHE"
    ):
        cache.load(make_video("a", 3))


def test_the_default_place_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CYCLEBACK_CACHE", str(tmp_path))
    assert FrameCache(size=(2, 2)).root == tmp_path
    monkeypatch.delenv("CYCLEBACK_CACHE")
    assert default_cache_root() == Path.home() / ".cache" / "cycleback"


def test_wrong_settings_are_refused(cache: FrameCache) -> None:
    with pytest.raises(ValueError, match=r"size must be \(height, width\) in pixels, got \(0, 5\)"):
        FrameCache(size=(0, 5))
    with pytest.raises(ValueError, match="fit must be 'stretch' or 'crop', got 'pad'"):
        FrameCache(size=(5, 5), fit="pad")
    with pytest.raises(ValueError, match="s is a sequence of features and has no frames; use load_sequence"):
        cache.load(VideoRecord("s", Path("s.npz"), kind="sequence"))


def test_a_folder_of_images_is_cached_like_a_video(
    cache: FrameCache, tmp_path: Path, write_images: Callable[..., Path]
) -> None:
    folder = write_images(tmp_path / "clip", [f"{number}.png" for number in (3, 9, 27)])
    cached = cache.load(VideoRecord("clip", folder, kind="frames"))
    assert cached.frames[:, 0, 0, 0].tolist() == [3, 9, 27]
    np.testing.assert_allclose(cached.times, np.arange(3) / 30)
    assert cached.motion.shape == (3, 4, 8, 8)


@pytest.mark.parametrize("fit", ["stretch", "crop"])
def test_cached_frames_are_those_of_the_video(tmp_path: Path, fit: str) -> None:
    ramp = np.linspace(0, 255, 48 * 64 * 3).reshape(48, 64, 3)
    path = write_video(tmp_path / "a.mp4", [(ramp * f / 20).astype(np.uint8) for f in range(20)], fps=25)
    cached = FrameCache(tmp_path / "cache", size=(24, 24), fit=fit).load(VideoRecord("a", path))
    np.testing.assert_array_equal(cached.frames, read_frames(path, range(20), size=(24, 24), fit=fit))
    np.testing.assert_allclose(cached.times, np.arange(20) / 25, atol=1e-3)


def test_a_video_cut_short_is_kept_as_far_as_it_goes_and_warned_of(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (60, 64, 64, 3), dtype=np.uint8)
    path = write_video(tmp_path / "a.mp4", noise, fps=25)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.warns(DamagedVideoWarning, match=r"a\.mp4"):
        cached = FrameCache(tmp_path / "cache", size=(8, 8)).load(VideoRecord("a", path))
    assert 5 < cached.num_frames < 60


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


def test_of_two_processes_that_fill_one_entry_only_one_decodes(
    cache: FrameCache, video: VideoRecord, start_fill: Callable[[float], subprocess.Popen[str]]
) -> None:
    processes = [start_fill(0.05), start_fill(0.05)]
    most = 0
    while any(process.poll() is None for process in processes):
        most = max(most, len(list((cache.root / "frames").glob(".filling-*"))))
        time.sleep(0.01)
    assert most == 1
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
    remove_abandoned(left.parent)
    assert not left.exists()
    assert cache.load(video).num_frames == 30


def test_a_fill_that_still_runs_is_never_cleaned_up(
    cache: FrameCache, start_fill: Callable[[float], subprocess.Popen[str]]
) -> None:
    process = start_fill(0.03)
    (busy,) = wait_for_temporary(cache)
    time.sleep(0.1)
    os.utime(busy, (0, 0))
    remove_abandoned(busy.parent)
    assert busy.exists()
    assert process.communicate(timeout=30)[0] == "filled\n"


def test_a_damaged_entry_in_the_way_of_two_readers_is_replaced(
    cache: FrameCache, video: VideoRecord, fake_reader: None
) -> None:
    cache.fill([video])
    os.truncate(cache.folder(video) / "frames.npy", 100)
    cache.fill([video, video, video], workers=3)
    assert cache.load(video).num_frames == 30
    assert temporaries(cache) == []


def test_all_frames_of_videos_are_copied_into_memory(cache: FrameCache, make_video: Make) -> None:
    first, second = cache.load_tensors(
        [make_video("a", 12), make_video("b", 9, first=100)], device=torch.device("cpu")
    )
    assert first.dtype == torch.uint8 and first.shape == (12, 2, 3, 3)
    assert second[:, 1, 1, 1].tolist() == list(range(100, 109))


def test_more_than_the_memory_holds_is_an_error(
    cache: FrameCache, make_video: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cycleback.data.cache.memory_bytes", lambda: 200.0)
    with pytest.raises(
        DataError, match=r"0\.0 GiB of frames do not fit into the memory of cpu\. Lower data\.frame_size"
    ):
        cache.load_tensors([make_video("a", 12)], device=torch.device("cpu"))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_frames_may_be_copied_to_the_device(cache: FrameCache, make_video: Make) -> None:
    (frames,) = cache.load_tensors([make_video("a", 12)], device=torch.device("cuda"))
    assert frames.device.type == "cuda" and frames[:, 0, 0, 0].tolist() == list(range(12))
