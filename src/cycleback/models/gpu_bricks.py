"""Pieces of a network as a GPU runs them fastest when nothing trains.

A GPU spends most of its time here on moving grids to and from its memory, so each piece makes few passes over
them. All run on a CPU, too, with the same values.

Shapes: N images, H W pixels, O channels out, F channels, k kernel size, h w grid.
"""

import torch
from torch import Tensor, nn

from cycleback.models.fused_conv import conv_relu
from cycleback.models.grid_passes import halving_max_pool
from cycleback.models.pixel_blocks import block_kernel, pixel_blocks, reach_of

ROUND_COUNT = 32  # images of a pass, so that there are few shapes: for a new one, cuDNN plans each layer anew


def rounded(count: int) -> int:
    """The next number of images that makes a pass."""
    return -(-count // ROUND_COUNT) * ROUND_COUNT


class SpaceToDepthConv(nn.Module):
    """A first layer of stride 2, with normalising and Relu, as a convolution of stride 1 over 2 x 2 blocks.

    Frames become blocks in one pass: normalised, rounded, padded with zeros, and with blank images up to a
    round number.

    Args:
        kernel: (O, 3, k, k).
        bias: (O,).
        zeros: padding on every side.
        scale: (3,), on the colours of frames in [0, 255].
        shift: (3,), added to them.
        dtype: of the arithmetic.
    """

    def __init__(
        self, kernel: Tensor, bias: Tensor, *, zeros: int, scale: Tensor, shift: Tensor, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.reach = reach_of(kernel.shape[-1], zeros)
        weight = block_kernel(kernel, zeros=zeros).to(dtype)
        self.weight = weight.contiguous(memory_format=torch.channels_last)
        self.bias = bias.to(dtype)
        self.scale, self.shift = scale, shift

    def forward(self, frames: Tensor) -> Tensor:
        """Frames (N, 3, H, W), bytes or in [0, 1], to a grid of half the size: (rounded N, O, h, w)."""
        scale = self.scale if frames.dtype == torch.uint8 else 255 * self.scale
        blocks = pixel_blocks(
            frames,
            self.reach,
            dtype=self.weight.dtype,
            normalising=(scale, self.shift),
            count=rounded(len(frames)),
        )
        return conv_relu(blocks, self.weight, self.bias)


class HalvingMaxPool(nn.Module):
    """`nn.MaxPool2d(3, stride=2, padding=1)`."""

    def forward(self, grid: Tensor) -> Tensor:
        """Grid (N, F, H, W) to (N, F, h, w) with h = ceil(H / 2), w = ceil(W / 2)."""
        return halving_max_pool(grid)
