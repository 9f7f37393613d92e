"""What Relu lets through of a gradient, and its sum, in one pass over the grid: a kernel for a GPU.

Shapes: N images, O channels, h w grid, P = N * h * w places.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor

ROWS, COLUMNS = 64, 128  # places and channels that a program looks at together
STEPS = 4  # how often it does so


def relu_gradient(gradient: Tensor, output: Tensor) -> tuple[Tensor, Tensor] | None:
    """The gradient (N, O, h, w) where `output` is above 0, and its sum (O,) over places; None: it cannot.

    Args:
        gradient: of the output.
        output: (N, O, h, w), of Relu.
    """
    is_fit = gradient.shape == output.shape and gradient.dtype == output.dtype
    is_fit &= all(grid.is_contiguous(memory_format=torch.channels_last) for grid in (gradient, output))
    kernel = _kernel() if gradient.is_cuda and is_fit else None
    if kernel is None:
        return None
    channels, places = output.shape[1], output.numel() // output.shape[1]
    programs = (-(-places // (ROWS * STEPS)), -(-channels // COLUMNS))
    passed = torch.empty_like(gradient)
    sums = torch.empty(programs[0], channels, device=gradient.device)
    with torch.cuda.device(gradient.device):
        kernel[programs](gradient, output, passed, sums, places, channels, ROWS, COLUMNS, STEPS)
    return passed, sums.sum(dim=0).to(gradient.dtype)


@cache
def _kernel() -> Any:
    """The kernel, once it has run; None where Triton, or the compiler that it needs, is not there."""
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return None

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def cut(  # type: ignore[no-untyped-def]
        gradient,
        output,
        passed,
        sums,
        places,
        channels,
        rows: tl.constexpr,
        columns: tl.constexpr,
        steps: tl.constexpr,
    ):
        channel = tl.program_id(1) * columns + tl.arange(0, columns)
        total = tl.zeros((columns,), tl.float32)
        for step in range(steps):
            place = (tl.program_id(0) * steps + step) * rows + tl.arange(0, rows)
            at = place[:, None].to(tl.int64) * channels + channel[None, :]
            is_inside = (place < places)[:, None] & (channel < channels)[None, :]
            is_open = tl.load(output + at, mask=is_inside, other=0.0) > 0
            value = tl.where(is_open, tl.load(gradient + at, mask=is_inside, other=0.0), 0.0)
            tl.store(passed + at, value, mask=is_inside)
            total += tl.sum(value.to(tl.float32), axis=0)
        tl.store(sums + tl.program_id(0) * channels + channel, total, mask=channel < channels)

    grid = torch.zeros(1, 16, 2, 2, device="cuda", dtype=torch.bfloat16)
    sums = torch.zeros(1, 16, device="cuda")
    try:
        cut[(1, 1)](grid, grid, grid, sums, 4, 16, ROWS, COLUMNS, STEPS)
    except Exception:  # whatever a compiler may say: there is another way
        return None
    return cut
