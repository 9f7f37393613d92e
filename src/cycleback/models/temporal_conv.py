"""A 3x3x3 convolution over context frames, with the weights of `nn.Conv3d(I, O, 3, padding=1)`.

A clip of C frames needs 3 C - 2 products of a frame and a temporal slice of the kernel. The rest of the 3 C
products of a padded Conv3d, a third of them at the usual C = 2, multiply zeros. On a CPU they are left out;
on a GPU, where starting an operation costs more, a short clip is one 2-D convolution over its frames side by
side.

Shapes: C context frames, M clips, N frames of a whole video, I O channels in and out, h w grid. Clips are
laid out (C, M, ...), so that "all frames but the first" is one block of memory.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BEFORE, CENTER, AFTER = 0, 1, 2  # temporal slices of the kernel: weights of the previous, own and next frame
STACKED_FRAMES = 3  # side by side C * C products are made: none too many for two frames, a quarter for three


class TemporalConv(nn.Module):
    """`nn.Conv3d(I, O, 3, padding=1)` on clips laid out (C, M, I, h, w), with the same weights and keys."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, 3, 3, 3))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu")

    def product(self, frames: Tensor, part: int) -> Tensor:
        """Frames (N, I, h, w) convolved with one temporal slice of the kernel: (N, O, h, w)."""
        bias = self.bias if part == CENTER else None
        return F.conv2d(frames, self.weight[:, :, part], bias, padding=1)

    def forward(self, clips: Tensor) -> Tensor:
        """Clips (C, M, I, h, w) to (C, M, O, h, w)."""
        if clips.device.type == "cpu":
            return self.by_slices(clips)
        return self.by_stacking(clips) if len(clips) <= STACKED_FRAMES else self.by_conv3d(clips)

    def by_slices(self, clips: Tensor) -> Tensor:
        """`forward` as three 2-D convolutions, each over the frames it can reach: faster on a CPU."""
        return self._add(
            self._clip_product(clips, CENTER),
            self._clip_product(clips[:-1], BEFORE),
            self._clip_product(clips[1:], AFTER),
        )

    def by_stacking(self, clips: Tensor) -> Tensor:
        """`forward` as one 2-D convolution from all channels of all frames to all channels of all frames."""
        num_frames = len(clips)
        stacked = clips.transpose(0, 1).flatten(1, 2)  # (M, C * I, h, w)
        stacked = stacked.contiguous(memory_format=torch.channels_last)
        output = F.conv2d(
            stacked, stacked_kernel(self.weight, num_frames), self.bias.repeat(num_frames), padding=1
        )
        return torch.unflatten(output, 1, (num_frames, -1)).transpose(0, 1)

    def by_conv3d(self, clips: Tensor) -> Tensor:
        """`forward` as one 3-D convolution: for long clips on a GPU."""
        layout = torch.channels_last_3d
        stacked = clips.permute(1, 2, 0, 3, 4).contiguous(memory_format=layout)  # (M, I, C, h, w)
        output = F.conv3d(stacked, self.weight.contiguous(memory_format=layout), self.bias, padding=1)
        return output.permute(2, 0, 1, 3, 4)

    def products(self, frames: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The three products (N, O, h, w) of each frame (N, I, h, w): all that clips are made of."""
        return self.product(frames, BEFORE), self.product(frames, CENTER), self.product(frames, AFTER)

    def from_products(self, products: tuple[Tensor, ...], indices: Tensor) -> Tensor:
        """The output (C, M, O, h, w) for clips of frames `indices` (C, M), from `products` of the video."""
        before, center, after = products
        return self._add(center[indices], before[indices[:-1]], after[indices[1:]])

    def _clip_product(self, clips: Tensor, part: int) -> Tensor:
        """Clips (c, M, I, h, w) times one temporal slice: (c, M, O, h, w)."""
        if len(clips) == 0:
            return clips
        return torch.unflatten(self.product(clips.flatten(0, 1), part), 0, clips.shape[:2])

    @staticmethod
    def _add(center: Tensor, before: Tensor, after: Tensor) -> Tensor:
        """Sum center (C, ...), before (C - 1, ...) shifted one frame later and after one frame earlier."""
        sums = list(center.unbind(0))
        for position in range(len(sums) - 1):
            sums[position] = sums[position] + after[position]
            sums[position + 1] = sums[position + 1] + before[position]
        return torch.stack(sums)


def stacked_kernel(weight: Tensor, num_frames: int) -> Tensor:
    """A kernel (O, I, 3, 3, 3) over C frames side by side: (C * O, C * I, 3, 3).

    Block (p, q) is how frame q acts on frame p.
    """
    slices = weight.unbind(2)
    nothing = torch.zeros_like(slices[CENTER])
    frames = range(num_frames)
    blocks = [[slices[q - p + CENTER] if abs(q - p) <= 1 else nothing for q in frames] for p in frames]
    return torch.cat([torch.cat(row, dim=1) for row in blocks])
