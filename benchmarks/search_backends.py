"""Compare approximate search libraries on frames that move as video embeddings do: faiss and LanceDB.

Each library keeps the rows uncompressed in about sqrt(rows) cells and searches the 32 cells nearest to a
query.
Measured per library: recall@10 against the exact search, milliseconds per query (p50, p99 and the first one),
seconds to build, peak memory to build and to search, and size on disk.

The data are videos of 200 frames: each follows the path of one of 50 actions at its own pace, shifted, with a
random walk of its own. The 200 queries are frames of videos that are not in the data.

Each part runs in a process of its own, and its result is written at once, so that an interrupted comparison
resumes with the next part. Compare the libraries with each other; the times depend on the machine.

Example:
    pip install faiss-cpu lancedb
    python benchmarks/search_backends.py --rows 1000000 --size 128
    python benchmarks/search_backends.py --rows 10000000 --size 64 --work /tmp/search
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.files import write_json
from cycleback.provenance import commit, package_versions

FRAMES, ACTIONS, WAVES, QUERIES, HITS = 200, 50, 6, 200, 10
CELLS_PROBED, TRAINING_ROWS, BLOCK_ROWS = 32, 64, 20_000
MARKS = {"build": "build_s", "search": "recall_at_10"}  # step of a library -> a figure that shows it is done
RESULTS = Path(__file__).resolve().parents[1] / "results" / "search_backends.json"
Floats = NDArray[np.float32]
Search = Callable[[Floats], NDArray[np.int64]]  # query (D,) -> rows (HITS,), nearest first


def make_videos(count: int, size: int, seed: int) -> Iterator[Floats]:
    """Draw the embeddings (FRAMES, size) of `count` videos."""
    actions = np.random.default_rng(0)
    centres = actions.normal(size=(ACTIONS, size))
    waves = actions.normal(size=(ACTIONS, 2 * WAVES, size)) / np.tile(np.arange(1, WAVES + 1), 2)[:, None]
    generator = np.random.default_rng(seed)
    for _ in range(count):
        action = generator.integers(ACTIONS)
        pace = generator.uniform(0.2, 1, FRAMES).cumsum()[:, None] / FRAMES * np.arange(1, WAVES + 1) * np.pi
        path = np.concatenate([np.sin(pace), np.cos(pace)], axis=1) @ waves[action]  # (FRAMES, size)
        walk = generator.normal(0, 0.03, (FRAMES, size)).cumsum(axis=0) + generator.normal(0, 0.3, size)
        yield (centres[action] + path + walk).astype(np.float32)


def open_rows(work: Path, size: int) -> Floats:
    """Map the rows (R, size) from disk."""
    return np.memmap(work / "rows.bin", dtype=np.float32, mode="r").reshape(-1, size)


def write_data(work: Path, rows: int, size: int) -> dict[str, float]:
    """Write the rows and the queries."""
    with (work / "rows.bin").open("wb") as file:
        for video in make_videos(rows // FRAMES, size, seed=1):
            file.write(video.tobytes())
    queries = [video[FRAMES // 3] for video in make_videos(QUERIES, size, seed=2)]
    np.save(work / "queries.npy", np.stack(queries))
    return {"disk_gb": gigabytes(work / "rows.bin")}


def search_exactly(work: Path, rows: int, size: int) -> dict[str, float]:
    """Find the nearest rows of every query by comparing all of them."""
    data = open_rows(work, size)
    norms = np.concatenate([np.einsum("rd,rd->r", block, block) for block in blocks(data)])

    def search(query: Floats) -> NDArray[np.int64]:
        products = np.concatenate([block @ query for block in blocks(data)])
        distances = norms - 2 * products
        near = np.argpartition(distances, 4 * HITS)[: 4 * HITS]
        apart = data[near].astype(np.float64) - query  # the product rounds; rank the nearest precisely
        return near[np.argsort(np.einsum("nd,nd->n", apart, apart))[:HITS]]

    found, times = time_queries(search, np.load(work / "queries.npy"), warm_up=1)
    np.save(work / "exact.npy", found)
    return {**times, "search_memory_gb": peak_gb()}


def build_faiss(work: Path, rows: int, size: int) -> None:
    """Build the cells in memory and write them to one file."""
    import faiss

    data, cells = open_rows(work, size), int(rows**0.5)
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(size), size, cells)
    index.train(np.ascontiguousarray(data[:: max(1, rows // (cells * TRAINING_ROWS))]))
    for block in blocks(data):
        index.add(np.ascontiguousarray(block))
    faiss.write_index(index, str(work / "faiss"))


def open_faiss(work: Path) -> Search:
    """Open the faiss file, mapped into memory."""
    import faiss

    index = faiss.read_index(str(work / "faiss"), faiss.IO_FLAG_MMAP)
    index.nprobe = CELLS_PROBED
    return lambda query: index.search(query[None], HITS)[1][0]


def build_lancedb(work: Path, rows: int, size: int) -> None:
    """Write the table, then its cells."""
    import lancedb
    import pyarrow
    from lancedb.index import IvfFlat

    vectors = pyarrow.list_(pyarrow.float32(), size)
    schema = pyarrow.schema([("row", pyarrow.int64()), ("vector", vectors)])

    def batches() -> Iterator[Any]:
        start = 0
        for block in blocks(open_rows(work, size)):
            numbers = pyarrow.array(np.arange(start, start + len(block)))
            flat = pyarrow.array(np.ascontiguousarray(block).ravel())
            columns = [numbers, pyarrow.FixedSizeListArray.from_arrays(flat, size)]
            yield pyarrow.record_batch(columns, schema=schema)
            start += len(block)

    table = lancedb.connect(str(work / "lancedb")).create_table("frames", data=batches(), schema=schema)
    table.create_index("vector", config=IvfFlat(distance_type="l2", num_partitions=int(rows**0.5)))


def open_lancedb(work: Path) -> Search:
    """Open the table on disk."""
    import lancedb

    table = lancedb.connect(str(work / "lancedb")).open_table("frames")

    def search(query: Floats) -> NDArray[np.int64]:
        found = table.search(query).nprobes(CELLS_PROBED).limit(HITS).select(["row", "_distance"])
        return found.to_arrow()["row"].to_numpy()

    return search


BUILD = {"faiss": build_faiss, "lancedb": build_lancedb}
OPEN = {"faiss": open_faiss, "lancedb": open_lancedb}


def measure_build(name: str, work: Path, rows: int, size: int) -> dict[str, float]:
    """Build a library's index anew; seconds, peak memory and size on disk."""
    target = work / name
    shutil.rmtree(target, ignore_errors=True) if target.is_dir() else target.unlink(missing_ok=True)
    start = time.perf_counter()
    BUILD[name](work, rows, size)
    seconds = round(time.perf_counter() - start, 1)
    return {"build_s": seconds, "build_memory_gb": peak_gb(), "disk_gb": gigabytes(target)}


