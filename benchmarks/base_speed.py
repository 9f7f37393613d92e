"""Measure frames per second of the pretrained base on this machine: plain, and by `fast_inference`.

python benchmarks/base_speed.py [--frames 64] [--size 112] [--repeats 10] [--threads N] [--json]
"""

import argparse
import json
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.models import EfficientNetLite0, fast_inference


def fastest(
    functions: dict[str, Callable[[Tensor], Tensor]], images: Tensor, repeats: int
) -> dict[str, float]:
    """The shortest time of each function on `images`; they run in turns, so a busy moment hits all alike."""
    seconds = dict.fromkeys(functions, float("inf"))
    for repeat in range(repeats + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function(images)
            if repeat > 0:  # the first round warms up
                seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds


def relative_error(values: Tensor, reference: Tensor) -> float:
    """The largest difference divided by the largest value."""
    return ((values - reference).abs().max() / reference.abs().max()).item()


@torch.no_grad()
def measure(frames: int, size: int, repeats: int) -> dict[str, float]:
    """Frames per second of each version, and the error of the fast ones."""
    base = EfficientNetLite0().eval()
    coarse = torch.rand(frames, 3, size // 8, size // 8, generator=torch.Generator().manual_seed(0))
    images = F.interpolate(coarse, (size, size), mode="bilinear", align_corners=False)
    versions: dict[str, Callable[[Tensor], Tensor]] = {
        "eager": base,
        "fast": fast_inference(base),
        "bfloat16": fast_inference(base, precision="bfloat16"),
    }
    reference = base(images)
    seconds = fastest(versions, images, repeats)
    result = {f"frames_per_second_{name}": round(frames / seconds[name], 1) for name in versions}
    result["ratio"] = round(seconds["eager"] / seconds["fast"], 2)
    result["ratio_bfloat16"] = round(seconds["eager"] / seconds["bfloat16"], 2)
    result["max_relative_error"] = relative_error(versions["fast"](images), reference)
    result["max_relative_error_bfloat16"] = relative_error(versions["bfloat16"](images), reference)
    return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=64)
    parser.add_argument("--size", type=int, default=112)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", action="store_true", help="print the numbers as one line of JSON, last")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    result = measure(args.frames, args.size, args.repeats)
    print(f"EfficientNet-Lite0, {args.frames} frames of {args.size} px, {args.threads} threads")
    for name, value in result.items():
        print(f"  {name:<28} {value:.3g}" if "error" in name else f"  {name:<28} {value:g}")
    if args.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
