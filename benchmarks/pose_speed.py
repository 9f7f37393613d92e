"""Measure what poses cost: how fast videos are embedded with them, compared with appearance alone.

Appearance is decoding, which measures motion as well, and the default base at 112 pixels. Poses add a second
decoding and MoveNet on ten frames per second. Both start with empty caches, in turns; the ratio is the
median over the turns. 1 would be no cost.

    python benchmarks/pose_speed.py --out results/pose_speed.json
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from cycleback.data import FrameCache, VideoRecord
from cycleback.embeddings.features import FeatureCache
from cycleback.embeddings.poses import STEP_S, PoseCache
from cycleback.files import write_text
from cycleback.models import EfficientNetLite0
from cycleback.models.movenet import Variant
from cycleback.provenance import provenance
from cycleback.video import write_video
from decode import FPS, iter_textured_frames
from result_file import format_json

DATA = Path(os.environ.get("CYCLEBACK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SIZE = (112, 112)
LARGE = (720, 1280)
VARIANTS: tuple[Variant, ...] = ("lightning", "thunder")


def measure(records: Sequence[VideoRecord], base: EfficientNetLite0, variant: Variant) -> dict[str, float]:
    """Seconds for decoding and appearance, and for poses, from empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        frames = FrameCache(folder, size=SIZE)
        features, poses = FeatureCache(frames, base), PoseCache(frames, variant=variant)
        start = time.perf_counter()
        frames.fill(records)
        features.fill(records)
        between = time.perf_counter()
        for record in records:
            poses.load(record)
        end = time.perf_counter()
        count = sum(frames.load(record).num_frames for record in records)
    return {"frames": count, "appearance_s": between - start, "poses_s": end - between}


def summarize(turns: Sequence[dict[str, float]]) -> dict[str, float]:
    """The median over the turns of speed with poses over speed without, and of frames per second."""
    ratios = [turn["appearance_s"] / (turn["appearance_s"] + turn["poses_s"]) for turn in turns]
    rates = [turn["frames"] / (turn["appearance_s"] + turn["poses_s"]) for turn in turns]
    return {
        "ratio": round(statistics.median(ratios), 3),
        "ratio_low": round(min(ratios), 3),
        "ratio_high": round(max(ratios), 3),
        "frames_per_second": round(statistics.median(rates), 1),
    }


def main() -> None:
    """Measure golf clips and a large clip with both variants of the network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--clips", type=int, default=6, help="golf clips (default: 6)")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each measurement (default: 3)")
    arguments = parser.parse_args()
    base = EfficientNetLite0().eval()
    with tempfile.TemporaryDirectory() as folder:
        large = write_video(Path(folder) / "large.mp4", iter_textured_frames(*LARGE, 8 * FPS), fps=FPS)
        golf = sorted((DATA / "golf" / "videos").glob("*.mp4"))[: arguments.clips]
        sets = {"golf, 160 x 160": golf, "texture, 1280 x 720": [large]}
        rows = {}
        for name, paths in sets.items():
            records = [VideoRecord(path.stem, path) for path in paths]
            for variant in VARIANTS:
                turns = [measure(records, base, variant) for _ in range(arguments.repeats + 1)][1:]
                rows[f"{name}, {variant}"] = summarize(turns)
                print(f"{name}, {variant}: {rows[f'{name}, {variant}']}", flush=True)
    if arguments.out:
        settings = {"step_s": STEP_S, "threads": torch.get_num_threads(), "clips": arguments.clips}
        content = {"provenance": provenance(), "settings": settings, "rows": rows}
        write_text(arguments.out, format_json(content), overwrite=True)


if __name__ == "__main__":
    main()
