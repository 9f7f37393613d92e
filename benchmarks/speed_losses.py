"""Losses on embeddings, forward and backward: all pairs at once, and TCC as a loop over pairs.

The losses of warping and transport are also given as multiples of TCC at the same size, in time and memory.

Shapes: B videos, T sampled frames per video, D embedding size.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn

from cycleback.losses import (
    GTALoss,
    LAVLoss,
    ReversalLoss,
    SaLLoss,
    SCLLoss,
    TCCLoss,
    TCNLoss,
    VAOTLoss,
    VAVALoss,
)
from speed_clock import Found, Setting, attempted, forget, milliseconds, peak_gb
from speed_peers import loop_over_pairs

SIZE = 128  # D
LOSSES = ("tcc", "tcn", "sal")
METHODS = ("lav", "gta", "reversal", "vava", "vaot", "scl")


def loss_of(name: str, embeddings: Tensor) -> Callable[[], Tensor]:
    """Forward and backward of a loss on embeddings (B, T, D); returns its value."""
    device, (videos, frames, _) = embeddings.device, embeddings.shape
    times = torch.linspace(0, 1, frames, device=device).repeat(videos, 1)  # (B, T)
    positives = (embeddings.detach() + 0.1).requires_grad_()
    numbers = (5 * torch.arange(frames, device=device)).repeat(videos, 1)  # (B, T)
    generator = torch.Generator(device).manual_seed(0)
    parts: dict[str, tuple[nn.Module | Callable[..., Tensor], dict[str, object]]] = {
        "tcc": (TCCLoss(), {"times": times}),
        "tcn": (TCNLoss(), {"positives": positives}),
        "sal": (SaLLoss(SIZE).to(device), {"generator": generator}),
        "lav": (LAVLoss(), {"times": times, "frames": numbers}),
        "gta": (GTALoss(), {}),
        "reversal": (ReversalLoss(), {}),
        "vava": (VAVALoss(), {"times": times, "frames": numbers}),
        "vaot": (VAOTLoss(), {"times": times}),
        "scl": (
            SCLLoss(SIZE).to(device),
            {"positives": positives, "frames": numbers, "positive_frames": numbers + 1},
        ),
        "tcc by pairs": (partial(loop_over_pairs, TCCLoss()), {"times": times}),
    }
    loss, keywords = parts[name]

    def run() -> Tensor:
        embeddings.grad = None
        value: Tensor = loss(embeddings, **keywords)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    return run


def timed_loss(name: str, *, videos: int, frames: int, setting: Setting) -> Found:
    """Measure milliseconds and peak memory of a loss, forward and backward."""
    forget(setting.device)
    torch.manual_seed(0)
    embeddings = torch.randn(videos, frames, SIZE, device=setting.device, requires_grad=True)
    run = loss_of(name, embeddings)
    found = milliseconds(run, device=setting.device, repeats=7, warmup=3)
    if not torch.isfinite(run()):
        raise RuntimeError(f"the loss {name} of {videos} videos of {frames} frames is not finite")
    row = {"loss": name, "videos": videos, "frames": frames, "ms": found, "peak_gb": peak_gb(setting.device)}
    print(f"{name:12} {videos:3} videos of {frames:3} frames {found:8.2f} ms", flush=True)
    return row


def rows_of(name: str, sizes: list[tuple[int, int]], setting: Setting) -> Iterator[Found]:
    """A row for each (videos, frames) that fits into memory."""
    for videos, frames in sizes:
        run = partial(timed_loss, name, videos=videos, frames=frames, setting=setting)
        row = attempted(f"{name}, {videos} videos of {frames} frames", run, setting)
        if row is not None:
            yield row


def measure(setting: Setting) -> Iterator[Found]:
    """Measure every loss at every size; the methods and the loop over pairs at some, beside TCC."""
    videos, frames = ((2, 3), (6, 8)) if setting.is_smoke else ((4, 8, 16, 32, 64), (20, 50, 100, 200))
    rows: list[Found] = []
    for name in LOSSES:
        rows += rows_of(name, [(b, t) for b in videos for t in frames], setting)
        yield {"rows": list(rows)}
    some = [(2, 6)] if setting.is_smoke else [(4, 20), (4, 100), (4, 200), (16, 20)]
    methods = []
    for name in METHODS:
        for row in rows_of(name, some, setting):
            same = [other for other in rows if other["loss"] == "tcc" and _size(other) == _size(row)]
            methods += [{**row, "ratio": row["ms"] / other["ms"]} for other in same]
        yield {"methods": list(methods)}
    few, short = ((2, 3), (6,)) if setting.is_smoke else ((4, 16), (20, 50))
    ratios = []
    for plain in rows_of("tcc by pairs", [(b, t) for b in few for t in short], setting):
        same = [row for row in rows if row["loss"] == "tcc" and _size(row) == _size(plain)]
        ratios += [{**plain, "ratio": plain["ms"] / row["ms"]} for row in same]
    yield {"by_pairs": ratios}


def _size(row: Found) -> tuple[int, int]:
    return row["videos"], row["frames"]
