"""A first layer of stride 2 as a convolution of stride 1 over blocks of 2 x 2 pixels.

Matrix units of a GPU have no use for three channels; a block of pixels has twelve.

Shapes: N images, H W pixels, O channels out, k kernel size; h w grid of blocks, n blocks across a kernel.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK_CHANNELS = 12  # 2 x 2 pixels of three colours
PADDED_CHANNELS = 16  # matrix units take channels by eights


class Reach(NamedTuple):
    """Blocks that a kernel reaches before and after the one of its output."""

    before: int
    after: int


def reach_of(size: int, zeros: int) -> Reach:
    """For a kernel of `size` pixels, with `zeros` on every side of the image."""
    return Reach((zeros + 1) // 2, (size - 1 - zeros) // 2)


def block_kernel(kernel: Tensor, *, zeros: int) -> Tensor:
    """A kernel (O, 3, k, k) of stride 2 as one of stride 1 over blocks: (O, 16, n, n)."""
    size, (before, after) = kernel.shape[-1], reach_of(kernel.shape[-1], zeros)
    count, front = before + after + 1, 2 * before - zeros
    padded = F.pad(kernel, (front, 2 * count - size - front) * 2)  # (O, 3, 2 n, 2 n)
    blocks = padded.reshape(len(kernel), 3, count, 2, count, 2).permute(0, 3, 5, 1, 2, 4)
    blocks = blocks.reshape(len(kernel), BLOCK_CHANNELS, count, count)
    return F.pad(blocks, (0, 0, 0, 0, 0, PADDED_CHANNELS - BLOCK_CHANNELS))


def pixel_blocks(
    images: Tensor,
    reach: Reach,
    *,
    dtype: torch.dtype,
    normalising: tuple[Tensor, Tensor] | None = None,
    count: int | None = None,
) -> Tensor:
    """Images as blocks (count, 16, h + n - 1, w + n - 1), zeros around them, in one pass.

    Args:
        images: (N, 3, H, W).
        reach: of the kernel, which needs so many zeros.
        dtype: of the blocks.
        normalising: scale (3,) and shift (3,) of the colours; None: they are as they should be.
        count: blank images follow up to so many.
    """
    number, _, height, width = images.shape
    rows, columns, sides = -(-height // 2), -(-width // 2), sum(reach)
    shape = (count or number, rows + sides, columns + sides, PADDED_CHANNELS)
    padded = torch.zeros(shape, dtype=dtype, device=images.device)
    inside = padded[:number, reach.before : reach.before + rows, reach.before : reach.before + columns]
    places = torch.unflatten(inside[..., :BLOCK_CHANNELS], -1, (2, 2, 3))  # (N, h, w, 2, 2, 3)
    pixels, is_even = images.movedim(1, -1), height % 2 == width % 2 == 0  # (N, H, W, 3)
    if normalising is not None and is_even:
        scale, shift = normalising
        torch.addcmul(shift, _in_blocks(pixels), scale, out=places)
        return padded.permute(0, 3, 1, 2)
    if normalising is not None:
        scale, shift = normalising
        pixels = torch.addcmul(shift, pixels, scale)
    if not is_even:
        pixels = F.pad(pixels, (0, 0, 0, width % 2, 0, height % 2))
    places.copy_(_in_blocks(pixels))
    return padded.permute(0, 3, 1, 2)


def _in_blocks(pixels: Tensor) -> Tensor:
    """Pixels (N, H, W, 3) of even size as (N, h, w, 2, 2, 3)."""
    return torch.unflatten(torch.unflatten(pixels, 2, (-1, 2)), 1, (-1, 2)).transpose(2, 3)
