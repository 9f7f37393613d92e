"""Measure what the feature cache of a frozen base saves: updates from cached maps, or from frames.

Both train the embedder of the recipe `fast` on the same rendered clips, without augmentation, in turns, on
the CPU. Times are medians over rounds of one run; computing the maps once is timed beside them.

    python benchmarks/feature_cache.py --json
"""

import argparse
import copy
import json
import statistics
import time

import torch
from torch import Tensor

from cycleback.models import fast_inference
from cycleback.recipe import build_encoder, load_recipe
from cycleback.synth import render_video
from speed_loop import whole_loop

CPU = torch.device("cpu")


def measure(*, videos: int, updates: int, rounds: int, size: int) -> dict[str, float]:
    """Milliseconds per update of both ways, and the cost of computing the maps once."""
    recipe = load_recipe("fast", [f"data.frame_size={size}"])
    clips = [torch.from_numpy(render_video(seed, size=size).frames) for seed in range(videos)]  # (N, H, W, 3)
    base = fast_inference(copy.deepcopy(build_encoder(recipe).base))
    start = time.perf_counter()
    maps: list[Tensor] = [base(clip.movedim(-1, 1)).half() for clip in clips]  # (N, F, h, w)
    extracting = time.perf_counter() - start
    times: dict[str, list[float]] = {"cached": [], "base_each_time": []}
    each = max(6, updates // rounds)
    for _ in range(rounds):
        for name, inputs in (("cached", maps), ("base_each_time", clips)):
            times[name].append(whole_loop(recipe, inputs, device=CPU, updates=each, skipped=2))
    cached, repeated = (statistics.median(times[name]) for name in ("cached", "base_each_time"))
    return {
        "feature_cache_ratio": round(repeated / cached, 2),
        "cached_ms": round(cached, 2),
        "base_each_time_ms": round(repeated, 2),
        "maps_ms_a_frame": round(1000 * extracting / sum(map(len, clips)), 3),
        "updates": each * rounds,
        "threads": torch.get_num_threads(),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--videos", type=int, default=6)
    parser.add_argument("--updates", type=int, default=30, help="updates of each way (default: 30)")
    parser.add_argument(
        "--rounds", type=int, default=3, help="rounds the updates are split into (default: 3)"
    )
    parser.add_argument("--size", type=int, default=112, help="pixels of a frame's side (default: 112)")
    parser.add_argument("--json", action="store_true", help="print only one line of JSON")
    arguments = parser.parse_args()
    result = measure(
        videos=arguments.videos, updates=arguments.updates, rounds=arguments.rounds, size=arguments.size
    )
    if not arguments.json:
        for name, value in result.items():
            print(f"{name:<22} {value:g}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
