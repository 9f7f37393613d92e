"""Operations on feature maps that training and inference share.

Each one exists because plain torch reads and writes GPU memory more often than needed:
BatchNorm folded into a convolution, convolution + bias + sum + ReLU in one step, the backward pass of ReLU
with the gradient of the bias, 3x3 max-pooling, and a first layer over blocks of 2 x 2 pixels.
All of them run on a CPU, too, with torch's own operations.

Shapes: N images, I O channels in and out, k kernel size, H W input size, h w output size.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.compilation import load_kernels

POOL_COLUMNS = 32  # outputs of a row that one program of the pooling kernel computes
BACKWARD_ROWS, BACKWARD_CHANNELS = 64, 128  # positions and channels that the backward kernel loads at once
BACKWARD_STEPS = 4  # loads per program
BLOCK_CHANNELS = 12  # 2 x 2 pixels of three colours
PADDED_CHANNELS = 16  # matrix units take channels in multiples of eight
NO_DILATION, NO_OUTPUT_PADDING = (1, 1), (0, 0)


def fold_batch_norm(weight: Tensor, bias: Tensor | None, norm: nn.Module) -> tuple[Tensor, Tensor]:
    """Fold BatchNorm with its running statistics into the `weight` (O, ...) and `bias` (O,) before it.

    Gradients reach the weights of both. `norm` is nn.Identity where there is no BatchNorm.
    """
    if isinstance(norm, nn.Identity):
        return weight, weight.new_zeros(len(weight)) if bias is None else bias
    norm = cast(nn.BatchNorm2d, norm)
    if norm.running_mean is None or norm.running_var is None:
        raise ValueError("BatchNorm without running statistics cannot be folded into a convolution")
    scale = norm.weight * (norm.running_var + norm.eps).rsqrt()  # (O,)
    shift = norm.bias - norm.running_mean * scale
    folded = weight * scale.reshape(-1, *[1] * (weight.ndim - 1))
    return folded, shift if bias is None else bias * scale + shift


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
    """Apply a convolution, add `other` and apply ReLU: (N, I, H, W) to (N, O, h, w). Supports gradients.

    `weight` is (O, I / groups, k, k), `bias` (O,), `other` (N, O, h, w). Stride and padding (zeros on both
    sides) are vertical and horizontal. On a GPU all tensors have the same dtype.
    """
    output: Tensor = _ConvRelu.apply(input, weight, bias, other, tuple(stride), tuple(padding), groups)  # type: ignore[no-untyped-call]
    return output


class _ConvRelu(torch.autograd.Function):
    """The backward pass needs the output only, so the sum before ReLU is never stored."""

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
        before_relu, of_bias = relu_backward(gradient, output)  # (N, O, h, w) and (O,)
        of_input, of_weight, _ = torch.ops.aten.convolution_backward(
            before_relu,
            input,
            weight,
            None,
            stride,
            padding,
            NO_DILATION,
            False,
            NO_OUTPUT_PADDING,
            groups,
            [*ctx.needs_input_grad[:2], False],
        )
        of_other = before_relu if ctx.needs_input_grad[3] else None
        return of_input, of_weight, of_bias, of_other, None, None, None


def relu_backward(gradient: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient before ReLU (N, O, H, W) and its sum (O,), which is the gradient of the bias.

    `output` (N, O, H, W) is that of ReLU, and `gradient` its gradient.
    """
    has_one_type = gradient.shape == output.shape and gradient.dtype == output.dtype
    kernels = _kernels() if has_one_type and _fits_kernels(gradient) and _fits_kernels(output) else None
    if kernels is None:
        before_relu = torch.ops.aten.threshold_backward(gradient, output, 0)
        return before_relu, before_relu.sum(dim=(0, 2, 3))
    with torch.cuda.device(gradient.device):
        return _run_relu_backward(kernels, gradient, output)


