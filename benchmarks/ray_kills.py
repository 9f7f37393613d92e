"""Kill what embeds a corpus on a Ray cluster, again and again: is anything lost, or done twice?

A real cluster of three nodes, each a set of processes on this machine, embeds a corpus of short rendered
videos and a few broken ones. At random moments a worker, a node or the driver is killed with SIGKILL, in
turn. A lost node comes back; a killed driver is started again with the same command. After each kill, every
shard that was complete must still be there, never written again. When the corpus is complete, its shards must
equal, byte by byte, those of one local process. Complete corpora are put aside and begun anew until all kills
are done.

    python benchmarks/ray_kills.py --kills 20 -o results/ray.json
    python benchmarks/ray_kills.py --kills 10 --seed 1 --append -o results/ray.json

With `--speed` the throughput of a cluster and of local processes is measured instead: frames per second
between the first and the last shard, and in all, as ratios to one local process.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cycleback.embeddings.shards import SHARDS, read_manifest
from cycleback.files import write_json
from cycleback.models import save_encoder
from cycleback.recipe import RECIPE_FILE, Recipe, build_encoder, recipe_toml
from cycleback.recipe.sections import EncoderSettings
from cycleback.video import write_video

SIDE, FRAMES, FPS = 160, 96, 25
BROKEN = 3
NODES = 3
NODE = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
COMMAND = "from cycleback.cli.main import main; import sys; sys.exit(main(sys.argv[1:]))"
TARGETS = ("worker", "node", "driver")
POLL_S, MAX_WAIT_S = 0.02, 120.0
Shards = dict[str, tuple[int, int]]  # file name -> inode, time of writing


def write_corpus(folder: Path, count: int) -> None:
    """Write rendered videos that all differ, broken ones, and a run of the stream motion."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    field = rng.integers(0, 60, (SIDE, SIDE, 3), dtype=np.uint8)
    for number in range(count):
        images = []
        for share in np.linspace(0, 1, FRAMES) ** (1 + 0.02 * number):
            image = field.copy()
            left, top = int(share * (SIDE - 40)), 20 + number % 80
            image[top : top + 40, left : left + 40] = 220
            images.append(image)
        write_video(folder / f"clip-{number:04d}.mp4", images, fps=FPS)
    for number in range(BROKEN):
        (folder / f"broken-{number}.mp4").write_bytes(b"no video")


def write_run(folder: Path) -> None:
    """Write a run folder whose encoder is the untrained stream motion."""
    recipe = Recipe(encoder=EncoderSettings(streams=("motion",), embedder="pooled"))
    folder.mkdir()
    (folder / RECIPE_FILE).write_text(recipe_toml(recipe))
    save_encoder(folder, build_encoder(recipe), tomllib.loads(recipe_toml(recipe))["encoder"])


def start_driver(work: Path, output: Path, *words: str, cache: str = "cache") -> subprocess.Popen[bytes]:
    """Start `cycleback embed` as a process of its own."""
    command = ["embed", str(work / "videos"), "--run", str(work / "run"), "-o", str(output), *words]
    environment = {**os.environ, "CYCLEBACK_CACHE": str(work / cache)}
    log = (work / "driver.log").open("ab")
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *command], stdout=log, stderr=log, env=environment
    )


def find_shards(output: Path) -> Shards:
    """Return which shards there are, and when each was written."""
    found = {}
    for path in (output / SHARDS).glob("*/[!.]*.safetensors"):
        state = path.stat()
        found[path.name] = (state.st_ino, state.st_mtime_ns)
    return found


def read_all(output: Path) -> dict[str, bytes]:
    """Return the bytes of all shards."""
    return {path.name: path.read_bytes() for path in (output / SHARDS).glob("*/[!.]*.safetensors")}


@contextmanager
def start_cluster(nodes: int) -> Iterator[tuple[Any, list[Any]]]:
    """Start a head and further nodes; whatever is started is stopped."""
    place = tempfile.mkdtemp(prefix="r", dir="/tmp")  # sockets need a short path
    os.environ["RAY_TMPDIR"] = place  # also for the address: without a cluster before, /tmp/ray is missing
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    try:
        others = [cluster.add_node(**NODE) for _ in range(nodes - 1)]
        cluster.wait_for_nodes()
        yield cluster, others
    finally:
        cluster.shutdown()
        shutil.rmtree(place, ignore_errors=True)


