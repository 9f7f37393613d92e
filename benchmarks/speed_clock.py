"""Shared by all parts of `gpu_speed.py`: the setting, the clock, the memory and the limits of the device.

On a GPU, times are measured between two events of the device; elsewhere by the wall clock.
"""

import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch

from cycleback.recipe import Recipe, load_recipe

RUNGS = ("fp32", "tf32", "bf16", "channels_last", "stacked", "recorded", "compiled")
GPU_RUNGS = ("recorded", "compiled")
CPU = torch.device("cpu")
SMOKE_SIZES = ("data.frame_size=32", "data.frames_per_video=6", "optimizer.batch_size=2")
SMOKE_LAYERS = (
    "encoder.resnet50.layer=layer2[0]",
    "encoder.conv.conv_channels=[16, 16]",
    "encoder.conv.fc_channels=[16]",
)
Found = dict[str, Any]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Setting:
    """Where and how large to measure.

    Attributes:
        is_smoke: tiny sizes that only check that everything runs; the figures mean nothing.
        rungs: of the training step, in the order of RUNGS.
        more_videos: batch sizes besides 4; None: the paper's and its multiples.
        data: a prepared data set folder, or None.
        failures: names of what failed so far.
    """

    device: torch.device
    is_smoke: bool = False
    rungs: tuple[str, ...] = RUNGS[:-1]
    more_videos: tuple[int, ...] | None = None
    data: Path | None = None
    failures: list[str] = field(default_factory=list)

    @property
    def is_gpu(self) -> bool:
        """Whether the device measures time and memory."""
        return self.device.type == "cuda"

    @property
    def videos(self) -> int:
        """B of the paper's step."""
        return 2 if self.is_smoke else 4

    @property
    def best_eager_rung(self) -> str:
        """The last rung that needs no compiler."""
        return "recorded" if self.is_gpu else "stacked"

    def recipe(self, *overrides: str) -> Recipe:
        """Return the recipe of the paper's step, with some settings changed."""
        settings = ["encoder.resnet50.weights=", "run.precision=bfloat16", "run.channels_last=true"]
        tiny = (*SMOKE_SIZES, *SMOKE_LAYERS) if self.is_smoke else ()
        return load_recipe("paper", overrides, shared=[*settings, *tiny])

    def fast_recipe(self, *overrides: str) -> Recipe:
        """Return the recipe `fast`: a frozen base and a tiny embedder."""
        return load_recipe("fast", [*(SMOKE_SIZES if self.is_smoke else ()), *overrides])


def milliseconds(
    function: Callable[[], object], *, device: torch.device, repeats: int = 20, warmup: int = 5
) -> float:
    """Return the median time of a call."""
    if device.type != "cuda":
        function()
        return 1000 * statistics.median(seconds(function, device=device) for _ in range(min(repeats, 3)))
    for _ in range(warmup):
        function()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        function()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return float(statistics.median(times))


def seconds(function: Callable[[], object], *, device: torch.device) -> float:
    """Return the wall time of one call, until the device has finished."""
    synchronize(device)
    start = time.perf_counter()
    function()
    synchronize(device)
    return time.perf_counter() - start


def synchronize(device: torch.device) -> None:
    """Wait for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def forget(device: torch.device) -> None:
    """Release unused memory and reset the peak."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def peak_gb(device: torch.device) -> float | None:
    """Return the peak memory of tensors since `forget` in 10^9 bytes; None on a CPU."""
    return torch.cuda.max_memory_allocated(device) / 1e9 if device.type == "cuda" else None


def attempted(name: str, run: Callable[[], Result], setting: Setting) -> Result | None:
    """Return the result of `run`, or None if it fails; failures are printed and recorded."""
    try:
        return run()
    except Exception as error:  # one failed measurement must not end the others
        reason = str(error).strip().partition("\n")[0]
        print(f"{name} failed: {type(error).__name__}: {reason}", file=sys.stderr, flush=True)
        setting.failures.append(name)
    forget(setting.device)
    return None


def ceilings(setting: Setting) -> Found:
    """Measure the limits of the device: bfloat16 matrix products and copies in memory."""
    device, side, size = setting.device, 8192, 2**30
    if setting.is_smoke:
        side, size = 128, 2**20
    a, b = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))
    product = milliseconds(lambda: a @ b, device=device)
    source = torch.empty(size, dtype=torch.uint8, device=device).random_()
    target = torch.empty_like(source)
    copied = milliseconds(lambda: target.copy_(source), device=device)
    return {"ceiling_tflops": 2 * side**3 / product / 1e9, "copy_tb_per_s": 2 * size / copied / 1e9}
