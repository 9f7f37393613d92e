"""Search many frames with the exact index and with its LanceDB table: recall, time, memory, size on disk.

The frames are made from real embeddings, so that they lie as close together as those of videos do: each video
follows the path of a real one at its own pace, shifted by a difference between two real videos, with a random
walk and noise of the size of a real step. `--source` is an embedding set of real videos, made by `cycleback
embed`; without it 12 videos are rendered and embedded. Principal components bring it to the wanted size. The
queries are frames of videos that are not in the index.

Both search with `find` for the ten best videos: of all frames, of one action (a tenth), of one golfer (a
twentieth), and of a fifth of each video by time. Recall@10 is the share of the hits of the exact search that
the table finds, too. Each part runs in a process of its own, and its result is written at once, so that an
interrupted comparison resumes with the next part. Memory is the peak of the process, with mapped files.

Example:
    pip install 'cycleback[search]'
    python benchmarks/search_backends.py --rows 1000000 --size 128 --source golf.emb
    python benchmarks/search_backends.py --rows 10000000 --size 64 --source golf.emb --work /tmp/search
    python benchmarks/search_backends.py --sweep --rows 1000000 --size 128     # how the settings were chosen
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.arrays import write_rows
from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.folder import SetIndex, VideoEntry, new_folder, write_index
from cycleback.files import write_json
from cycleback.provenance import commit, package_versions
from cycleback.search import Filter, Hit, SearchIndex, backend, find, make_vector_query, open_backend
from cycleback.search.hits import Backend
from cycleback.search.index import IndexedVideo, Manifest

FRAMES, FPS, ACTIONS, GOLFERS, HITS = 200, 30, 10, 20, 10
QUERIES = {"all": 100, "action": 30, "tag": 30, "time": 30}
FILTERS = {
    "all": Filter(),
    "action": Filter(action="action3"),
    "tag": Filter(tags={"golfer": "golfer7"}),
    "time": Filter(seconds=(2.0, 2.0 + FRAMES / FPS / 5)),
}
PARTS = ("data", "exact", "build", "lancedb")
RESULTS = Path(__file__).resolve().parents[1] / "results" / "search_backends.json"
Floats = NDArray[np.float32]


def read_source(source: Path | None, size: int, folder: Path) -> list[Floats]:
    """Return the embeddings (N, size) of real videos, by their principal components."""
    if source is None:
        from cycleback.runs import embed_videos
        from cycleback.synth import write_dataset

        write_dataset(folder / "clips", videos=12, size=96, jobs=1)
        videos = embed_videos("pretrained", folder / "clips")
    else:
        videos = EmbeddingSet.load(source)
    rows = np.concatenate([videos[name] for name in videos]).astype(np.float64)
    rows -= rows.mean(axis=0)
    _, _, axes = np.linalg.svd(rows[:: max(1, len(rows) // 4096)], full_matrices=False)
    return [((videos[name] - rows.mean(axis=0)) @ axes[:size].T).astype(np.float32) for name in videos]


def make_videos(real: list[Floats], count: int, seed: int) -> Iterator[Floats]:
    """Draw the embeddings (FRAMES, size) of `count` videos like the real ones."""
    chance = np.random.default_rng(seed)
    size = real[0].shape[1]
    means = np.stack([video.mean(axis=0) for video in real])
    steps = np.concatenate([np.diff(video, axis=0) for video in real]).std(axis=0)
    for _ in range(count):
        path = real[chance.integers(len(real))]
        pace = chance.uniform(0.3, 1, FRAMES).cumsum()
        place = (pace - pace[0]) / (pace[-1] - pace[0]) * (len(path) - 1)
        low = np.minimum(place.astype(int), len(path) - 2)
        part = (place - low)[:, None]
        one, other = means[chance.integers(len(real), size=2)]
        walk = chance.normal(0, 0.3, (FRAMES, size)).cumsum(axis=0) + chance.normal(0, 0.5, (FRAMES, size))
        video = path[low] * (1 - part) + path[low + 1] * part + (one - other) * chance.uniform(0, 0.5)
        yield (video + walk * steps).astype(np.float32)


def write_data(work: Path, rows: int, size: int, source: Path | None) -> dict[str, float]:
    """Write an index of `rows` frames in one shard, and the queries."""
    with tempfile.TemporaryDirectory() as folder:
        real = read_source(source, size, Path(folder))
    index, count = work / "index", rows // FRAMES
    times = np.arange(FRAMES) / FPS
    entries = [VideoEntry(f"v{i:07d}", i * FRAMES, FRAMES, f"action{i % ACTIONS}") for i in range(count)]
    with new_folder(index / "shard-00001", overwrite=True) as draft:
        with (
            write_rows(draft / "embeddings.npy", np.float32, (size,)) as add_rows,
            write_rows(draft / "times.npy", np.float64, ()) as add_times,
        ):
            for video in make_videos(real, count, seed=1):
                add_rows(video)
                add_times(times)
        arrays = (np.load(draft / f"{name}.npy", mmap_mode="r") for name in ("embeddings", "times"))
        write_index(draft, SetIndex.build(entries, event_names=[], encoder=None), *arrays)
    golfers = {entry.name: {"golfer": f"golfer{i * 7 % GOLFERS}"} for i, entry in enumerate(entries)}
    known = {name: IndexedVideo(name, "shard-00001", name, tags=tags) for name, tags in golfers.items()}
    Manifest(None, None, size, known, next_shard=2).write(index)
    queries = [video[FRAMES // 3] for video in make_videos(real, max(QUERIES.values()), seed=2)]
    np.save(work / "queries.npy", np.stack(queries))
    return {"disk_gb": gigabytes(index / "shard-00001")}


def search(work: Path, name: str) -> dict[str, Any]:
    """Search with each filter; milliseconds, peak memory, and recall against what was found exactly."""
    start = time.perf_counter()
    index = SearchIndex.load(work / "index")
    opened = open_backend(name, index)
    measured: dict[str, Any] = {}
    for kind, where in FILTERS.items():
        found, measured[kind] = time_queries(
            index, opened, where, np.load(work / "queries.npy")[: QUERIES[kind]]
        )
        if kind == "all":
            measured["first_s"] = round(measured[kind].pop("ready") - start, 2)
        measured[kind].pop("ready", None)
        file = work / f"{kind}.json"
        if name == "exact":
            file.write_text(json.dumps(found))
        else:
            measured[kind]["recall_at_10"] = recall(found, json.loads(file.read_text()))
    return {**measured, "memory_gb": peak_gb()}


def time_queries(
    index: SearchIndex, opened: Backend | None, where: Filter, queries: Floats
) -> tuple[list[list[str]], dict[str, float]]:
    """Time every query after three untimed ones; returns the hits of each, and the times."""
    found, seconds, ready = [], [], 0.0
    for number, query in enumerate([*queries[:3], *queries]):
        start = time.perf_counter()
        hits = find(index.corpus, make_vector_query(query), k=HITS, where=where, backend=opened)
        seconds.append(time.perf_counter() - start)
        ready = ready or time.perf_counter()
        found.append([name_hit(hit) for hit in hits] if number >= 3 else [])
    p50, p99 = np.percentile(seconds[3:], [50, 99]) * 1e3
    return found[3:], {"p50_ms": round(float(p50), 1), "p99_ms": round(float(p99), 1), "ready": ready}


def name_hit(hit: Hit) -> str:
    """Name a frame."""
    return f"{hit.video}#{hit.frame}"


def recall(found: list[list[str]], exact: list[list[str]]) -> float:
    """Return the share of the exact hits that were found."""
    shared = [len({*some} & {*all_}) / len(all_) for some, all_ in zip(found, exact, strict=True)]
    return round(float(np.mean(shared)), 4)


def build(work: Path) -> dict[str, float]:
    """Build the table; seconds, peak memory and size on disk."""
    index = SearchIndex.load(work / "index")
    start = time.perf_counter()
    open_backend("lancedb", index)
    seconds = round(time.perf_counter() - start, 1)
    return {"build_s": seconds, "memory_gb": peak_gb(), "disk_gb": gigabytes(work / "index" / "lance-1")}


def sweep(work: Path) -> None:
    """Print recall and time of several settings."""
    for probes in (8, 16, 32, 64):
        for refined in (1, 2, 4):
            backend.CELLS_PROBED, backend.REFINED = probes, refined
            every = search(work, "lancedb")
            print(
                f"{probes} cells, {refined} times refined:",
                {kind: every[kind] for kind in FILTERS},
                flush=True,
            )


def peak_gb() -> float:
    """Largest memory of this process so far, mapped files included."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)