def raylet_pid(node: Any) -> int:
    """Return the process that is a node."""
    return int(node.all_processes["raylet"][0].process.pid)


def find_workers(cluster: Any) -> list[int]:
    """Return the actors of the cluster that embed."""
    found = []
    for node in cluster.list_all_nodes():
        pid = raylet_pid(node)
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            continue
        for child in children:
            try:
                command = Path(f"/proc/{child}/cmdline").read_bytes()
            except OSError:
                continue
            if command.startswith(b"ray::") and b"MapWorker" in command:
                found.append(int(child))
    return found


def forget_node(cluster: Any, node: Any) -> None:
    """End what is left of a killed node, without asking the cluster, which may be too busy to answer."""
    node.kill_all_processes(check_alive=False, allow_graceful=False)
    cluster.worker_nodes.discard(node)


class Attack:
    """Kills parts of a job and keeps account of its shards."""

    def __init__(self, work: Path, cluster: Any, others: list[Any], expected: dict[str, bytes], seed: int):
        self.work, self.cluster, self.others, self.expected = work, cluster, others, expected
        self.chance = random.Random(seed)
        self.kills: list[dict[str, Any]] = []
        self.corpora: list[dict[str, Any]] = []
        self.lost = self.twice = self.restarts = 0
        self.begin()

    def begin(self) -> None:
        """Begin another corpus."""
        self.output = self.work / f"out-{len(self.corpora)}"
        self.seen: Shards = {}
        self.start()

    def start(self) -> None:
        """Start the driver."""
        self.driver = start_driver(self.work, self.output, "--on", self.cluster.address)

    def look(self) -> None:
        """Compare the shards with those seen before."""
        found = find_shards(self.output)
        self.lost += sum(name not in found for name in self.seen)
        self.twice += sum(name in found and found[name] != known for name, known in self.seen.items())
        self.seen = {**self.seen, **found}

    def wait_for_work(self) -> None:
        """Wait until the job writes shards, then a random while; a corpus that is complete is put aside."""
        before, started = len(find_shards(self.output)), time.monotonic()
        while len(find_shards(self.output)) <= before:
            if self.driver.poll() is not None:
                self.finish()
                self.begin()
                before, started = 0, time.monotonic()
            if time.monotonic() - started > MAX_WAIT_S:
                raise RuntimeError(f"no shard in {MAX_WAIT_S:g} s: see {self.work / 'driver.log'}")
            time.sleep(POLL_S)
        pause = self.chance.uniform(0, 1.5)
        deadline = time.monotonic() + pause
        while time.monotonic() < deadline and self.driver.poll() is None:
            time.sleep(POLL_S)

    def kill(self, target: str) -> None:
        """Kill one part, and mend what a person or a machine would mend."""
        self.wait_for_work()
        done = len(find_shards(self.output))
        if target == "driver":
            self.driver.kill()
            self.driver.wait()
            self.look()
            self.restarts += 1
            self.start()
        elif target == "node":
            node = self.others.pop(self.chance.randrange(len(self.others)))
            os.kill(raylet_pid(node), signal.SIGKILL)
            forget_node(self.cluster, node)
            self.others.append(self.cluster.add_node(**NODE))
        else:
            workers = find_workers(self.cluster)
            if not workers:
                return self.kill(target)
            os.kill(self.chance.choice(workers), signal.SIGKILL)
        self.look()
        self.kills.append({"target": target, "corpus": len(self.corpora), "shards_done": done})
        print(f"kill {len(self.kills):>3}: {target:<7} with {done} shards done", flush=True)
        return None

    def finish(self) -> None:
        """Wait for the end of a job, running it again if it failed, and compare its shards."""
        status = self.driver.wait(timeout=2 * MAX_WAIT_S)
        if status != 0:
            self.restarts += 1
            self.start()
            status = self.driver.wait(timeout=2 * MAX_WAIT_S)
        self.look()
        found = read_all(self.output)
        rows = list(read_manifest(self.output))
        self.corpora.append(
            {
                "exit_status": status,
                "shards": len(found),
                "missing": len(self.expected.keys() - found.keys()),
                "different": sum(found.get(name) != content for name, content in self.expected.items()),
                "too_many": len(found.keys() - self.expected.keys()),
                "failed_rows": sum(bool(row.error) for row in rows),
                "drafts_left": len(list((self.output / SHARDS).glob("*/.draft*"))),
            }
        )
        print(json.dumps(self.corpora[-1]), flush=True)


