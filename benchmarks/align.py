"""Dynamic time warping: ours against a plain loop, many pairs against one by one, and an hour of video.

dtw_ratio_500       the path through a 500 x 500 matrix: a loop over cells in Python with numpy arrays, as it
                    is usually written, over ours. Processor time, one thread.
numpy_ratio_500     the same without numba.
batched_ratio       each of many videos against all others: `squared_distances` and `dtw_path` for each pair,
                    over `dtw_to_many` for each video. Wall time, all processors.
peak_mib_hour_long  `align` of two videos of 108,000 frames, D = 32 (an hour at 30 fps): most memory of a
                    process above what it held when the videos were ready. seconds_hour_long: its wall time.

Compiling happens once, is kept on disk, and is not counted.

    python benchmarks/align.py --json
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy's linear algebra when it is imported

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import align, dtw_path, dtw_to_many, squared_distances
from cycleback.alignment.bounds import price_ends, whole_band
from cycleback.alignment.dtw import sweep_diagonals, trace_back, warp_blocks

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def loop_path(cost: Floats) -> Indices:
    """The baseline: accumulate cell by cell, then walk back; of equals both, then a, then b."""
    num_rows, num_columns = cost.shape
    total = np.full((num_rows + 1, num_columns + 1), np.inf)
    total[0, 0] = 0
    for i in range(1, num_rows + 1):
        for j in range(1, num_columns + 1):
            total[i, j] = cost[i - 1, j - 1] + min(total[i - 1, j - 1], total[i - 1, j], total[i, j - 1])
    i, j, path = num_rows, num_columns, []
    while i > 0 and j > 0:
        path.append((i - 1, j - 1))
        step = int(np.argmin([total[i - 1, j - 1], total[i - 1, j], total[i, j - 1]]))
        i, j = i - (step != 2), j - (step != 1)
    return np.array(path[::-1])


def numpy_path(cost: Floats) -> Indices:
    """Ours where numba is not installed."""
    kernels = sweep_diagonals, trace_back
    return warp_blocks([(0, 0, cost)], whole_band(*cost.shape), price_ends(*cost.shape), kernels=kernels)[0]


def walks(videos: int, frames: int, size: int) -> list[Floats]:
    """Videos (frames, size) along one random walk, each at its own pace and with noise."""
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(frames, size)), axis=0)
    paces = [np.sort(rng.integers(0, frames, frames)) for _ in range(videos)]
    return [walk[pace] + rng.normal(size=walk.shape) for pace in paces]


def seconds(run: Callable[[], Any], *, repeat: int, clock: Callable[[], float] = time.process_time) -> float:
    """Least time of several runs, after one that does not count."""
    run()
    times = []
    for _ in range(repeat):
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)


def time_in_turns(*runs: Callable[[], Any], repeat: int) -> list[float]:
    """Least wall time of each, taken in turns so that a busy moment hits all alike."""
    rounds = [[seconds(run, repeat=1, clock=time.perf_counter) for run in runs] for _ in range(repeat)]
    return [min(times) for times in zip(*rounds, strict=True)]


def single(frames: int = 500) -> dict[str, Any]:
    """One pair, on one thread."""
    a, b = walks(2, frames, 128)
    cost = squared_distances(a, b)
    ours = seconds(lambda: dtw_path(cost), repeat=20)
    vectorised = seconds(lambda: numpy_path(cost), repeat=5)
    start = time.process_time()
    expected = loop_path(cost)
    loop = time.process_time() - start
    return {
        "dtw_ratio_500": round(loop / ours, 1),
        "numpy_ratio_500": round(loop / vectorised, 1),
        "dtw_ms_500": round(1000 * ours, 3),
        "same_path": np.array_equal(dtw_path(cost), expected) and np.array_equal(numpy_path(cost), expected),
    }


def batched(videos: int = 60, frames: int = 60, size: int = 32) -> dict[str, Any]:
    """Every video against all others."""
    all_videos = walks(videos, frames, size)

    def one_by_one() -> list[Indices]:
        return [dtw_path(squared_distances(a, b)) for a in all_videos for b in all_videos]

    def together() -> list[Indices]:
        return [path for a in all_videos for path in dtw_to_many(a, all_videos)]

    same = all(np.array_equal(x, y) for x, y in zip(one_by_one(), together(), strict=True))
    slow, fast = time_in_turns(one_by_one, together, repeat=8)
    pairs = videos * videos
    return {
        "batched_ratio": round(slow / fast, 2),
        "batched_pairs_per_second": round(pairs / fast),
        "batched_same_paths": same,
    }


def hour_long(frames: int) -> dict[str, Any]:
    """Measured in a process of its own, which this same file runs."""
    command = [sys.executable, __file__, "--long-frames", str(frames), "--child"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def hour_long_child(frames: int, size: int = 32) -> dict[str, Any]:
    """Align two long videos; the truth is known, so is the error."""
    rng = np.random.default_rng(0)
    a = np.cumsum(rng.normal(size=(frames, size)), axis=0).astype(np.float32)
    pace = np.sort(rng.integers(0, frames, frames))
    b = a[pace] + rng.normal(size=a.shape).astype(np.float32)
    align(a[:50], b[:50], method="dtw")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    alignment = align(a, b, method="dtw")
    error = np.abs(pace[alignment.indices] - np.arange(frames))
    return {
        "peak_mib_hour_long": round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, 1),
        "seconds_hour_long": round(time.perf_counter() - start, 1),
        "median_error_hour_long": float(np.median(error)),
    }


def main() -> None:
    """Run all three, print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--long-frames", type=int, default=108_000)
    parser.add_argument("--json", action="store_true", help="print only one line of JSON")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(hour_long_child(args.long_frames)))
        return
    result = {**single(), **batched(), **hour_long(args.long_frames)}
    if not args.json:
        for name, value in result.items():
            print(f"{name:26s} {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
