"""Frozen copies of a base in which each convolution has its BatchNorm folded in.

Shapes: O I channels out and in, k kernel size.
"""

import copy
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.base import Base
from cycleback.models.layers import ConvNorm, same_padding


class FoldedConv(nn.Module):
    """A frozen `ConvNorm` as one convolution. Subclasses choose the operation for their device."""

    def __init__(self, source: ConvNorm, *, dtype: torch.dtype) -> None:
        super().__init__()
        conv, (weight, bias) = source.conv, source.fold()
        weight = weight.detach().to(dtype)
        self.weight = weight.contiguous(memory_format=torch.channels_last)  # (O, I / groups, k, k)
        self.bias, self.dtype = bias.detach().to(dtype), dtype
        self.stride, self.groups, self.activation = (conv.stride[0],) * 2, conv.groups, source.activation
        self._size, self._padding = conv.kernel_size[0], source.padding

    def padding_of(self, input: Tensor) -> tuple[tuple[int, int], tuple[int, int]]:
        """The zeros (top, bottom) and (left, right) around an input (N, I, H, W)."""
        if self._padding is not None:
            return (self._padding, self._padding), (self._padding, self._padding)
        height, width = input.shape[-2:]
        rows = same_padding(height, self._size, self.stride[0])
        return rows, same_padding(width, self._size, self.stride[0])

    def add_relu(self, input: Tensor, other: Tensor) -> Tensor:
        """Apply ReLU to the sum of `forward(input)` and `other` (N, O, h, w)."""
        output: Tensor = self(input)
        return F.relu(output.add_(other), inplace=True)


def freeze_copy(base: Base, replace: Callable[[ConvNorm, bool], nn.Module]) -> Base:
    """Copy a base without gradients, in evaluation mode, with every `ConvNorm` replaced.

    `replace` is called with each layer, and whether it is one of the base's `float32_parts`.
    """
    network = copy.deepcopy(base).requires_grad_(False).eval()
    for name, module in list(network.named_modules()):
        if isinstance(module, ConvNorm):
            is_float32 = any(f"{name}.".startswith(f"{part}.") for part in base.float32_parts)
            parent, _, child = name.rpartition(".")
            setattr(network.get_submodule(parent), child, replace(module, is_float32))
    return network