def attack(work: Path, *, videos: int, kills: int, seed: int) -> dict[str, Any]:
    """Do so many kills; return what happened."""
    write_corpus(work / "videos", videos)
    write_run(work / "run")
    if start_driver(work, work / "local", "--on", "local", "--workers", "1", cache="cache-local").wait():
        raise RuntimeError((work / "driver.log").read_text())
    expected = read_all(work / "local")
    with start_cluster(NODES) as (cluster, others):
        run = Attack(work, cluster, others, expected, seed)
        try:
            for number in range(kills):
                run.kill(TARGETS[number % len(TARGETS)])
            run.finish()
        finally:
            if run.driver.poll() is None:
                run.driver.kill()
                run.driver.wait()
    return {
        "seed": seed,
        "videos": videos,
        "broken_videos": BROKEN,
        "kills": run.kills,
        "corpora": run.corpora,
        "lost": run.lost,
        "twice": run.twice,
        "starts_after_the_first": run.restarts,
    }


def measure_speed(work: Path, *, videos: int) -> dict[str, Any]:
    """Return frames per second by one and two local processes, and by a cluster of as many actors."""
    write_corpus(work / "videos", videos)
    write_run(work / "run")
    found: dict[str, Any] = {}
    for name, words in {
        "local, 1 process": ("--on", "local", "--workers", "1"),
        "local, 2 processes": ("--on", "local", "--workers", "2"),
        "ray, 1 actor": ("--on", "ray", "--workers", "1"),
        "ray, 2 actors": ("--on", "ray", "--workers", "2"),
    }.items():
        output, started = work / name.replace(", ", "-").replace(" ", "-"), time.time()
        if start_driver(work, output, *words, cache=f"cache-{len(found)}").wait():
            raise RuntimeError((work / "driver.log").read_text())
        seconds = time.time() - started
        written = sorted(when for _, when in find_shards(output).values())
        frames = sum(row.frames for row in read_manifest(output))
        steady = frames * (len(written) - 1) / len(written) / ((written[-1] - written[0]) / 1e9)
        found[name] = {"seconds": round(seconds, 1), "frames_per_s": round(steady)}
        print(name, found[name], flush=True)
    first = found["local, 1 process"]
    for row in found.values():
        row["ratio"] = round(row["frames_per_s"] / first["frames_per_s"], 2)
        row["ratio_with_start"] = round(first["seconds"] / row["seconds"], 2)
    return {"videos": videos, "frames": videos * FRAMES, "cores": os.cpu_count(), "rows": found}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--videos", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--speed", action="store_true", help="measure the throughput instead")
    parser.add_argument("--append", action="store_true", help="keep the attacks that the file holds already")
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this .json file")
    arguments = parser.parse_args()
    known = {}
    if arguments.output is not None and arguments.output.is_file():
        known = json.loads(arguments.output.read_text())
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        if arguments.speed:
            known["speed"] = measure_speed(work, videos=arguments.videos)
        else:
            earlier = known.get("attacks", []) if arguments.append else []
            kills = {"videos": arguments.videos, "kills": arguments.kills, "seed": arguments.seed}
            known["attacks"] = [*earlier, attack(work, **kills)]
            known["totals"] = {
                "kills": sum(len(each["kills"]) for each in known["attacks"]),
                "lost": sum(each["lost"] for each in known["attacks"]),
                "twice": sum(each["twice"] for each in known["attacks"]),
                "different": sum(c["different"] for each in known["attacks"] for c in each["corpora"]),
            }
            print(json.dumps(known["totals"]))
    if arguments.output is not None:
        write_json(arguments.output, known, overwrite=True)


if __name__ == "__main__":
    main()
