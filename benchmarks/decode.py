"""Measure how fast video is read: all frames at 224 pixels, and twenty random frames.

Each is compared, in the same run and in turns, with plain PyAV:
`for frame in container.decode(video=0): frame.to_ndarray(width=…, height=…, format="rgb24")`,
the same with threads, and decoding from the start to pick frames.
Clips of moving texture at 240p and 720p are made first.

Example:
    python benchmarks/decode.py --repeats 3 --seconds 10
"""

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cycleback.video import iter_frames, read_frames, write_video

SIZE = 224
SHAPES = {"240p": (240, 320), "720p": (720, 1280)}
SHARE = {"240p": 1.0, "720p": 0.4}  # of the requested length; large clips take long to write
FPS = 30


def iter_textured_frames(height: int, width: int, count: int) -> Iterator[NDArray[np.uint8]]:
    """Yield frames (height, width, 3) that pan over coarse and fine texture, with some grain."""
    generator = np.random.default_rng(0)
    side = 2 * max(height, width)
    texture = _noise(generator, side, 40) * 0.75 + _noise(generator, side, 9) * 0.25
    grain = generator.integers(-6, 7, (height + 64, width + 64, 1))
    for number in range(count):
        top = int((np.sin(number / 37) + 1) / 2 * (side - height))
        left = int((np.cos(number / 53) + 1) / 2 * (side - width))
        y, x = number * 7 % 64, number * 13 % 64
        image = texture[top : top + height, left : left + width] + grain[y : y + height, x : x + width]
        yield np.clip(image, 0, 255).astype(np.uint8)


def _noise(generator: np.random.Generator, side: int, scale: int) -> NDArray[np.float32]:
    """Make smooth coloured noise (side, side, 3) with features of `scale` pixels."""
    small = generator.integers(0, 256, (side // scale + 2, side // scale + 2, 3)).astype(np.uint8)
    return np.asarray(Image.fromarray(small).resize((side, side), Image.Resampling.BICUBIC), dtype=np.float32)


def read_all(path: Path) -> int:
    """Decode and resize every frame; returns the number of frames."""
    return sum(len(chunk.frames) for chunk in iter_frames(path, size=(SIZE, SIZE)))


def iter_naively(path: Path, *, threads: bool) -> Iterator[Any]:
    """Yield the same frames, with a new converter for each."""
    with av.open(str(path)) as container:
        if threads:
            container.streams.video[0].thread_type = "AUTO"
        for frame in container.decode(video=0):
            yield frame.to_ndarray(width=SIZE, height=SIZE, format="rgb24")


def read_all_naively(path: Path, *, threads: bool = False) -> int:
    """Decode and resize every frame with plain PyAV; returns the number of frames."""
    return sum(1 for _ in iter_naively(path, threads=threads))


def pick_naively(path: Path, numbers: list[int]) -> NDArray[np.uint8]:
    """Read frames by decoding from the start to the last one; only requested frames are resized."""
    found = {}
    with av.open(str(path)) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number in numbers:
                found[number] = frame.to_ndarray(width=SIZE, height=SIZE, format="rgb24")
            if len(found) == len(set(numbers)):
                break
    return np.stack([found[number] for number in numbers])


def take_turns(ways: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Run all ways in turn in every round; returns the seconds of each in its best round."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - start)
    return {name: min(values[1:]) for name, values in seconds.items()}  # the first round warms up


def measure(label: str, folder: Path, *, count: int, repeats: int) -> dict[str, float]:
    """Measure one size of clip."""
    path = folder / f"{label}.mp4"
    start = time.perf_counter()
    write_video(path, iter_textured_frames(*SHAPES[label], count), fps=FPS)
    write_s = time.perf_counter() - start
    numbers = np.random.default_rng(1).integers(0, count, 20).tolist()
    seconds = take_turns(
        {
            "ours": lambda: read_all(path),
            "naive": lambda: read_all_naively(path),
            "threads": lambda: read_all_naively(path, threads=True),
            "ours_random": lambda: read_frames(path, numbers, size=(SIZE, SIZE)),
            "naive_random": lambda: pick_naively(path, numbers),
        },
        repeats,
    )
    return {
        f"frames_{label}": count,
        f"fps_{label}": round(count / seconds["ours"], 1),
        f"fps_naive_{label}": round(count / seconds["naive"], 1),
        f"ratio_{label}": round(seconds["naive"] / seconds["ours"], 3),
        f"ratio_to_threads_{label}": round(seconds["threads"] / seconds["ours"], 3),
        f"random20_ms_{label}": round(1000 * seconds["ours_random"], 1),
        f"random20_naive_ms_{label}": round(1000 * seconds["naive_random"], 1),
        f"write_fps_{label}": round(count / write_s, 1),
    }


def print_table(result: dict[str, float]) -> None:
    """Print the results as a table."""
    print("clip    all frames/s    naive    ratio     20 random      naive")
    for label in SHAPES:
        row = {name: result[f"{name}_{label}"] for name in ("fps", "fps_naive", "ratio", "random20_ms")}
        some = f"{row['random20_ms']:10.0f} ms {result[f'random20_naive_ms_{label}']:7.0f} ms"
        print(f"{label:6} {row['fps']:13.0f} {row['fps_naive']:8.0f} {row['ratio']:7.2f}x {some}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--repeats", type=int, default=7, help="rounds to take the best of (default: 7)")
    parser.add_argument(
        "--seconds", type=float, default=16.0, help="length of the 240p clip; 720p: 0.4 of it (default: 16)"
    )
    arguments = parser.parse_args()
    result: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for label in SHAPES:
            count = max(30, round(arguments.seconds * SHARE[label] * FPS))
            result |= measure(label, Path(folder), count=count, repeats=max(1, arguments.repeats))
    if not arguments.json:
        print_table(result)
        return
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    print(json.dumps({"benchmark": "decode", **result, **machine, "av": av.__version__}))


if __name__ == "__main__":
    main()
