"""What torch does with a grid in several passes, in one: kernels for a GPU, and torch's own way elsewhere.

Shapes: N images, O channels, H W grid, h w half of it.
"""

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

PLACES = 32  # of a row of the pooled grid, to one program
ROWS, COLUMNS = 64, 128  # places and channels of a gradient that a program looks at together
STEPS = 4  # how often it does so


def halving_max_pool(grid: Tensor) -> Tensor:
    """The largest of 3 x 3 places around every second one, (N, O, H, W) to (N, O, h, w).

    Where the grid is trained through, torch notes where each maximum was.
    """
    channels, is_trained = grid.shape[1], grid.requires_grad and torch.is_grad_enabled()
    is_fit = channels & (channels - 1) == 0 and grid.numel() < 2**31  # places are counted in 32 bits
    kernels = _kernels() if is_fit and not is_trained and _is_ours(grid) else None
    if kernels is None:
        return F.max_pool2d(grid, 3, 2, 1)
    with torch.cuda.device(grid.device):
        return run_pool(kernels, grid)


def run_pool(kernels: Any, grid: Tensor) -> Tensor:
    """The same with the kernels of `grid_kernels`."""
    count, channels, height, width = grid.shape
    rows, columns = -(-height // 2), -(-width // 2)
    shape = (count, channels, rows, columns)
    pooled = torch.empty(shape, dtype=grid.dtype, device=grid.device, memory_format=torch.channels_last)
    programs = (count * rows, -(-columns // PLACES))
    kernels.pool[programs](grid, pooled, height, width, rows, columns, channels=channels, places=PLACES)
    return pooled


def relu_gradient(gradient: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient (N, O, H, W) where `output` is above 0, and its sum (O,) over places.

    Args:
        gradient: of the output.
        output: (N, O, H, W), of Relu.
    """
    is_fit = gradient.shape == output.shape and gradient.dtype == output.dtype
    kernels = _kernels() if is_fit and _is_ours(gradient) and _is_ours(output) else None
    if kernels is None:
        passed = torch.ops.aten.threshold_backward(gradient, output, 0)
        return passed, passed.sum(dim=(0, 2, 3))
    with torch.cuda.device(gradient.device):
        return run_cut(kernels, gradient, output)


def run_cut(kernels: Any, gradient: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
    """The same with the kernels of `grid_kernels`."""
    channels, places = output.shape[1], output.numel() // output.shape[1]
    programs = (-(-places // (ROWS * STEPS)), -(-channels // COLUMNS))
    passed = torch.empty_like(gradient)
    sums = torch.empty(programs[0], channels, device=gradient.device)
    kernels.cut[programs](
        gradient, output, passed, sums, places, channels, rows=ROWS, columns=COLUMNS, steps=STEPS
    )
    return passed, sums.sum(dim=0).to(gradient.dtype)


def _is_ours(grid: Tensor) -> bool:
    """Whether a kernel can run on it."""
    is_laid_out = grid.is_contiguous(memory_format=torch.channels_last)
    return grid.is_cuda and is_laid_out and not torch.compiler.is_compiling()


@cache
def _kernels() -> Any:
    """The kernels, once they have run; None where Triton, or the compiler that it needs, is not there."""
    grid = torch.zeros(1, 16, 2, 2, device="cuda", dtype=torch.bfloat16)
    grid = grid.contiguous(memory_format=torch.channels_last)
    try:
        from cycleback.models import grid_kernels

        run_pool(grid_kernels, grid)
        run_cut(grid_kernels, grid, grid)
    except Exception:  # whatever a compiler may say: there is another way
        return None
    return grid_kernels
