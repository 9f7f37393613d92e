"""Max pooling of 3 x 3 places, every second one, in one pass over the grid: a kernel for a GPU.

Shapes: N images, F channels, H W grid, h w half of it.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor

PLACES = 32  # of a row of the output, to one program


def halving_max_pool(grid: Tensor) -> Tensor | None:
    """The largest of 3 x 3 places around every second one, (N, F, H, W) to (N, F, h, w); None: it cannot."""
    count, channels, height, width = grid.shape
    is_fit = channels & (channels - 1) == 0 and grid.numel() < 2**31  # places are counted in 32 bits
    is_fit &= grid.is_contiguous(memory_format=torch.channels_last)
    kernel = _kernel() if grid.is_cuda and is_fit else None
    if kernel is None:
        return None
    rows, columns = -(-height // 2), -(-width // 2)
    shape = (count, channels, rows, columns)
    pooled = torch.empty(shape, dtype=grid.dtype, device=grid.device, memory_format=torch.channels_last)
    programs = (count * rows, -(-columns // PLACES))
    with torch.cuda.device(grid.device):
        kernel[programs](grid, pooled, height, width, rows, columns, channels=channels, places=PLACES)
    return pooled


@cache
def _kernel() -> Any:
    """The kernel, once it has run; None where Triton, or the compiler that it needs, is not there."""
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return None

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def pool(source, target, height, width, rows, columns, channels: tl.constexpr, places: tl.constexpr):  # type: ignore[no-untyped-def]
        image, row = tl.program_id(0) // rows, tl.program_id(0) % rows
        column = tl.program_id(1) * places + tl.arange(0, places)
        channel = tl.arange(0, channels)
        largest = tl.full((places, channels), float("-inf"), tl.float32)
        for down in tl.static_range(3):
            y = 2 * row - 1 + down
            for right in tl.static_range(3):
                x = 2 * column - 1 + right
                is_inside = (y >= 0) & (y < height) & (x >= 0) & (x < width) & (column < columns)
                place = source + ((image * height + y) * width + x)[:, None] * channels + channel[None, :]
                values = tl.load(place, mask=is_inside[:, None], other=float("-inf"))
                largest = tl.maximum(largest, values.to(tl.float32))
        place = target + ((image * rows + row) * columns + column)[:, None] * channels + channel[None, :]
        tl.store(place, largest.to(target.dtype.element_ty), mask=(column < columns)[:, None])

    grid = torch.zeros(1, 16, 2, 2, device="cuda", dtype=torch.bfloat16)
    try:
        pool[(1, 1)](grid, grid[:, :, :1, :1], 2, 2, 1, 1, channels=16, places=PLACES)
    except Exception:  # whatever a compiler may say: there is another way to pool
        return None
    return pool
