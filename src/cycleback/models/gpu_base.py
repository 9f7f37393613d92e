"""A frozen copy of a base for a GPU, in bfloat16: BatchNorm, activation and residual inside the convolutions.

Shapes: N images, H W pixels, I O channels in and out, F feature channels, h w grid.
"""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.base import Base, ConvNorm, same_padding
from cycleback.models.fused_conv import conv_relu
from cycleback.models.gpu_bricks import SpaceToDepthConv, rounded


class GpuConv(nn.Module):
    """A `ConvNorm` as one convolution, with Relu inside where it has one."""

    def __init__(self, source: ConvNorm, *, dtype: torch.dtype) -> None:
        super().__init__()
        conv, (kernel, bias) = source.conv, source.folded_weights()
        self.weight = kernel.detach().to(dtype).contiguous(memory_format=torch.channels_last)
        self.bias, self.dtype, self.groups = bias.detach().to(dtype), dtype, conv.groups
        self.stride, self.size = (conv.stride[0],) * 2, conv.kernel_size[0]
        self.zeros = source.zeros
        self.activation = source.activation

    def forward(self, input: Tensor) -> Tensor:
        """Grid (N, I, H, W) to (N, O, h, w), with the padding of the `ConvNorm` it was made of."""
        if isinstance(self.activation, nn.ReLU) and self.dtype != torch.float32:
            return self._relu_of(input, None)
        input, padding = self._padded(input)
        summed = F.conv2d(input, self.weight, self.bias, self.stride, padding, 1, self.groups)
        output: Tensor = self.activation(summed)
        return output

    def plus_relu(self, input: Tensor, other: Tensor) -> Tensor:
        """Relu of the sum of `forward` and `other` (N, O, h, w)."""
        return self._relu_of(input, other)

    def _relu_of(self, input: Tensor, other: Tensor | None) -> Tensor:
        input, padding = self._padded(input)
        return conv_relu(
            input,
            self.weight,
            self.bias,
            stride=self.stride,
            padding=padding,
            groups=self.groups,
            other=other,
        )

    def _padded(self, input: Tensor) -> tuple[Tensor, tuple[int, int]]:
        """The input with the zeros that a convolution cannot add by itself, and those that it can."""
        input = input.to(self.dtype)
        if self.zeros is not None:
            return input, (self.zeros, self.zeros)
        (top, bottom), (left, right) = (
            same_padding(size, self.size, self.stride[0]) for size in input.shape[-2:]
        )
        if (top, left) == (bottom, right):
            return input, (top, left)
        return F.pad(input, (left, right, top, bottom)), (0, 0)


class GpuBase(nn.Module):
    """The frozen copy: call it like the base; its features are bfloat16 and laid out channels last.

    Args:
        base: its `float32_parts` stay in float32, but for a first layer that is rewritten.
        dtype: of the arithmetic; float32 serves to check the rewriting.
    """

    def __init__(self, base: Base, *, dtype: torch.dtype = torch.bfloat16) -> None:
        super().__init__()
        network = copy.deepcopy(base).requires_grad_(False).eval()
        black = torch.zeros(1, 3, 1, 1, device=next(base.parameters()).device)
        self.shift = network.normalize(black)  # normalising is a factor and a shift for each colour
        self.scale = (network.normalize(black + 1) - self.shift) / 255
        self.has_blocks = False
        for name, module in list(network.named_modules()):
            if isinstance(module, ConvNorm) and module.can_take_blocks:
                _replace(network, name, self._first_layer(module, dtype))
                self.has_blocks = True
            elif isinstance(module, ConvNorm):
                exact = any(name == part or name.startswith(f"{part}.") for part in base.float32_parts)
                _replace(network, name, GpuConv(module, dtype=torch.float32 if exact else dtype))
        self.network, self.channels, self.stride = network, network.channels, network.stride

    @torch.no_grad()
    def forward(self, frames: Tensor) -> Tensor:
        """Images (N, 3, H, W), uint8 or float in [0, 1], to features (N, F, h, w)."""
        return self.network.grid(frames if self.has_blocks else self._normalised(frames))[: len(frames)]

    def _normalised(self, frames: Tensor) -> Tensor:
        """Normalised images, and blank ones up to a round number."""
        scale = self.scale if frames.dtype == torch.uint8 else 255 * self.scale
        shape = (rounded(len(frames)), *frames.shape[1:])
        images = torch.empty(shape, device=frames.device, memory_format=torch.channels_last)
        torch.addcmul(self.shift, frames, scale, out=images[: len(frames)])
        images[len(frames) :] = 0
        return images

    def _first_layer(self, module: ConvNorm, dtype: torch.dtype) -> SpaceToDepthConv:
        """The layer that the images enter, which also normalises them."""
        kernel, bias = module.folded_weights()
        return SpaceToDepthConv(
            kernel.detach(),
            bias.detach(),
            zeros=module.zeros or 0,
            scale=self.scale.flatten(),
            shift=self.shift.flatten(),
            dtype=dtype,
        )


def _replace(network: nn.Module, name: str, part: nn.Module) -> None:
    parent, _, child = name.rpartition(".")
    setattr(network.get_submodule(parent), child, part)
