"""Measure what the cache saves: the second command on the same clips, and its size beside that of the clips.

The clips are rendered. Each command runs in a process of its own: first with an empty cache, then again.
Times are those of the processors, of all threads, and exclude starting Python and importing the package,
which takes as long both times. "Before" is the size that frames and whole feature maps would take, as in
version 0.2.0.

    python benchmarks/cache_reuse.py -o results/cache_reuse.json
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from cycleback.files import write_json

COMMANDS = ("sync", "transfer", "search")
RUNS = ("pretrained", "golf-lite")
BEFORE = 112 * 112 * 3 + 7 * 7 * 112 * 2  # bytes per frame: the frame, and its map in 16 bits


def run_command(name: str, run: str, folder: Path, work: Path) -> int:
    """Do what a command does until its embeddings are there and used; return the frames."""
    from cycleback.alignment import align
    from cycleback.applications import transfer_labels
    from cycleback.runs import embed_videos

    embeddings = embed_videos(run, folder, cache=work / "cache")
    first, second, *_ = embeddings.names
    if name == "sync":
        align(embeddings[first], embeddings[second])
    elif name == "transfer":
        transfer_labels(embeddings, {first: {"start": 3}})
    else:
        from cycleback.search import find, make_frame_query
        from cycleback.search.corpus import Corpus

        corpus = Corpus.of_set(embeddings)
        find(corpus, make_frame_query(corpus, first, frame=5))
    return embeddings.num_frames


def measure_inside(name: str, run: str, folder: Path, work: Path) -> dict[str, float]:
    """Return the seconds of the processors that a command takes once everything is imported."""
    import cycleback.applications
    import cycleback.runs
    import cycleback.search  # noqa: F401

    before = time.process_time()
    frames = run_command(name, run, folder, work)
    return {"cpu_s": round(time.process_time() - before, 2), "frames": frames}


def measure(name: str, run: str, folder: Path) -> dict[str, float]:
    """Run a command twice with a new cache."""
    with tempfile.TemporaryDirectory() as work:
        words = [sys.executable, __file__, "--inside", name, run, str(folder), work]
        first, second = (
            json.loads(
                subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
            )
            for _ in range(2)
        )
        size = sum(path.stat().st_size for path in Path(work).rglob("*") if path.is_file())
    clips = sum(path.stat().st_size for path in folder.glob("*.mp4"))
    return {
        "first_cpu_s": first["cpu_s"],
        "second_cpu_s": second["cpu_s"],
        "first_over_second": round(first["cpu_s"] / second["cpu_s"], 1),
        "cache_mb_per_mb_of_clips": round(size / clips, 2),
        "before_mb_per_mb_of_clips": round(first["frames"] * BEFORE / clips, 1),
    }


def measure_checksum(megabytes: int = 64) -> dict[str, float]:
    """Return what comparing the checksum of an array costs beside copying it into memory."""
    from cycleback import arrays

    shares = []
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "a.npy"
        noise = np.random.default_rng(0).integers(0, 256, megabytes << 20, dtype=np.uint8)
        arrays.write_array(path, noise, with_checksum=True)
        for _ in range(5):
            arrays._VERIFIED.clear()
            start = time.process_time()
            mapped = arrays.open_array(path, np.uint8, (None,))
            opened = time.process_time()
            np.array(mapped)
            shares.append((opened - start) / (time.process_time() - opened))
    return {"checksum_over_reading": round(median(shares), 2)}


def main() -> None:
    """Measure, print and write."""
    from cycleback.synth import write_dataset

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--videos", type=int, default=6)
    parser.add_argument("--size", type=int, default=160, help="pixels of a side (default: 160)")
    parser.add_argument("--commands", nargs="*", default=COMMANDS, help="measure only these")
    parser.add_argument("--inside", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this .json file")
    arguments = parser.parse_args()
    if arguments.inside:
        name, run, folder, work = arguments.inside
        print(json.dumps(partial(measure_inside, name, run, Path(folder), Path(work))()))
        return
    result = {}
    checksum = measure_checksum()
    print(checksum)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "videos"
        write_dataset(folder, videos=arguments.videos, seed=0, size=arguments.size, jobs=1)
        for run in RUNS:
            for name in arguments.commands:
                result[f"{run} {name}"] = found = measure(name, run, folder)
                print(f"{run:<12}{name:<10}{found}", flush=True)
    if arguments.output is not None:
        write_json(arguments.output, {"videos": arguments.videos, **checksum, "runs": result}, overwrite=True)


if __name__ == "__main__":
    main()