def measure_search(name: str, work: Path) -> dict[str, float]:
    """Search for every query; recall@10, milliseconds and peak memory."""
    exact = np.load(work / "exact.npy")
    found, times = time_queries(OPEN[name](work), np.load(work / "queries.npy"))
    shared = [len({*some} & {*all_}) / HITS for some, all_ in zip(found, exact, strict=True)]
    return {"recall_at_10": round(float(np.mean(shared)), 4), **times, "search_memory_gb": peak_gb()}


def time_queries(
    search: Search, queries: Floats, *, warm_up: int = QUERIES
) -> tuple[NDArray[np.int64], dict[str, float]]:
    """Time every query after `warm_up` untimed ones; returns rows (QUERIES, HITS) and the times."""
    start = time.perf_counter()
    search(queries[0])
    first = time.perf_counter() - start
    for query in queries[1:warm_up]:
        search(query)
    found, seconds = [], []
    for query in queries:
        start = time.perf_counter()
        found.append(search(query))
        seconds.append(time.perf_counter() - start)
    p50, p99 = np.percentile(seconds, [50, 99]) * 1e3
    return np.stack(found), {
        "p50_ms": round(float(p50), 2),
        "p99_ms": round(float(p99), 2),
        "first_ms": round(first * 1e3, 2),
    }


def blocks(rows: Floats) -> Iterator[Floats]:
    """Split the rows into blocks that fit the cache of a processor or nearly so."""
    return (rows[start : start + BLOCK_ROWS] for start in range(0, len(rows), BLOCK_ROWS))


def peak_gb() -> float:
    """Largest memory of this process so far, mapped files included."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)


def gigabytes(path: Path) -> float:
    """Size of a file or folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return round(sum(file.stat().st_size for file in files) / 2**30, 2)


def run_part(part: str, work: Path, rows: int, size: int) -> dict[str, float]:
    """Measure one part in this process."""
    name, _, step = part.partition("-")
    if name == "data":
        return write_data(work, rows, size)
    if name == "exact":
        return search_exactly(work, rows, size)
    return measure_build(name, work, rows, size) if step == "build" else measure_search(name, work)


def compare(work: Path, rows: int, size: int, output: Path) -> None:
    """Measure each part that is not in `output` yet, in a process of its own."""
    results: dict[str, Any] = json.loads(output.read_text()) if output.exists() else {}
    entry = results.setdefault(f"{rows}x{size}", {"commit": commit(), "cores": os.cpu_count()})
    entry["versions"] = package_versions(("numpy", "faiss-cpu", "lancedb"))
    parts = [f"{name}-{step}" for name in BUILD for step in MARKS]
    missing = [
        part for part in parts if MARKS[part.partition("-")[2]] not in entry.get(part.partition("-")[0], {})
    ]
    inputs = {"data": work / "queries.npy", "exact": work / "exact.npy"}
    for part in [*(part for part, file in inputs.items() if missing and not file.exists()), *missing]:
        print(f"{part} of {rows} x {size} ...", flush=True)
        command = [sys.executable, __file__, "--rows", str(rows), "--size", str(size), "--work", str(work)]
        done = subprocess.run([*command, "--part", part], check=True, stdout=subprocess.PIPE, text=True)
        name = part.partition("-")[0]
        entry[name] = {**entry.get(name, {}), **json.loads(done.stdout)}
        write_json(output, results, overwrite=True)


def show(output: Path) -> None:
    """Print the results as a table."""
    for data, entry in json.loads(output.read_text()).items():
        print(f"\n{data} (rows x size)")
        columns = list(entry["lancedb"])
        print("  ".join(["          ", *columns]))
        for name in ("exact", *BUILD):
            cells = [str(entry[name].get(column, "")).rjust(len(column)) for column in columns]
            print("  ".join([name.ljust(10), *cells]))


def main() -> None:
    """Compare, or measure one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="a multiple of 200")
    parser.add_argument("--size", type=int, default=128, help="numbers per row")
    parser.add_argument("--work", type=Path, help="folder for the data, kept (default: a temporary one)")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part:
        print(json.dumps(run_part(args.part, args.work, args.rows, args.size)))
        return
    with tempfile.TemporaryDirectory() as folder:
        work = args.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        compare(work, args.rows, args.size, args.out)
    show(args.out)


if __name__ == "__main__":
    main()
