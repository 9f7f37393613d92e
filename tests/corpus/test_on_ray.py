"""A real Ray cluster of several nodes on this machine; the driver is a process of its own."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpora import read_bytes, read_shards, write_run
from cycleback.corpus import embed_corpus
from cycleback.corpus.on_ray import share_cluster
from cycleback.embeddings.shards import SHARDS
from cycleback.errors import UserError
from moving_clips import make_clips

COMMAND = "from cycleback.cli.main import main; import sys; sys.exit(main(sys.argv[1:]))"
SCRIPT = Path(__file__).resolve().parents[1] / "ray_nodes.py"
SOURCE = str(SCRIPT.parents[1] / "src")
VIDEOS = 12


class Nodes:
    """A cluster in a process of its own; what is started is stopped."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.address = self.answer("address").split()[1]

    def answer(self, word: str) -> str:
        """Return the next line that begins with a word."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(word):
                return line
        raise AssertionError(f"the cluster ended before it said {word!r}")

    def lose_one(self) -> None:
        """Kill a node."""
        assert self.process.stdin is not None
        self.process.stdin.write("lose\n")
        self.process.stdin.flush()
        self.answer("lost")


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not installed")
    command = [sys.executable, str(SCRIPT)]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:
        yield Nodes(process)
        process.stdin.close()
        process.wait(timeout=60)


def start_driver(corpus: Path, output: Path, address: str) -> subprocess.Popen[str]:
    words = ["embed", str(corpus / "videos"), "--run", str(corpus / "run"), "-o", str(output)]
    environment = {**os.environ, "PYTHONPATH": SOURCE, "CYCLEBACK_CACHE": str(corpus / "cache")}
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words, "--on", address, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )


@pytest.mark.slow
def test_a_cluster_that_loses_a_node_and_its_driver_gives_the_same_bytes(
    tmp_path: Path, nodes: Nodes
) -> None:
    (tmp_path / "videos").mkdir()
    make_clips(tmp_path / "videos", VIDEOS)
    (tmp_path / "videos" / "broken.mp4").write_bytes(b"no video")
    write_run(tmp_path / "run")
    driver = start_driver(tmp_path, tmp_path / "out", nodes.address)
    wait_for_shards(tmp_path / "out", 1, driver)
    nodes.lose_one()
    wait_for_shards(tmp_path / "out", 3, driver)
    driver.kill()
    driver.communicate()
    before = read_shards(tmp_path / "out")
    answer = json.loads(start_driver(tmp_path, tmp_path / "out", nodes.address).communicate(timeout=240)[0])
    assert answer["videos"] == VIDEOS and answer["new"] <= VIDEOS - len(before)
    assert "is not a video" in answer["failed"]["broken"]
    after = read_shards(tmp_path / "out")
    assert {name: after[name] for name in before} == before  # nothing twice
    embed_corpus(
        tmp_path / "videos", tmp_path / "local", run=tmp_path / "run", workers=1, cache=tmp_path / "cache"
    )
    assert read_bytes(tmp_path / "out") == read_bytes(tmp_path / "local")


def wait_for_shards(folder: Path, count: int, driver: subprocess.Popen[str]) -> None:
    for _ in range(2400):
        shards = list((folder / SHARDS).glob("*/[!.]*.safetensors"))
        if len(shards) >= count or driver.poll() is not None:
            return
        time.sleep(0.05)
    raise AssertionError(f"no {count} shards in two minutes")


def test_one_core_of_a_cluster_stays_free() -> None:
    for cores in (2, 3, 8, 64):
        count, share = share_cluster({"CPU": cores}, device="cpu")
        assert count * share == cores - 1
    count, share = share_cluster({"CPU": 1}, device="cpu")
    assert count * share < 1
    assert share_cluster({"CPU": 64}, device="cpu", workers=5) == (5, 1.0)
    for cores, gpus in ((64, 8), (4, 8), (9, 8)):
        count, share = share_cluster({"CPU": cores, "GPU": gpus}, device="cuda")
        assert count == gpus and 0 < count * share <= cores - 1
    with pytest.raises(UserError, match="the cluster has none"):
        share_cluster({"CPU": 8}, device="cuda")


def test_a_cluster_that_is_not_there_is_an_error_of_one_line(
    tmp_path: Path,
) -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not installed")
    (tmp_path / "videos").mkdir()
    make_clips(tmp_path / "videos", 1)
    write_run(tmp_path / "run")
    driver = start_driver(tmp_path, tmp_path / "out", "127.0.0.1:1")
    driver.communicate(timeout=240)
    assert driver.returncode == 2