def _run_relu_backward(kernels: Any, gradient: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
    channels, positions = output.shape[1], output.numel() // output.shape[1]
    programs = (-(-positions // (BACKWARD_ROWS * BACKWARD_STEPS)), -(-channels // BACKWARD_CHANNELS))
    before_relu = torch.empty_like(gradient)
    sums = torch.empty(programs[0], channels, device=gradient.device)
    kernels.relu_backward[programs](
        gradient,
        output,
        before_relu,
        sums,
        positions,
        channels,
        rows=BACKWARD_ROWS,
        columns=BACKWARD_CHANNELS,
        steps=BACKWARD_STEPS,
    )
    return before_relu, sums.sum(dim=0).to(gradient.dtype)


def max_pool(input: Tensor) -> Tensor:
    """Pool like `nn.MaxPool2d(3, stride=2, padding=1)`: (N, O, H, W) to (N, O, h, w)."""
    channels, has_gradient = input.shape[1], input.requires_grad and torch.is_grad_enabled()
    has_fit_size = channels & (channels - 1) == 0 and input.numel() < 2**31  # the kernel indexes in 32 bits
    kernels = _kernels() if has_fit_size and not has_gradient and _fits_kernels(input) else None
    if kernels is None:
        return F.max_pool2d(input, 3, 2, 1)
    with torch.cuda.device(input.device):
        return _run_max_pool(kernels, input)


def _run_max_pool(kernels: Any, input: Tensor) -> Tensor:
    count, channels, height, width = input.shape
    rows, columns = -(-height // 2), -(-width // 2)
    shape = (count, channels, rows, columns)
    pooled = torch.empty(shape, dtype=input.dtype, device=input.device, memory_format=torch.channels_last)
    programs = (count * rows, -(-columns // POOL_COLUMNS))
    kernels.max_pool[programs](
        input, pooled, height, width, rows, columns, channels=channels, places=POOL_COLUMNS
    )
    return pooled


def _fits_kernels(tensor: Tensor) -> bool:
    """Whether the Triton kernels can run on a tensor."""
    is_channels_last = tensor.is_contiguous(memory_format=torch.channels_last)
    return tensor.is_cuda and is_channels_last and not torch.compiler.is_compiling()


@cache
def _kernels() -> Any:
    purpose = "the Triton kernels for max-pooling and the ReLU gradient"
    return load_kernels("cycleback.models._triton_kernels", _try_out, purpose=purpose)


def _try_out(kernels: Any) -> None:
    tiny = torch.zeros(1, 16, 2, 2, device="cuda", dtype=torch.bfloat16)
    tiny = tiny.contiguous(memory_format=torch.channels_last)
    _run_max_pool(kernels, tiny)
    _run_relu_backward(kernels, tiny, tiny)


class Reach(NamedTuple):
    """How many blocks a kernel covers before and after the block of its output."""

    before: int
    after: int


def block_reach(size: int, padding: int) -> Reach:
    """The reach, in blocks of 2 pixels, of a kernel of `size` pixels with `padding` zeros on every side."""
    return Reach((padding + 1) // 2, (size - 1 - padding) // 2)


def to_block_kernel(kernel: Tensor, *, padding: int) -> Tensor:
    """Rewrite a kernel (O, 3, k, k) of stride 2 as one of stride 1 over pixel blocks: (O, 16, n, n)."""
    size, (before, after) = kernel.shape[-1], block_reach(kernel.shape[-1], padding)
    count, front = before + after + 1, 2 * before - padding
    padded = F.pad(kernel, (front, 2 * count - size - front) * 2)  # (O, 3, 2 n, 2 n)
    blocks = padded.reshape(len(kernel), 3, count, 2, count, 2).permute(0, 3, 5, 1, 2, 4)
    blocks = blocks.reshape(len(kernel), BLOCK_CHANNELS, count, count)
    return F.pad(blocks, (0, 0, 0, 0, 0, PADDED_CHANNELS - BLOCK_CHANNELS))


def to_pixel_blocks(
    images: Tensor,
    reach: Reach,
    *,
    dtype: torch.dtype,
    normalization: tuple[Tensor, Tensor] | None = None,
    count: int | None = None,
) -> Tensor:
    """Rearrange images (N, 3, H, W) into blocks of 2 x 2 pixels: (count, 16, h + n - 1, w + n - 1).

    A first layer of stride 2 becomes a convolution of stride 1 over these blocks. The matrix units of a GPU
    cannot use three channels well; a block has twelve. The `reach` of the kernel sets the zeros around.
    `normalization` is scale (3,) and shift (3,) of the colours. Blank images fill the output up to `count`.
    """
    number, _, height, width = images.shape
    rows, columns, sides = -(-height // 2), -(-width // 2), sum(reach)
    shape = (count or number, rows + sides, columns + sides, PADDED_CHANNELS)
    padded = torch.zeros(shape, dtype=dtype, device=images.device)
    inside = padded[:number, reach.before : reach.before + rows, reach.before : reach.before + columns]
    blocks = torch.unflatten(inside[..., :BLOCK_CHANNELS], -1, (2, 2, 3))  # (N, h, w, 2, 2, 3)
    pixels, is_even = images.movedim(1, -1), height % 2 == width % 2 == 0  # (N, H, W, 3)
    if normalization is not None and is_even:
        scale, shift = normalization
        torch.addcmul(shift, _split_blocks(pixels), scale, out=blocks)
        return padded.permute(0, 3, 1, 2)
    if normalization is not None:
        scale, shift = normalization
        pixels = torch.addcmul(shift, pixels, scale)
    if not is_even:
        pixels = F.pad(pixels, (0, 0, 0, width % 2, 0, height % 2))
    blocks.copy_(_split_blocks(pixels))
    return padded.permute(0, 3, 1, 2)


def _split_blocks(pixels: Tensor) -> Tensor:
    """View pixels (N, H, W, 3) of even size as (N, h, w, 2, 2, 3)."""
    return torch.unflatten(torch.unflatten(pixels, 2, (-1, 2)), 1, (-1, 2)).transpose(2, 3)
