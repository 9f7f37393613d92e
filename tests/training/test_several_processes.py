"""Two and three processes that share a cache: each video is decoded once, and any number gives one result."""

import os
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from cycleback.data import FrameCache, read_dataset
from cycleback.data.cache import LOCKS
from cycleback.training import BatchMaker, read_log
from cycleback.training.videos import MappedVideos, count_frames
from moving_clips import make_clips

SCRIPT = Path(__file__).with_name("several_processes.py")
VIDEOS = 7


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("videos")
    make_clips(folder, VIDEOS)
    return folder


def start(count: int, *words: object, with_ranks: bool = True) -> None:
    """Run the script as several processes, and wait for all."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    paths = [str(SCRIPT.parents[1]), os.environ.get("PYTHONPATH", "")]
    common = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    if with_ranks and count > 1:
        common |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(count)}
        common |= {"LOCAL_WORLD_SIZE": str(count)}
    started = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), *map(str, words)],
            env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    ends = [(process.communicate(timeout=120)[1], process.returncode) for process in started]
    assert not any(code for _, code in ends), ends


def decoded(cache: Path) -> tuple[Counter[str], Counter[str]]:
    """Return how often each video was decoded, and how many each process decoded."""
    lines = [line.split() for line in (cache / "decoded.txt").read_text().splitlines()]
    return Counter(video for _, video in lines), Counter(rank for rank, _ in lines)


def test_three_processes_decode_once_and_train_what_one_does(videos: Path, tmp_path: Path) -> None:
    """Three train until they are interrupted, two go on, one ends; beside them, one from start to end."""
    for name in ("shared", "alone"):
        (tmp_path / name).mkdir()
    run, shared = tmp_path / "run", tmp_path / "shared"
    start(3, "train", videos, run, shared, "mapped", 6, "stop-after", 2)
    times, shares = decoded(shared)
    assert set(times) == {f"clip-{n}.mp4" for n in range(VIDEOS)} and set(times.values()) == {1}
    assert sorted(shares.values()) == [2, 2, 3]
    assert [record["step"] for record in read_log(run)] == [1, 2]
    start(2, "resume", videos, run, shared)
    assert sum(decoded(shared)[0].values()) == VIDEOS  # nobody decodes again
    start(1, "train", videos, tmp_path / "whole", tmp_path / "alone", "memory", 6)
    found, expected = (load_file(place / "encoder.safetensors") for place in (run, tmp_path / "whole"))
    for name, weight in expected.items():
        torch.testing.assert_close(found[name], weight, rtol=1e-3, atol=1e-5)
    losses = [[record["loss"] for record in read_log(place)] for place in (run, tmp_path / "whole")]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3)
    assert len(losses[0]) == 6


def test_programs_that_meet_in_a_cache_decode_no_video_twice(videos: Path, tmp_path: Path) -> None:
    start(3, "decode", videos, tmp_path, with_ranks=False)
    times, _ = decoded(tmp_path)
    assert len(times) == VIDEOS and set(times.values()) == {1}
    assert not list((tmp_path / LOCKS).iterdir())


def make_batches(videos: object, rank: int, world_size: int) -> BatchMaker:
    return BatchMaker(
        videos,  # type: ignore[arg-type]
        ["jump"] * VIDEOS,
        sample=lambda count, generator: torch.randperm(count, generator=generator)[:5].sort().values,
        batch_size=4,
        context_frames=2,
        context_stride=3,
        positive_window=None,
        seed=11,
        rank=rank,
        world_size=world_size,
        lengths=count_frames(videos),  # type: ignore[arg-type]
    )


def test_a_batch_depends_on_seed_step_and_rank_alone(videos: Path, tmp_path: Path) -> None:
    """Mapped and loaded videos, asked in any order, give the same clips; shares join to the whole batch."""
    records = read_dataset(videos).records
    cache = FrameCache(tmp_path, size=(32, 32))
    cache.fill(records)
    loaded = cache.load_tensors(records, device=torch.device("cpu"))
    opened: list[str] = []

    def load(record: object) -> object:
        opened.append(record.name)  # type: ignore[attr-defined]
        return cache.load(record).frames  # type: ignore[arg-type]

    for world_size in (1, 2, 3):
        for step in (9, 0, 4):
            whole = make_batches(loaded, 0, 1)(step)
            parts = {}
            for rank in range(world_size):
                opened.clear()
                mapped = MappedVideos(records, load, [len(video) for video in loaded])  # type: ignore[arg-type]
                batch = make_batches(mapped, rank, world_size)(step)
                assert batch.videos == whole.videos and torch.equal(batch.frames, whole.frames)
                parts |= dict(zip(batch.rows or (), batch.inputs, strict=True))
                mine = {records[whole.videos[row]].name for row in batch.rows or ()}
                assert set(opened) == mine  # of no other video a byte is read
            assert torch.equal(torch.stack([parts[row] for row in range(4)]), whole.inputs)


def test_mapped_videos_are_a_sequence(videos: Path, tmp_path: Path) -> None:
    records = read_dataset(videos).records[:2]
    cache = FrameCache(tmp_path, size=(16, 16))
    mapped = MappedVideos(records, lambda record: cache.load(record).frames, [24, 24])
    assert len(mapped) == 2 and count_frames(mapped) == [24, 24] == count_frames(list(mapped))
    assert torch.equal(mapped[-1], torch.from_numpy(np.array(cache.load(records[1]).frames)))
    with pytest.raises(IndexError):
        mapped[2]
