"""Losses on embeddings, forward and backward: all pairs at once, and TCC as a loop over pairs.

The losses of other papers are measured at the paper's batch and at growing lengths, as multiples of TCC at
the same size: called from Python, and replayed as a CUDA graph, which is how the training loop runs them.

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
METHODS = ("tcc", "lav", "gta", "reversal", "vava", "vaot", "scl")


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


def timed_loss(name: str, *, videos: int, frames: int, setting: Setting, is_replayed: bool = False) -> Found:
    """Measure milliseconds and peak memory of a loss, forward and backward, also as a CUDA graph if asked."""
    forget(setting.device)
    torch.manual_seed(0)
    embeddings = torch.randn(videos, frames, SIZE, device=setting.device, requires_grad=True)
    run = loss_of(name, embeddings)
    found = milliseconds(run, device=setting.device, repeats=7, warmup=3)
    if not torch.isfinite(run()):
        raise RuntimeError(f"the loss {name} of {videos} videos of {frames} frames is not finite")
    row = {"loss": name, "videos": videos, "frames": frames, "ms": found}
    row["peak_gb"] = peak_of(run, setting)
    if is_replayed:
        row["replayed_ms"] = milliseconds(record(run), device=setting.device)
    print(f"{name:12} {videos:3} videos of {frames:4} frames {found:8.2f} ms", flush=True)
    return row


def peak_of(run: Callable[[], object], setting: Setting) -> float | None:
    """Return the most memory a call takes beyond what is held before it, such as the buffers of products."""
    forget(setting.device)
    before = peak_gb(setting.device)
    run()
    peak = peak_gb(setting.device)
    return None if peak is None or before is None else peak - before


def record(run: Callable[[], object]) -> Callable[[], None]:
    """Return a call that replays `run` as one CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    replay: Callable[[], None] = graph.replay
    return replay


def with_ratios(row: Found, rows: list[Found]) -> Found:
    """Return a row with its times as multiples of those of TCC at the same size."""
    tcc = next((other for other in rows if other["loss"] == "tcc" and _size(other) == _size(row)), {})
    keys = {"ms": "ratio", "replayed_ms": "replayed_ratio", "peak_gb": "memory_ratio"}
    return row | {name: row[key] / tcc[key] for key, name in keys.items() if row.get(key) and tcc.get(key)}


def rows_of(
    name: str, sizes: list[tuple[int, int]], setting: Setting, *, is_replayed: bool = False
) -> Iterator[Found]:
    """A row for each (videos, frames) that fits into memory."""
    for videos, frames in sizes:
        run = partial(
            timed_loss, name, videos=videos, frames=frames, setting=setting, is_replayed=is_replayed
        )
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
    sizes = (
        [(2, 6)] if setting.is_smoke else [(4, 20), (16, 20), *((4, t) for t in (50, 100, 200, 500, 1000))]
    )
    methods: list[Found] = []
    for name in METHODS:
        methods += rows_of(name, sizes, setting, is_replayed=setting.is_gpu)
        yield {"methods": [with_ratios(row, methods) for row in methods]}
    few, short = ((2, 3), (6,)) if setting.is_smoke else ((4, 16), (20, 50))
    ratios = []
    for plain in rows_of("tcc by pairs", [(b, t) for b in few for t in short], setting):
        same = [row for row in rows if row["loss"] == "tcc" and _size(row) == _size(plain)]
        ratios += [{**plain, "ratio": plain["ms"] / row["ms"]} for row in same]
    yield {"by_pairs": ratios}


def _size(row: Found) -> tuple[int, int]:
    return row["videos"], row["frames"]
