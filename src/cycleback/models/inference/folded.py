"""Frozen copies of a base in which each convolution has its BatchNorm folded in.

On a CPU the activation runs inside the convolution, too (oneDNN). Other devices run it afterwards.

Shapes: N images, O I channels out and in, k kernel size, H W input size, h w output size.
"""

import copy
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.errors import warn_slow_path
from cycleback.models.base import Base
from cycleback.models.layers import ConvNorm, same_padding

FUSED_ACTIVATIONS: dict[type[nn.Module], tuple[str, list[float]]] = {
    nn.Identity: ("none", []),
    nn.ReLU: ("relu", []),
    nn.ReLU6: ("hardtanh", [0.0, 6.0]),
}


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


def has_fused_convolution(device: torch.device) -> bool:
    """Whether torch has oneDNN's convolution with an activation inside, for tensors on `device`."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    if hasattr(torch.ops.mkldnn, "_convolution_pointwise"):
        return True
    warn_slow_path("oneDNN's fused convolution", f"torch {torch.__version__} does not have it")
    return False


class CpuConv(FoldedConv):
    """A `FoldedConv` as one oneDNN operation, or as torch's convolution where oneDNN has none.

    "SAME" padding may need one more zero after than before. A zero row in front of the kernel gives the same
    sums with equal padding, which saves a padded copy of the input.
    """

    def __init__(self, source: ConvNorm, *, dtype: torch.dtype) -> None:
        super().__init__(source, dtype=dtype)
        self.is_fused = (
            has_fused_convolution(self.weight.device) and type(self.activation) in FUSED_ACTIVATIONS
        )
        self._planned_size: tuple[int, int] | None = None

    def forward(self, input: Tensor) -> Tensor:
        """Map (N, I, H, W) to (N, O, h, w), with the padding of the `ConvNorm` it was made of."""
        input = input.to(self.dtype)
        if self._planned_size != input.shape[-2:]:
            self._plan(input)
        if not self.is_fused:
            summed = F.conv2d(input, self._kernel, self.bias, self.stride, self._zeros, 1, self.groups)
            return self.activation(summed)  # type: ignore[no-any-return]
        name, limits = FUSED_ACTIVATIONS[type(self.activation)]
        output: Tensor = torch.ops.mkldnn._convolution_pointwise(
            input, self._kernel, self.bias, self._zeros, self.stride, [1, 1], self.groups, name, limits, ""
        )
        return output

    def _plan(self, input: Tensor) -> None:
        """Lay out the kernel for inputs of this height and width, as oneDNN wants it."""
        (top, bottom), (left, right) = self.padding_of(input)
        kernel = F.pad(self.weight, (right - left, 0, bottom - top, 0))
        kernel = kernel.contiguous(memory_format=torch.channels_last)
        self._zeros = [bottom, right]
        if self.is_fused:
            kernel = torch.ops.mkldnn._reorder_convolution_weight(
                kernel, self._zeros, self.stride, [1, 1], self.groups, list(input.shape)
            )
        self._kernel, self._planned_size = kernel, (input.shape[-2], input.shape[-1])


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