def gigabytes(path: Path) -> float:
    """Size of a folder."""
    return round(sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 2**30, 2)


def run_part(part: str, work: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Measure one part in this process."""
    if part == "data":
        return write_data(work, args.rows, args.size, args.source)
    return build(work) if part == "build" else search(work, part)


def compare(work: Path, args: argparse.Namespace) -> None:
    """Measure each part that is not in the results yet, in a process of its own."""
    results: dict[str, Any] = json.loads(args.out.read_text()) if args.out.exists() else {}
    entry = results.setdefault(f"{args.rows}x{args.size}", {})
    entry |= {
        "commit": commit(),
        "cores": os.cpu_count(),
        "source": args.source.stem if args.source else "rendered",
    }
    entry["versions"] = package_versions(("numpy", "lancedb"))
    here = (work / "queries.npy").exists()
    for part in [part for part in args.parts if not (here and part in entry)]:
        print(f"{part} of {args.rows} x {args.size} ...", flush=True)
        words = ["--rows", str(args.rows), "--size", str(args.size), "--work", str(work), "--part", part]
        words += ["--source", str(args.source)] if args.source else []
        done = subprocess.run(
            [sys.executable, __file__, *words], check=True, stdout=subprocess.PIPE, text=True
        )
        entry[part] = json.loads(done.stdout.splitlines()[-1])
        write_json(args.out, results, overwrite=True)


def show(output: Path) -> None:
    """Print the results as the table of docs/guides/search.md."""
    heads = (
        "frames",
        "search",
        "build, s",
        "disk, GB",
        "memory, GB",
        "p50 / p99, ms",
        "filtered, ms",
        "recall@10",
    )
    print(f"| {' | '.join(heads)} |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for data, entry in json.loads(output.read_text()).items():
        rows, size = map(int, data.split("x"))
        for name in [name for name in ("exact", "lancedb") if name in entry]:
            each, made = entry[name], entry.get("build", {})
            filters = " / ".join(f"{each[kind]['p50_ms']:.0f}" for kind in FILTERS if kind != "all")
            shares = [each[kind].get("recall_at_10", 1.0) for kind in FILTERS]
            cells = [
                f"{rows / 1e6:g} M × {size}",
                name,
                "–" if name == "exact" else f"{made['build_s']:.0f}",
                f"{entry['data']['disk_gb'] if name == 'exact' else made['disk_gb']:.1f}",
                f"{each['memory_gb']:.1f}",
                f"{each['all']['p50_ms']:.0f} / {each['all']['p99_ms']:.0f}",
                filters,
                f"{shares[0]:.3f}; {' / '.join(f'{share:.3f}' for share in shares[1:])}",
            ]
            print(f"| {' | '.join(cells)} |")


def main() -> None:
    """Compare, or measure one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="a multiple of 200")
    parser.add_argument("--size", type=int, default=128, help="numbers per row")
    parser.add_argument("--source", type=Path, help="embedding set of real videos (default: rendered ones)")
    parser.add_argument("--work", type=Path, help="folder for the data, kept (default: a temporary one)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="measure these parts only")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--sweep", action="store_true", help="print recall and time of several settings")
    parser.add_argument("--show", action="store_true", help="print the table of the results alone")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part:
        print(json.dumps(run_part(args.part, args.work, args)))
        return
    if not args.show:
        with tempfile.TemporaryDirectory() as folder:
            work = args.work or Path(folder)
            work.mkdir(parents=True, exist_ok=True)
            compare(work, args)
            if args.sweep:
                sweep(work)
    show(args.out)


if __name__ == "__main__":
    main()
