"""Measure a frozen base and its feature cache: two thousand updates on a data set, from files to weights.

Shapes: N frames of a video.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from cycleback.data import read_dataset
from cycleback.progress import Progress
from cycleback.runs import train
from speed_clock import Found, Setting
from speed_loop import whole_loop


def small_updates(setting: Setting) -> dict[str, dict[str, float]]:
    """Milliseconds per update of the recipe `fast`, whose embedder is tiny: eager, and by CUDA graph."""
    found = {}
    ways = {"eager": "false", "replayed": "true"} if setting.is_gpu else {"eager": "false"}
    updates, skipped = (8, 3) if setting.is_smoke else (200, 50)
    maps = [torch.randn(130, 112, 7, 7, device=setting.device).half() for _ in range(40)]
    for row in ("tcc", "tcn", "sal", "tcc+tcn"):
        losses = f"loss.weights={{ {', '.join(f'{name} = 1.0' for name in row.split('+'))} }}"
        found[row] = {
            way: whole_loop(
                setting.fast_recipe(losses, f"run.cuda_graph={flag}"),
                maps,
                device=setting.device,
                updates=updates,
                skipped=skipped,
            )
            for way, flag in ways.items()
        }
        print(f"fast, {row:10} {found[row]}", flush=True)
    return found


class Moments:
    """The time at which each stage of a run ended."""

    def __init__(self) -> None:
        self.started = self.decoded = self.extracted = time.perf_counter()
        self.num_frames = 0

    def on_frames(self, done: int, total: int) -> None:
        """Note the time of decoding."""
        self.decoded = self.extracted = time.perf_counter()

    def on_features(self, done: int, total: int) -> None:
        """Note the time of the feature maps."""
        self.extracted, self.num_frames = time.perf_counter(), total


def whole_run(data: Path, setting: Setting) -> Found:
    """Seconds of decoding, feature maps and updates of the recipe `fast`, with an empty cache."""
    updates = 6 if setting.is_smoke else 2000
    recipe = setting.fast_recipe(f"optimizer.num_updates={updates}", "run.save_every=1000")
    dataset, moments = read_dataset(data), Moments()
    progress = Progress(on_frames=moments.on_frames, on_features=moments.on_features)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        train(
            dataset,
            place / "run",
            recipe=recipe,
            device=setting.device,
            cache=place / "cache",
            progress=progress,
        )
    ended = time.perf_counter()
    return {
        "data": data.name,
        "frames": moments.num_frames,
        "updates": updates,
        "decode_seconds": moments.decoded - moments.started,
        "feature_seconds": moments.extracted - moments.decoded,
        "update_seconds": ended - moments.extracted,
        "updates_ms": 1000 * (ended - moments.extracted) / updates,
    }


def measure(setting: Setting) -> Iterator[Found]:
    """Yield small updates on noise, then the whole run if there is a data set."""
    yield {"small_updates_ms": small_updates(setting)}
    if setting.data is None:
        print("frozen: no whole run without --data DIR", flush=True)
        return
    found = whole_run(setting.data, setting)
    print(found, flush=True)
    yield {"run": found}
