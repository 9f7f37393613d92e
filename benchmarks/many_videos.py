"""Measure whether commands stay linear with thousands of short videos: time, memory and open files.

Folders of tiny rendered videos, all different in content, go through what `data check`, `embed`,
`search add` and `embed --on local` do, each in a process of its own with an empty cache. The encoder is
the stream motion, which needs no network. Times are those of the processors, of all threads; ratios compare
the cost per video with that of the smallest folder.

    python benchmarks/many_videos.py -o results/many_videos.json
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cycleback.files import write_json
from cycleback.video import write_video

SIDE, FRAMES, TEMPLATES = 64, 8, 8
COMMANDS = ("check", "embed", "embed again", "search", "corpus", "corpus again")


def write_videos(folder: Path, count: int) -> None:
    """Write tiny videos: a square moves in each, and a free box at its end makes every file another one."""
    folder.mkdir(parents=True)
    contents = []
    for number in range(TEMPLATES):
        frames = np.full((FRAMES, SIDE, SIDE, 3), 40, dtype=np.uint8)
        for frame in range(FRAMES):
            left = 4 + (3 + number % 4) * frame
            frames[frame, 20 : 36 + number, left : left + 16] = 200
        path = write_video(folder / f"template{number}.mp4", iter(frames), fps=25)
        contents.append(path.read_bytes())
        path.unlink()
    for number in range(count):
        box = (16).to_bytes(4, "big") + b"free" + number.to_bytes(8, "big")
        (folder / f"clip_{number:05d}.mp4").write_bytes(contents[number % TEMPLATES] + box)


def write_run(folder: Path) -> None:
    """Write a run folder whose encoder is the untrained stream motion."""
    from cycleback.models import save_encoder
    from cycleback.recipe import RECIPE_FILE, Recipe, build_encoder, recipe_toml
    from cycleback.recipe.sections import EncoderSettings

    if folder.exists():
        return
    recipe = Recipe(encoder=EncoderSettings(streams=("motion",), embedder="pooled"))
    folder.mkdir()
    (folder / RECIPE_FILE).write_text(recipe_toml(recipe))
    save_encoder(folder, build_encoder(recipe), tomllib.loads(recipe_toml(recipe))["encoder"])


def run_command(name: str, folder: Path, work: Path) -> None:
    """Do what a command does."""
    from cycleback.data import check_dataset, read_dataset
    from cycleback.embeddings import EmbeddingSet
    from cycleback.runs import embed_videos
    from cycleback.runs.folder import build_pretrained
    from cycleback.search import SearchIndex, add_videos, find, make_query

    if name == "check":
        check_dataset(read_dataset(folder))
    elif name.startswith("corpus"):
        from cycleback.corpus import embed_corpus

        write_run(work / "run")
        # worker processes are not counted: what must stay small is the process that hands out
        report = embed_corpus(folder, work / "corpus", run=work / "run", workers=1, cache=work / "cache")
        assert not report.failed
    elif name.startswith("embed"):
        encoder = build_pretrained(("motion",))
        embed_videos(encoder, folder, cache=work / "cache").save(work / "set", overwrite=True)
    else:
        add_videos(work / "index", EmbeddingSet.load(work / "set"))
        corpus = SearchIndex.load(work / "index").corpus
        assert len(find(corpus, make_query(corpus, "clip_00000#4"))) == 8


def measure(call: Callable[[], None]) -> dict[str, float]:
    """Return the seconds of the processors, the peak memory, and the most files that were open at once."""
    most, stop = 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not stop.wait(0.02):
            most = max(most, len(os.listdir("/proc/self/fd")))

    watcher = threading.Thread(target=watch)
    watcher.start()
    before = time.process_time()
    try:
        call()
        seconds = time.process_time() - before
    finally:
        stop.set()
        watcher.join()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu_s": round(seconds, 2), "peak_mb": round(peak), "open_files": most}


def measure_folder(count: int, work: Path, commands: Sequence[str]) -> dict[str, dict[str, float]]:
    """Measure commands on a folder of so many videos, each in a process of its own."""
    write_videos(work / "videos", count)
    found = {}
    for name in commands:
        words = [sys.executable, __file__, "--inside", name, "--work", str(work)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        found[name] = json.loads(done.stdout.splitlines()[-1])
        print(f"{count:>6} videos  {name:<12} {found[name]}", flush=True)
    return found


def summarize(runs: dict[int, dict[str, dict[str, float]]]) -> dict[str, Any]:
    """Add the cost per video of each command over that of the smallest folder."""
    first, last = min(runs), max(runs)
    ratios = {
        name: round(row["cpu_s"] / last / (runs[first][name]["cpu_s"] / first), 2)
        for name, row in runs[last].items()
    }
    return {"runs": {str(count): run for count, run in runs.items()}, "cost_per_video_ratio": ratios}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--counts", type=int, nargs="+", default=[1250, 2500, 5000], help="videos of each folder"
    )
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this .json file")
    arguments = parser.parse_args()
    if arguments.inside:
        folder = arguments.work / "videos"
        print(json.dumps(measure(partial(run_command, arguments.inside, folder, arguments.work))))
        return
    runs = {}
    for count in arguments.counts:
        with tempfile.TemporaryDirectory() as work:
            runs[count] = measure_folder(count, Path(work), arguments.commands)
        result = summarize(runs)
        if arguments.output is not None:
            write_json(arguments.output, result, overwrite=True)  # after each folder: the largest takes long
    print(json.dumps(result["cost_per_video_ratio"]))


if __name__ == "__main__":
    main()
