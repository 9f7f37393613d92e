"""Measure what handing out very many videos costs: listing, resuming, and the manifest.

The videos are empty files and their shards hold one frame: only names, sizes and headers are read. Times are
those of the processor; ratios compare the cost per video with that of the smallest corpus. The folder should
be in memory, such as /dev/shm: disks are not measured.

    python benchmarks/corpus_lists.py --counts 10000 100000 -o results/corpus_lists.json
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from cycleback.corpus.run import _find_done, cut_passes
from cycleback.corpus.settings import choose_sample
from cycleback.corpus.sources import list_corpus
from cycleback.embeddings.shards import ShardFacts, read_manifest, write_manifest, write_shard
from cycleback.files import write_json

FOLDERS = 100


def write_corpus(work: Path, count: int) -> None:
    """Write empty videos in some folders."""
    for number in range(count):
        path = work / "videos" / f"action{number % FOLDERS:03d}" / f"{number:07d}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def measure(work: Path) -> dict[str, float]:
    """Return seconds of the processor of each step, and the peak memory."""
    found = {}

    def mark(name: str) -> None:
        nonlocal started
        found[name] = round(time.process_time() - started, 2)
        started = time.process_time()

    started = time.process_time()
    items = list_corpus(work / "videos")
    mark("list_s")
    choose_sample(items, seed=0)
    cut_passes(items, workers=64)
    mark("hand_out_s")
    rows, times = np.zeros((1, 8), np.float32), np.zeros(1)
    for item in items:
        write_shard(work / "corpus", ShardFacts(item.name, stamp=item.stamp), rows, times)
    mark("write_shards_s")
    done = _find_done(work / "corpus", items)
    mark("resume_s")
    write_manifest(work / "corpus", (done[item.id] for item in items))
    mark("manifest_s")
    assert sum(1 for _ in read_manifest(work / "corpus")) == len(items)
    mark("read_manifest_s")
    found["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return found


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--counts", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"), help="where the corpus is written")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this .json file")
    arguments = parser.parse_args()
    if arguments.inside:
        print(json.dumps(measure(arguments.inside)))
        return
    runs: dict[int, dict[str, Any]] = {}
    for count in arguments.counts:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as work:
            write_corpus(Path(work), count)
            words = [sys.executable, __file__, "--inside", work]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            runs[count] = json.loads(done.stdout.splitlines()[-1])
            print(f"{count:>8} videos  {runs[count]}", flush=True)
    first, last = min(runs), max(runs)
    ratios = {
        name: round(value / last / (runs[first][name] / first), 2)
        for name, value in runs[last].items()
        if name.endswith("_s") and runs[first][name]
    }
    result = {"runs": {str(count): run for count, run in runs.items()}, "cost_per_video_ratio": ratios}
    print(json.dumps(ratios))
    if arguments.output is not None:
        write_json(arguments.output, result, overwrite=True)


if __name__ == "__main__":
    main()
