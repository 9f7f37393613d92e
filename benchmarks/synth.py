"""Measure how many frames per second `write_dataset` renders, encodes and writes.

python benchmarks/synth.py --videos 24 --jobs 2
python benchmarks/synth.py --json
"""

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

from cycleback.synth import LEVELS, write_dataset


def measure(*, videos: int, level: str, size: int, jobs: int) -> dict[str, Any]:
    """Write a set into a temporary folder and time it, including the start of the workers."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        written = write_dataset(Path(folder) / "set", videos=videos, level=level, size=size, jobs=jobs)
        seconds = time.perf_counter() - start
        size_bytes = sum(video.path.stat().st_size for video in written)
    frames = sum(video.num_frames for video in written)
    return {
        "benchmark": "synth",
        "frames_per_second": round(frames / seconds, 1),
        "videos": videos,
        "frames": frames,
        "seconds": round(seconds, 3),
        "megabytes": round(size_bytes / 1e6, 2),
        "level": level,
        "size": size,
        "jobs": jobs,
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
    }


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--videos", type=int, default=24)
    parser.add_argument("--level", choices=list(LEVELS), default="hard")
    parser.add_argument("--size", type=int, default=112)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    args = parser.parse_args()
    result = measure(videos=args.videos, level=args.level, size=args.size, jobs=args.jobs)
    if args.json:
        print(json.dumps(result))
        return
    rate, frames, seconds = (result[key] for key in ("frames_per_second", "frames", "seconds"))
    print(f"{rate:.0f} frames/s with {args.jobs} jobs: {frames} frames of {args.size} px in {seconds:.1f} s")
    print(f"{args.videos} {args.level} videos, {result['megabytes']} MB, including the start of the workers")


if __name__ == "__main__":
    main()
