"""Pieces of a network as a GPU runs them fastest when nothing trains.

A GPU spends most of its time here on moving grids to and from its memory, so each piece makes few passes over
them. All run on a CPU, too, with the same values.

Shapes: N images, H W pixels, I O channels in and out, k kernel size, h w grid.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.fused_conv import conv_relu
from cycleback.models.triton_pool import halving_max_pool

CHANNELS_OF_A_BLOCK = 12  # 2 x 2 pixels of three colours
PADDED_CHANNELS = 16  # matrix units take channels by eights
ROUND_COUNT = 32  # images of a pass, so that there are few shapes: for a new one, cuDNN plans each layer anew


def rounded(count: int) -> int:
    """The next number of images that makes a pass."""
    return -(-count // ROUND_COUNT) * ROUND_COUNT


class SpaceToDepthConv(nn.Module):
    """A first layer of stride 2, with normalising and Relu, as a convolution of stride 1 over 2 x 2 blocks.

    Matrix units have no use for three channels; blocks of pixels have twelve. Frames become blocks in one
    pass: normalised, rounded, padded with zeros, and with blank images up to a round number.

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
        outputs, size = kernel.shape[0], kernel.shape[-1]
        first, last = -zeros // 2, (size - 1 - zeros) // 2  # blocks reached from the one of the output
        self.before, self.after, count = -first, last, last - first + 1
        front = -(2 * first + zeros)
        padded = F.pad(kernel, (front, 2 * count - size - front) * 2)  # (O, 3, 2 n, 2 n)
        blocks = padded.reshape(outputs, 3, count, 2, count, 2).permute(0, 3, 5, 1, 2, 4)
        blocks = blocks.reshape(outputs, CHANNELS_OF_A_BLOCK, count, count)
        blocks = F.pad(blocks, (0, 0, 0, 0, 0, PADDED_CHANNELS - CHANNELS_OF_A_BLOCK))
        self.weight = blocks.to(dtype).contiguous(memory_format=torch.channels_last)
        self.bias = bias.to(dtype)
        self.scale, self.shift = scale, shift

    def forward(self, frames: Tensor) -> Tensor:
        """Frames (N, 3, H, W) to (rounded N, O, h, w) with h = ceil(H / 2), w = ceil(W / 2)."""
        return conv_relu(self.blocks(frames), self.weight, self.bias)

    def blocks(self, frames: Tensor) -> Tensor:
        """Frames (N, 3, H, W), bytes or in [0, 1], as blocks (rounded N, 16, h + n - 1, w + n - 1)."""
        count, _, height, width = frames.shape
        rows, columns, sides = -(-height // 2), -(-width // 2), self.before + self.after
        shape = (rounded(count), rows + sides, columns + sides, PADDED_CHANNELS)
        padded = torch.zeros(shape, dtype=self.weight.dtype, device=frames.device)
        inside = padded[:count, self.before : self.before + rows, self.before : self.before + columns]
        places = torch.unflatten(inside[..., :CHANNELS_OF_A_BLOCK], -1, (2, 2, 3))  # (N, h, w, 2, 2, 3)
        scale = self.scale if frames.dtype == torch.uint8 else 255 * self.scale
        pixels = frames.movedim(1, -1)  # (N, H, W, 3)
        if (height, width) == (2 * rows, 2 * columns):
            torch.addcmul(self.shift, _in_blocks(pixels), scale, out=places)
        else:
            normalised = torch.addcmul(self.shift, pixels, scale)
            places.copy_(_in_blocks(F.pad(normalised, (0, 0, 0, width % 2, 0, height % 2))))
        return padded.permute(0, 3, 1, 2)


def _in_blocks(pixels: Tensor) -> Tensor:
    """Pixels (N, H, W, 3) of even size as (N, h, w, 2, 2, 3)."""
    return torch.unflatten(torch.unflatten(pixels, 2, (-1, 2)), 1, (-1, 2)).transpose(2, 3)


class HalvingMaxPool(nn.Module):
    """`nn.MaxPool2d(3, stride=2, padding=1)`: as one kernel, or along one axis and then along the other."""

    def forward(self, grid: Tensor) -> Tensor:
        """Grid (N, F, H, W) to (N, F, h, w) with h = ceil(H / 2), w = ceil(W / 2)."""
        pooled = halving_max_pool(grid)
        if pooled is not None:
            return pooled
        if grid.shape[-2] % 2 or grid.shape[-1] % 2:
            return F.max_pool2d(grid, 3, 2, 1)
        return _halved(_halved(grid, 2), 3)


def _halved(grid: Tensor, axis: int) -> Tensor:
    """The largest of places 2 i - 1, 2 i and 2 i + 1 along an axis."""
    even, odd = torch.unflatten(grid, axis, (-1, 2)).unbind(axis + 1)
    largest = torch.maximum(even, odd)
    later = largest.narrow(axis, 1, largest.shape[axis] - 1)
    torch.maximum(later, odd.narrow(axis, 0, odd.shape[axis] - 1), out=later)
    return largest
