"""A frozen copy of a base that runs several times faster, for computing features once.

Three things make the difference on a CPU: BatchNorm is folded into the convolutions, the activation runs
inside the convolution (oneDNN), and images go through in groups whose grids stay in the processor's cache.
A GPU in bfloat16 has a way of its own: `cycleback.models.gpu_base`.
"""

import copy
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.base import Base, ConvNorm, same_padding
from cycleback.models.gpu_base import GpuBase

Precision = Literal["float32", "bfloat16"]

PIXELS_PER_PASS = 16 * 112 * 112  # fastest group measured on a CPU: its grids fit the cache
FUSED_ACTIVATIONS: dict[type[nn.Module], tuple[str, list[float]]] = {
    nn.Identity: ("none", []),
    nn.ReLU: ("relu", []),
    nn.ReLU6: ("hardtanh", [0.0, 6.0]),
}


def has_fused_convolution(device: torch.device) -> bool:
    """Whether torch has oneDNN's convolution with an activation inside, for tensors on `device`."""
    available: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return device.type == "cpu" and available and hasattr(torch.ops.mkldnn, "_convolution_pointwise")


class FusedConv(nn.Module):
    """A `ConvNorm` as one operation: BatchNorm folded into the weights, activation inside the convolution."""

    def __init__(self, source: ConvNorm, *, dtype: torch.dtype) -> None:
        super().__init__()
        conv = source.conv
        kernel, bias = source.folded_weights()
        self.kernel, self.bias = kernel.detach(), bias.detach().to(dtype)  # (O, I / groups, k, k) and (O,)
        self.dtype, self.stride, self.groups = dtype, [conv.stride[0]] * 2, conv.groups
        self.size = conv.kernel_size[0]
        self.zeros = source.zeros
        self.activation = source.activation
        self.is_fused = (
            has_fused_convolution(self.kernel.device) and type(self.activation) in FUSED_ACTIVATIONS
        )
        self.planned_for: tuple[int, int] | None = None

    def padding_along(self, size: int) -> tuple[int, int]:
        """Zeros before and after an axis of `size` steps."""
        if self.zeros is None:
            return same_padding(size, self.size, self.stride[0])
        return self.zeros, self.zeros

    def plan(self, input: Tensor) -> None:
        """Choose weight and padding for grids of this height and width, laid out as oneDNN wants them.

        "SAME" padding may need one zero more after than before. A zero row in front of the kernel gives the
        same sums with equal padding, which saves a padded copy of the input.
        """
        before_h, after_h = self.padding_along(input.shape[-2])
        before_w, after_w = self.padding_along(input.shape[-1])
        weight = F.pad(self.kernel, (after_w - before_w, 0, after_h - before_h, 0)).to(self.dtype)
        weight = weight.contiguous(memory_format=torch.channels_last)
        self.padding = [after_h, after_w]
        if self.is_fused:
            weight = torch.ops.mkldnn._reorder_convolution_weight(
                weight, self.padding, self.stride, [1, 1], self.groups, list(input.shape)
            )
        self.weight, self.planned_for = weight, (input.shape[-2], input.shape[-1])

    def plus_relu(self, input: Tensor, other: Tensor) -> Tensor:
        """Relu of the sum of `forward` and `other` (N, O, h, w)."""
        output: Tensor = self(input)
        return F.relu(output.add_(other), inplace=True)

    def forward(self, input: Tensor) -> Tensor:
        """Grid (N, I, H, W) to (N, O, h, w), with the padding of the `ConvNorm` it was made of."""
        input = input.to(self.dtype)
        if self.planned_for != (input.shape[-2], input.shape[-1]):
            self.plan(input)
        if not self.is_fused:
            summed = F.conv2d(input, self.weight, self.bias, self.stride, self.padding, 1, self.groups)
            return self.activation(summed)  # type: ignore[no-any-return]
        name, numbers = FUSED_ACTIVATIONS[type(self.activation)]
        output: Tensor = torch.ops.mkldnn._convolution_pointwise(
            input, self.weight, self.bias, self.padding, self.stride, [1, 1], self.groups, name, numbers, ""
        )
        return output


class FastBase(nn.Module):
    """The frozen copy `fast_inference` returns; call it like the base. It keeps no gradient."""

    def __init__(self, network: Base, *, precision: Precision) -> None:
        super().__init__()
        self.network, self.precision = network, precision
        self.channels, self.stride = network.channels, network.stride
        is_fused = any(isinstance(module, FusedConv) for module in network.modules())
        self.is_autocast = precision == "bfloat16" and not is_fused

    @torch.no_grad()
    def forward(self, frames: Tensor) -> Tensor:
        """Frames, as `Encoder.features` takes them, to features (N, F, h, w) float32."""
        group = max(len(frames), 1)
        if frames.ndim == 4 and frames.device.type == "cpu":
            group = max(PIXELS_PER_PASS // (frames.shape[-2] * frames.shape[-1]), 1)
        starts = range(0, max(len(frames), 1), group)
        return torch.cat([self._features(frames[start : start + group]) for start in starts])

    def _features(self, frames: Tensor) -> Tensor:
        prepared = self.network.as_float(frames)
        if frames.ndim == 4:
            prepared = prepared.contiguous(memory_format=torch.channels_last)
        with torch.autocast(frames.device.type, torch.bfloat16, enabled=self.is_autocast):
            features: Tensor = self.network(prepared)
        return features.to(torch.float32).contiguous()


def fast_inference(base: Base, *, precision: Precision = "float32") -> FastBase | GpuBase:
    """A frozen, fast copy of `base` in evaluation mode; later changes of `base` do not reach it.

    Args:
        base: on the device where it will run. One built of `ConvNorm` gains most; networks of other libraries
            and bases without weights work, too.
        precision: "float32" gives the values of `base` up to rounding. "bfloat16" is up to twice as fast on
            processors with bfloat16 arithmetic, and for the pretrained base about 2 % off (root mean square);
            the parts named in `base.float32_parts` stay in float32. On a GPU the features are bfloat16, too.
    """
    if precision not in get_args(Precision):
        raise ValueError(f"precision must be one of {get_args(Precision)}, got {precision!r}")
    is_ours = any(isinstance(module, ConvNorm) for module in base.modules())
    if precision == "bfloat16" and is_ours and next(base.parameters()).is_cuda:
        return GpuBase(base).eval()
    network = copy.deepcopy(base).requires_grad_(False).eval()
    for name, module in list(network.named_modules()):
        if isinstance(module, ConvNorm):
            exact = any(name == part or name.startswith(f"{part}.") for part in base.float32_parts)
            dtype = torch.bfloat16 if precision == "bfloat16" and not exact else torch.float32
            parent, _, child = name.rpartition(".")
            setattr(network.get_submodule(parent), child, FusedConv(module, dtype=dtype))
    return FastBase(network, precision=precision).eval()
