"""The interface of a base network: frames to feature maps. Each base normalises its own input.

A frame is an image with values in [0, 1], or a vector: a pose, or features computed elsewhere.

Shapes: N frames, H W pixels, V size of a vector, F feature channels, h w size of the feature map (H / stride,
W / stride, rounded up in the networks built here).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

InputKind = Literal["images", "vectors"]
Colour = tuple[float, float, float]


class Base(nn.Module, ABC):
    """A base network. It normalises the pixels itself, so preprocessing cannot disagree with the weights."""

    input_kind: InputKind = "images"  # what a frame is: "images" (3, H, W), or "vectors" (V,)
    in_channels: int = 3  # size of a frame's first axis: colours of an image, size of a vector
    channels: int  # feature channels of the output (F)
    stride: int  # pixels of the image per step of the feature map
    needs_whole_videos: bool = False  # whether the features of a frame depend on its whole video
    float32_parts: tuple[str, ...] = ()  # layers that lose too much accuracy in bfloat16, by name
    preprocess: "Normalize"  # of bases with the default `normalize`

    def normalize(self, images: Tensor) -> Tensor:
        """Scale images (N, 3, H, W) in [0, 1] as the weights expect them."""
        output: Tensor = self.preprocess(images)
        return output

    @abstractmethod
    def feature_map(self, images: Tensor) -> Tensor:
        """Map normalised images (N, 3, H, W) to features (N, F, h, w)."""

    def forward(self, images: Tensor) -> Tensor:
        """Map images (N, 3, H, W), float in [0, 1], to features (N, F, h, w)."""
        if images.is_cuda and images.ndim == 4:
            images = images.contiguous(memory_format=torch.channels_last)  # the fast layout on a GPU
        return self.feature_map(self.normalize(images))

    @property
    def traits(self) -> dict[str, object]:
        """Settings besides the weights that change the features; part of the fingerprint."""
        return {}

    @property
    def blueprint(self) -> dict[str, Any]:
        """JSON values that `rebuild` needs besides the options; saved beside the weights."""
        return {}

    @classmethod
    def rebuild(cls, blueprint: Mapping[str, Any], **options: Any) -> Self:
        """Build the same network for weights that are loaded later, without any pretrained file.

        Takes the `blueprint` of the saved base and the keyword arguments it was built with.
        """
        return cls(**options)

    @property
    def frame_shape(self) -> str:
        """The shape of a frame, for messages."""
        return f"{self.in_channels}, H, W" if self.input_kind == "images" else f"V={self.in_channels}"

    def feature_map_size(self, height: int, width: int) -> tuple[int, int]:
        """The size (h, w) of the feature map of an image of `height` x `width` pixels."""
        return -(-height // self.stride), -(-width // self.stride)

    def to_float(self, frames: Tensor) -> Tensor:
        """Convert frames (N, ...) for `forward`: uint8 is divided by 255, float in [0, 1] passes through."""
        if frames.dtype == torch.uint8:
            return frames.to(torch.float32).div_(255.0)
        if not frames.is_floating_point():
            raise TypeError(f"images must be uint8, or float in [0, 1], got {frames.dtype}")
        return frames

    def prepare(self, video: Tensor) -> Tensor:
        """Prepare a whole video (N, ...) before frames are sampled from it. Images need nothing."""
        return video


@dataclass(frozen=True)
class Preprocessing:
    """(scale * pixels - mean) / std for pixels in [0, 1], with one mean and std per colour."""

    scale: float
    mean: Colour
    std: Colour

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Read the output of `dataclasses.asdict`; other keys are ignored."""
        mean, std = (
            (float(red), float(green), float(blue)) for red, green, blue in (fields["mean"], fields["std"])
        )
        return cls(float(fields["scale"]), mean, std)


class Normalize(nn.Module):
    """Apply a `Preprocessing` on the device of the images. It adds nothing to the saved weights."""

    factor: Tensor
    shift: Tensor

    def __init__(self, preprocessing: Preprocessing) -> None:
        super().__init__()
        std = torch.tensor(preprocessing.std)[:, None, None]
        mean = torch.tensor(preprocessing.mean)[:, None, None]
        self.register_buffer("factor", preprocessing.scale / std, persistent=False)
        self.register_buffer("shift", mean / std, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Normalise images (N, 3, H, W) in [0, 1]."""
        return images * self.factor - self.shift
