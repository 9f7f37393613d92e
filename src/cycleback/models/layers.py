"""Layers that the bases are built of: convolution with BatchNorm, TensorFlow's "SAME" padding, max-pooling.

`FoldedConv` and `freeze_copy` make frozen copies for inference, with BatchNorm folded into the convolution.

Shapes: N images, I O channels in and out, k kernel size, H W input size, h w output size.
"""

import copy
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.base import Base
from cycleback.models.ops import (
    block_reach,
    conv_relu,
    fold_batch_norm,
    max_pool,
    to_block_kernel,
    to_pixel_blocks,
)


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """The zeros before and after an axis that give ceil(size / stride) outputs.

    This is TensorFlow's "SAME" rule: an odd zero goes after. Weights trained there need exactly this.
    """
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


class SameConv2d(nn.Conv2d):
    """A convolution with ceil(H / stride) x ceil(W / stride) outputs, padded by `same_padding`."""

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Map (N, I, H, W) to (N, O, ceil(H / stride), ceil(W / stride))."""
        top, bottom = same_padding(input.shape[-2], self.kernel_size[0], self.stride[0])
        left, right = same_padding(input.shape[-1], self.kernel_size[1], self.stride[1])
        padding = (top, left)
        if padding != (bottom, right):
            input, padding = F.pad(input, (left, right, top, bottom)), (0, 0)
        return F.conv2d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class SameMaxPool2d(nn.Module):
    """Max-pooling with ceil(H / stride) x ceil(W / stride) outputs, padded by `same_padding`."""

    def __init__(self, kernel: int, *, stride: int) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride

    def forward(self, input: Tensor) -> Tensor:
        """Map (N, I, H, W) to (N, I, ceil(H / stride), ceil(W / stride))."""
        top, bottom = same_padding(input.shape[-2], self.kernel, self.stride)
        left, right = same_padding(input.shape[-1], self.kernel, self.stride)
        padded = F.pad(input, (left, right, top, bottom), value=float("-inf"))
        return F.max_pool2d(padded, self.kernel, self.stride)


class MaxPool(nn.Module):
    """`nn.MaxPool2d(3, stride=2, padding=1)`, with a faster kernel on a GPU."""

    def forward(self, input: Tensor) -> Tensor:
        """Map (N, I, H, W) to (N, I, ceil(H / 2), ceil(W / 2))."""
        return max_pool(input)


class ConvNorm(nn.Module):
    """Convolution, BatchNorm and an optional activation: the layer that `fast_inference` replaces.

    With running statistics BatchNorm is a factor and a shift per channel. They are then folded into the
    convolution, which saves memory traffic in the forward and the backward pass.
    `padding` is the number of zeros on every side, or None for `same_padding`. `has_norm` is False for
    published weights with BatchNorm already folded in: the convolution then has a bias instead.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: int,
        *,
        stride: int = 1,
        groups: int = 1,
        padding: int | None = None,
        eps: float = 1e-5,
        momentum: float = 0.1,
        activation: nn.Module | None = None,
        has_norm: bool = True,
    ) -> None:
        super().__init__()
        self.padding = padding
        kind, zeros = (SameConv2d, 0) if padding is None else (nn.Conv2d, padding)
        sizes, bias = (in_channels, out_channels, kernel), not has_norm
        self.conv: nn.Conv2d = kind(*sizes, stride=stride, padding=zeros, groups=groups, bias=bias)
        self.norm: nn.Module = nn.Identity()
        if has_norm:
            self.norm = nn.BatchNorm2d(out_channels, eps=eps, momentum=momentum)
        self.activation = nn.Identity() if activation is None else activation
        nn.init.kaiming_normal_(self.conv.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, input: Tensor) -> Tensor:
        """Map (N, I, H, W) to (N, O, h, w), by default with h = ceil(H / stride), w = ceil(W / stride)."""
        if isinstance(self.activation, nn.ReLU) and self._can_fuse(input):
            return self._conv_relu(input)
        if self.norm.training:
            summed = self.norm(self.conv(input))
        else:
            summed = self.conv._conv_forward(input, *self.fold())
        output: Tensor = self.activation(summed)
        return output

    def add_relu(self, input: Tensor, other: Tensor) -> Tensor:
        """Apply ReLU to the sum of `forward(input)` and `other` (N, O, h, w)."""
        if isinstance(self.activation, nn.Identity) and self._can_fuse(input):
            return self._conv_relu(input, other)
        output: Tensor = self(input)
        return F.relu(output.add_(other), inplace=True)

    def fold(self) -> tuple[Tensor, Tensor]:
        """The weight (O, I / groups, k, k) and bias (O,) of convolution and BatchNorm together."""
        return fold_batch_norm(self.conv.weight, self.conv.bias, self.norm)

    @property
    def can_use_pixel_blocks(self) -> bool:
        """Whether this is a first layer, on images, that can run over blocks of 2 x 2 pixels."""
        size, is_first = self.conv.kernel_size[0], (self.conv.in_channels, self.conv.stride[0]) == (3, 2)
        return is_first and self.padding == (size - 1) / 2 and isinstance(self.activation, nn.ReLU)

    def _can_fuse(self, input: Tensor) -> bool:
        """Whether convolution and ReLU can be one operation: half precision on a GPU, fixed statistics."""
        is_half = input.is_cuda and torch.is_autocast_enabled("cuda") and not torch.compiler.is_compiling()
        return is_half and not self.norm.training and self.padding is not None

    def _conv_relu(self, input: Tensor, other: Tensor | None = None) -> Tensor:
        dtype, conv = torch.get_autocast_dtype("cuda"), self.conv
        (weight, bias), stride, padding = self.fold(), conv.stride, self.padding or 0
        if self.can_use_pixel_blocks and not input.requires_grad:
            input = to_pixel_blocks(input, block_reach(conv.kernel_size[0], padding), dtype=dtype)
            weight, stride, padding = to_block_kernel(weight, padding=padding), (1, 1), 0
        return conv_relu(
            input.to(dtype),
            weight.to(dtype).contiguous(memory_format=torch.channels_last),
            bias.to(dtype),
            stride=stride,
            padding=(padding, padding),
            groups=conv.groups,
            other=None if other is None else other.to(dtype),
        )


class InvertedBottleneck(nn.Module):
    """Expand, filter each channel separately, project; add the input where the shapes agree.

    `conv` builds the layers: it takes channels in and out, the kernel size, `relu`, `stride` and `groups`.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        conv: Callable[..., ConvNorm],
        kernel: int,
        stride: int,
        expansion: int,
    ) -> None:
        super().__init__()
        hidden = inputs * expansion
        self.expand = conv(inputs, hidden, 1) if expansion > 1 else nn.Identity()
        self.depthwise = conv(hidden, hidden, kernel, stride=stride, groups=hidden)
        self.project = conv(hidden, outputs, 1, relu=False)
        self.has_skip = stride == 1 and inputs == outputs

    def forward(self, input: Tensor) -> Tensor:
        """Map (N, I, h, w) to (N, O, h / stride, w / stride)."""
        output: Tensor = self.project(self.depthwise(self.expand(input)))
        return output + input if self.has_skip else output


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
