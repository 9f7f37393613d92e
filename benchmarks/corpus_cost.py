"""Work out on paper what embedding a million hours of video costs: machines, disk, dollars, next bottleneck.

Nothing is measured here. Every input is a figure that another benchmark wrote into `results/`, or a stated
assumption: hours, frames per second, length of a video, and the prices, which are yours to replace.

    python benchmarks/corpus_cost.py --gpu-hour 3.5 --core-hour 0.04 --tb-month 20 -o results/corpus_cost.json
"""

import argparse
import json
from pathlib import Path
from typing import Any

from cycleback.files import write_json

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 3600.0
SIZES = {"a trained encoder, D = 128": 128, "pretrained, all streams": 1306}
SHARD_OVERHEAD = 650  # bytes of the header of a shard
TIME_BYTES, NUMBER_BYTES = 8, 4


def read_inputs(folder: Path) -> dict[str, Any]:
    """Return the measured inputs, each with the file it is from."""
    recorded = json.loads((folder / "gpu_speed.json").read_text())
    gpu, cores = recorded["embedding"], recorded["evaluation"]["cores"]
    lists = json.loads((folder / "corpus_lists.json").read_text())["runs"]
    count, run = max(((int(count), run) for count, run in lists.items()), key=lambda pair: pair[0])
    files = gpu["from_files"]
    return {
        "gpu_frames_per_s": gpu["embed_fps"],
        "gpu": gpu["device"],
        "decoded_frames_per_core_s": files["frames"] / files["decode_seconds"] / cores,
        "decoded_px": files["frame_size"],
        "cores_of_gpu_machine": cores,
        "machine_frames_per_s": files["frames"] / files["both_seconds"],
        "list_s_per_video": run["list_s"] / count,
        "resume_s_per_video": run["resume_s"] / count,
        "manifest_s_per_video": run["manifest_s"] / count,
        "listed_videos": count,
    }


def work_out(
    known: dict[str, Any],
    *,
    hours: float,
    fps: float,
    video_s: float,
    gpu_hour: float,
    core_hour: float,
    tb_month: float,
) -> dict[str, Any]:
    """Apply the formulas of the page."""
    frames, videos = hours * SECONDS * fps, hours * SECONDS / video_s
    gpu_hours = frames / known["gpu_frames_per_s"] / SECONDS
    core_hours = frames / known["decoded_frames_per_core_s"] / SECONDS
    machine_hours = frames / known["machine_frames_per_s"] / SECONDS
    disk = {
        name: (frames * (NUMBER_BYTES * size + TIME_BYTES) + videos * SHARD_OVERHEAD) / 1e12
        for name, size in SIZES.items()
    }
    per_video = known["list_s_per_video"] + known["resume_s_per_video"] + known["manifest_s_per_video"]
    return {
        "frames": frames,
        "videos": videos,
        "gpu_hours": gpu_hours,
        "core_hours": core_hours,
        "cores_per_gpu": core_hours / gpu_hours,
        "machine_hours_as_measured": machine_hours,
        "gpu_busy_as_measured": gpu_hours / machine_hours,
        "dollars_balanced": gpu_hours * gpu_hour + core_hours * core_hour,
        "dollars_as_measured": machine_hours * (gpu_hour + known["cores_of_gpu_machine"] * core_hour),
        "disk_tb": disk,
        "dollars_disk_month": {name: size * tb_month for name, size in disk.items()},
        "hand_out_hours": videos * per_video / SECONDS,
    }


def main() -> None:
    """Work out, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=1e6, help="of video")
    parser.add_argument("--fps", type=float, default=30.0, help="frames per second of the videos")
    parser.add_argument("--video-s", type=float, default=10.0, help="seconds of a video")
    parser.add_argument("--gpu-hour", type=float, default=3.5, help="price of a GPU for an hour")
    parser.add_argument("--core-hour", type=float, default=0.04, help="price of a core for an hour")
    parser.add_argument("--tb-month", type=float, default=20.0, help="price of a terabyte for a month")
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this .json file")
    words = vars(parser.parse_args())
    output = words.pop("output")
    known = read_inputs(ROOT / "results")
    result = {"assumed": words, "measured": known, "result": work_out(known, **words)}
    print(json.dumps(result, indent=1))
    if output is not None:
        write_json(output, result, overwrite=True)


if __name__ == "__main__":
    main()
