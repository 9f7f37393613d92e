"""Measure what it costs to measure motion while the frame cache is filled.

Each clip fills an empty cache without the meter, with the meter in numpy, and with the meter compiled by
numba, in turns, on one core. The result is the processor time with the meter over that without it. Small
clips are the worst case: they decode fastest. The first round loads or compiles the code and does not count.

    python benchmarks/motion_cost.py --out results/motion_cost.json
"""

import argparse
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy when it is imported

import numpy as np
from numpy.typing import NDArray

from cycleback.data import FrameCache, VideoRecord
from cycleback.data import cache as cache_module
from cycleback.files import write_text
from cycleback.provenance import provenance
from cycleback.video import motion, probe, write_video
from cycleback.video.motion import MOTION_SHAPE, measure_cells, reduce_to_grey
from decode import iter_textured_frames
from result_file import format_json

DATA = Path(os.environ.get("CYCLEBACK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
FRAME_SIZES = (112, 224)
WAYS = ("numpy", "compiled") if find_spec("numba") else ("numpy",)


class NoMeter:
    """Stands in for the meter and measures nothing."""

    def push(self, frames: NDArray[np.uint8], times: NDArray[np.float64]) -> NDArray[np.float16]:
        """Return zeros (n, 4, 8, 8)."""
        return np.zeros((len(frames), *MOTION_SHAPE), dtype=np.float16)


def measure_motion(way: str) -> AbstractContextManager[object]:
    """Fill caches "without" the meter, or with the meter in "numpy" or "compiled"."""
    if way == "without":
        return patch.object(cache_module, "MotionMeter", NoMeter)
    kernels = (reduce_to_grey, measure_cells) if way == "numpy" else motion.fastest_kernels()
    return patch.object(motion, "fastest_kernels", lambda: kernels)


def choose_clips(folder: Path) -> Mapping[str, Sequence[Path]]:
    """Return the clips of each kind that is there, and a 1080p clip of moving texture."""
    large = write_video(folder / "texture.mp4", iter_textured_frames(1080, 1920, 90), fps=30)
    return {
        "golf 160x160": sorted((DATA / "golf" / "videos").glob("*.mp4"))[:12],
        "pitch 480x270": sorted((DATA / "pitch_audio" / "videos").glob("*.mp4"))[:3],
        "texture 1920x1080": [large],
    }


def fill_seconds(path: Path, size: int) -> float:
    """Return the processor time in seconds that it takes to fill an empty cache with one clip."""
    with tempfile.TemporaryDirectory() as root:
        cache = FrameCache(root, size=(size, size))
        start = time.process_time()
        cache.fill([VideoRecord(path.stem, path)], workers=1)
        return time.process_time() - start


def measure(paths: Sequence[Path], size: int, repeats: int) -> dict[str, float]:
    """Return the ratios of one kind of clip, and microseconds per frame.

    The first ratio is the median over rounds, the second takes the best time of each clip, which depends less
    on what else the machine does.
    """
    ways = ("without", *WAYS)
    seconds = np.empty((repeats + 1, len(paths), len(ways)))
    for number, clip, way in np.ndindex(seconds.shape):
        with measure_motion(ways[way]):
            seconds[number, clip, way] = fill_seconds(paths[clip], size)
    seconds = seconds[1:]  # the first round warms up
    frames = sum(probe(path).num_frames for path in paths)
    rounds, best = seconds.sum(axis=1), seconds.min(axis=0).sum(axis=0)
    row: dict[str, float] = {"frames": frames}
    for way, name in enumerate(WAYS, start=1):
        row[f"{name}_ratio"] = round(float(np.median(rounds[:, way] / rounds[:, 0])), 3)
        row[f"{name}_ratio_of_best"] = round(float(best[way] / best[0]), 3)
    return row | {f"{name}_us_per_frame": round(1e6 * best[way] / frames, 1) for way, name in enumerate(ways)}


def main() -> None:
    """Measure each kind of clip at each frame size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--repeats", type=int, default=7, help="rounds of all ways (default: 7)")
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # decoding and scaling do not overlap
    result: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, paths in choose_clips(Path(folder)).items():
            for size in FRAME_SIZES if paths else ():
                row = result[f"{name} to {size}"] = measure(paths, size, arguments.repeats)
                print(f"{name:<20}{size:>4}", *(f"{value:9.3f}" for value in row.values()), flush=True)
    if arguments.out:
        content = {"provenance": provenance(), "repeats": arguments.repeats, "clips": result}
        write_text(arguments.out, format_json(content), overwrite=True)


if __name__ == "__main__":
    main()
