"""What every base network is: frames to a grid of features, with its own normalisation inside.

A frame is an image with values in [0, 1], or a vector: a pose, or features computed elsewhere.

Shapes: N frames, H W pixels, V numbers of a vector, F feature channels, h w grid (H / stride, W / stride,
rounded up in the networks built here); I, O channels of a layer, in and out.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.fused_conv import conv_relu
from cycleback.models.pixel_blocks import block_kernel, pixel_blocks, reach_of

InputKind = Literal["images", "vectors"]


class Base(nn.Module, ABC):
    """A base network. It normalises the pixels itself, so preprocessing cannot disagree with the weights."""

    input_kind: InputKind = "images"
    """What a frame is: "images" (3, H, W), or "vectors" (V,)."""
    in_channels: int = 3
    """Size of a frame's first axis: colours of an image, numbers of a vector."""
    channels: int
    """Feature channels of the output (F)."""
    stride: int
    """Pixels of the image under one step of the output grid."""
    float32_parts: tuple[str, ...] = ()
    """Names of the parts that lose too much in bfloat16 (see `fast_inference`)."""

    @abstractmethod
    def normalize(self, images: Tensor) -> Tensor:
        """Images (N, 3, H, W) in [0, 1] on the scale the weights were trained with."""

    @abstractmethod
    def grid(self, images: Tensor) -> Tensor:
        """Normalised images (N, 3, H, W) to features (N, F, h, w)."""

    def forward(self, images: Tensor) -> Tensor:
        """Images (N, 3, H, W), float in [0, 1], to features (N, F, h, w)."""
        if images.is_cuda and images.ndim == 4:
            images = images.contiguous(memory_format=torch.channels_last)  # what a GPU's convolutions want
        return self.grid(self.normalize(images))

    @property
    def traits(self) -> dict[str, object]:
        """What changes the features besides the weights, for fingerprints."""
        return {}

    @property
    def blueprint(self) -> dict[str, Any]:
        """What `rebuild` needs besides the options; must fit into JSON. It is saved beside the weights."""
        return {}

    @classmethod
    def rebuild(cls, blueprint: Mapping[str, Any], **options: Any) -> Self:
        """The same network with weights yet to be filled: looks for no pretrained ones.

        Args:
            blueprint: the `blueprint` of the base that was saved.
            options: those it was built with.
        """
        return cls(**options)

    @property
    def frame_shape(self) -> str:
        """The shape of a frame, for messages."""
        return f"{self.in_channels}, H, W" if self.input_kind == "images" else f"V={self.in_channels}"

    def grid_size(self, height: int, width: int) -> tuple[int, int]:
        """The grid (h, w) of features that an image of `height` x `width` pixels gives."""
        return -(-height // self.stride), -(-width // self.stride)

    def as_float(self, frames: Tensor) -> Tensor:
        """Frames (N, ...) as `forward` wants them: uint8 images become float in [0, 1]."""
        return to_unit_range(frames)

    def prepare(self, video: Tensor) -> Tensor:
        """What a whole video (N, ...) needs before its frames are taken apart: nothing, for images."""
        return video


def to_unit_range(images: Tensor) -> Tensor:
    """Images (..., 3, H, W) as float in [0, 1]: uint8 is divided by 255, float passes through."""
    if images.dtype == torch.uint8:
        return images.to(torch.float32).div_(255.0)
    if not images.is_floating_point():
        raise TypeError(f"images must be uint8, or float in [0, 1], got {images.dtype}")
    return images


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Zeros before and after an axis so that the output has ceil(size / stride) steps.

    TensorFlow's "SAME" rule: an odd zero goes after. Weights trained there need exactly this.
    """
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


class SameConv2d(nn.Conv2d):
    """A convolution with ceil(H / stride) x ceil(W / stride) outputs, padded by `same_padding`."""

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Grid (N, I, H, W) to (N, O, ceil(H / stride), ceil(W / stride))."""
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
        """Grid (N, F, H, W) to (N, F, ceil(H / stride), ceil(W / stride))."""
        top, bottom = same_padding(input.shape[-2], self.kernel, self.stride)
        left, right = same_padding(input.shape[-1], self.kernel, self.stride)
        padded = F.pad(input, (left, right, top, bottom), value=float("-inf"))
        return F.max_pool2d(padded, self.kernel, self.stride)


class ConvNorm(nn.Module):
    """Convolution, BatchNorm and an optional activation: the brick that `fast_inference` fuses.

    Where BatchNorm does not take its statistics from the batch, it is a factor and a shift: these go into the
    convolution, which saves passes over the grid, forward and backward.
    `padding` is the number of zeros on every side, or None for the zeros of `same_padding`.
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
    ) -> None:
        super().__init__()
        self.zeros = padding
        kind, zeros = (SameConv2d, 0) if padding is None else (nn.Conv2d, padding)
        sizes = (in_channels, out_channels, kernel)
        self.conv: nn.Conv2d = kind(*sizes, stride=stride, padding=zeros, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(out_channels, eps=eps, momentum=momentum)
        self.activation = nn.Identity() if activation is None else activation
        nn.init.kaiming_normal_(self.conv.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, input: Tensor) -> Tensor:
        """Grid (N, I, H, W) to (N, O, h, w), by default with h = ceil(H / stride), w = ceil(W / stride)."""
        if isinstance(self.activation, nn.ReLU) and self._can_fuse(input):
            return self._fused_relu(input)
        summed = self.norm(self.conv(input)) if self.norm.training else self.folded(input)
        output: Tensor = self.activation(summed)
        return output

    def plus_relu(self, input: Tensor, other: Tensor) -> Tensor:
        """Relu of the sum of `forward` and `other` (N, O, h, w)."""
        if isinstance(self.activation, nn.Identity) and self._can_fuse(input):
            return self._fused_relu(input, other)
        output: Tensor = self(input)
        return F.relu(output.add_(other), inplace=True)

    def _can_fuse(self, input: Tensor) -> bool:
        """Whether convolution and Relu can be one operation: in half precision on a GPU, statistics fixed."""
        is_half = input.is_cuda and torch.is_autocast_enabled("cuda") and not torch.compiler.is_compiling()
        return is_half and not self.norm.training and self.zeros is not None

    @property
    def can_take_blocks(self) -> bool:
        """Whether it is a first layer, on images, that can run over blocks of 2 x 2 pixels."""
        size, is_first = self.conv.kernel_size[0], (self.conv.in_channels, self.conv.stride[0]) == (3, 2)
        return is_first and self.zeros == (size - 1) / 2 and isinstance(self.activation, nn.ReLU)

    def _fused_relu(self, input: Tensor, other: Tensor | None = None) -> Tensor:
        dtype, conv = torch.get_autocast_dtype("cuda"), self.conv
        (weight, bias), stride, zeros = self.folded_weights(), conv.stride, self.zeros or 0
        if self.can_take_blocks and not input.requires_grad:
            input = pixel_blocks(input, reach_of(conv.kernel_size[0], zeros), dtype=dtype)
            weight, stride, zeros = block_kernel(weight, zeros=zeros), (1, 1), 0
        return conv_relu(
            input.to(dtype),
            weight.to(dtype).contiguous(memory_format=torch.channels_last),
            bias.to(dtype),
            stride=stride,
            padding=(zeros, zeros),
            groups=conv.groups,
            other=None if other is None else other.to(dtype),
        )

    def folded(self, input: Tensor) -> Tensor:
        """Convolution and BatchNorm with its running statistics, as one convolution."""
        weight, bias = self.folded_weights()
        output: Tensor = self.conv._conv_forward(input, weight, bias)
        return output

    def folded_weights(self) -> tuple[Tensor, Tensor]:
        """Weight (O, I / groups, k, k) and bias (O,) of that convolution; gradients reach all four parts."""
        norm = self.norm
        if norm.running_mean is None or norm.running_var is None:
            raise ValueError("BatchNorm without running statistics cannot be folded into a convolution")
        scale = norm.weight * (norm.running_var + norm.eps).rsqrt()  # (O,)
        return self.conv.weight * scale[:, None, None, None], norm.bias - norm.running_mean * scale
