"""A convolution with its bias, a sum and Relu inside: on a GPU one pass over the grid instead of three.

Shapes: N images, I O channels in and out, k kernel size, H W grid, h w output grid.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.models.grid_passes import relu_gradient

NO_DILATION, NO_ZEROS = (1, 1), (0, 0)


def conv_relu(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    *,
    stride: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0),
    groups: int = 1,
    other: Tensor | None = None,
) -> Tensor:
    """Relu of a convolution (N, I, H, W) to (N, O, h, w), plus `other`; it can be trained through.

    Args:
        input: (N, I, H, W); on a GPU all tensors have one dtype.
        weight: (O, I / groups, k, k).
        bias: (O,).
        stride: down and across.
        padding: zeros on both sides, down and across.
        groups: of channels that do not mix.
        other: (N, O, h, w), added before Relu.
    """
    output: Tensor = _ConvRelu.apply(input, weight, bias, other, tuple(stride), tuple(padding), groups)  # type: ignore[no-untyped-call]
    return output


class _ConvRelu(torch.autograd.Function):
    """The backward pass needs the output only, not the sum that Relu cut off."""

    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        weight: Tensor,
        bias: Tensor,
        other: Tensor | None,
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        groups: int,
    ) -> Tensor:
        layout = (stride, padding, NO_DILATION, groups)
        if not (input.is_cuda and torch.version.cuda is not None and torch.backends.cudnn.enabled):
            summed = F.conv2d(input, weight, bias, *layout)
            output = F.relu(summed if other is None else summed + other)
        elif other is None:
            output = torch.cudnn_convolution_relu(input, weight, bias, *layout)
        else:
            output = torch.cudnn_convolution_add_relu(input, weight, other, 1.0, bias, *layout)
        ctx.save_for_backward(input, weight, output)
        ctx.layout = (stride, padding, groups)
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        input, weight, output = ctx.saved_tensors
        stride, padding, groups = ctx.layout
        passed, of_bias = relu_gradient(gradient, output)  # (N, O, h, w) and (O,)
        of_input, of_weight, _ = torch.ops.aten.convolution_backward(
            passed,
            input,
            weight,
            None,
            stride,
            padding,
            NO_DILATION,
            False,
            NO_ZEROS,
            groups,
            [*ctx.needs_input_grad[:2], False],
        )
        of_other = passed if ctx.needs_input_grad[3] else None
        return of_input, of_weight, of_bias, of_other, None, None, None
