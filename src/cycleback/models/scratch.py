"""Bases to train from scratch: a light one for a CPU, and the paper's VGG-M."""

from itertools import pairwise

from torch import Tensor, nn

from cycleback.models.base import Base
from cycleback.models.layers import ConvNorm, SameMaxPool2d

VGGM_STAGES = ((64, 128), (128, 256), (256, 512))  # channels in and out of conv2, conv3, conv4


class _ScratchBase(Base):
    """A base whose `layers` run one after another on pixels in [-1, 1]."""

    layers: nn.Sequential

    def normalize(self, images: Tensor) -> Tensor:
        """Scale images (N, 3, H, W) from [0, 1] to [-1, 1]."""
        return images * 2.0 - 1.0

    def feature_map(self, images: Tensor) -> Tensor:
        """Map normalised images (N, 3, H, W) to features (N, F, h, w)."""
        output: Tensor = self.layers(images)
        return output


class SmallBase(_ScratchBase):
    """Four 3x3 convolutions of stride 2, each with BatchNorm and ReLU: stride 16, 4 x `width` channels."""

    def __init__(self, *, width: int = 32) -> None:
        super().__init__()
        if width < 1:
            raise ValueError(f"width must be at least 1, got {width}")
        sizes = (3, width, 2 * width, 4 * width, 4 * width)
        self.layers = nn.Sequential(
            *(_conv(inputs, outputs, 3, stride=2) for inputs, outputs in pairwise(sizes))
        )
        self.channels, self.stride = sizes[-1], 16


class VGGMBase(_ScratchBase):
    """The paper's VGG-M-like network of seven convolutions: 512 channels at stride 16.

    See the table of architectures in the appendix. Max-pooling reduces the size. At 224 px: conv1 (112 px),
    conv2 (56), conv3 (28), conv4 (14 x 14 x 512).
    """

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(_conv(3, 64, 7, stride=2), SameMaxPool2d(3, stride=2))
        for number, (inputs, outputs) in enumerate(VGGM_STAGES):
            if number > 0:
                self.layers.append(SameMaxPool2d(2, stride=2))
            self.layers.append(_conv(inputs, outputs, 3))
            self.layers.append(_conv(outputs, outputs, 3))
        self.channels, self.stride = 512, 16


def _conv(inputs: int, outputs: int, kernel: int, *, stride: int = 1) -> ConvNorm:
    return ConvNorm(inputs, outputs, kernel, stride=stride, activation=nn.ReLU(inplace=True))
