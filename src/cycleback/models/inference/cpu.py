"""Convolutions for a CPU with BatchNorm folded in and the activation inside (oneDNN).

Shapes: N images, O I channels out and in, k kernel size, H W input size, h w output size.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.errors import warn_slow_path
from cycleback.models.layers import ConvNorm, FoldedConv

FUSED_ACTIVATIONS: dict[type[nn.Module], tuple[str, list[float]]] = {
    nn.Identity: ("none", []),
    nn.ReLU: ("relu", []),
    nn.ReLU6: ("hardtanh", [0.0, 6.0]),
}


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread: several wait for each other on a busy machine, and may round another way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
