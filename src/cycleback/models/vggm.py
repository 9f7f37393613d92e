"""The paper's base for training from scratch: a VGG-M-like net of seven convolutions (table in the appendix).

At 224 px: conv1 (112 px), conv2 (56), conv3 (28), conv4 (14 x 14 x 512). Down-sampling is by max-pooling.
"""

from torch import Tensor, nn

from cycleback.models.base import Base, ConvNorm, SameMaxPool2d

STAGES = ((64, 128), (128, 256), (256, 512))  # channels in and out of conv2, conv3, conv4


def _conv(inputs: int, outputs: int, kernel: int, *, stride: int = 1) -> ConvNorm:
    return ConvNorm(inputs, outputs, kernel, stride=stride, activation=nn.ReLU(inplace=True))


class VGGMBase(Base):
    """7x7 convolution of stride 2, then three stages of two 3x3 convolutions: 512 channels at stride 16."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(_conv(3, 64, 7, stride=2), SameMaxPool2d(3, stride=2))
        for number, (inputs, outputs) in enumerate(STAGES):
            if number > 0:
                self.layers.append(SameMaxPool2d(2, stride=2))
            self.layers.append(_conv(inputs, outputs, 3))
            self.layers.append(_conv(outputs, outputs, 3))
        self.channels, self.stride = 512, 16

    def normalize(self, images: Tensor) -> Tensor:
        """Images (N, 3, H, W) from [0, 1] to [-1, 1]."""
        return images * 2.0 - 1.0

    def grid(self, images: Tensor) -> Tensor:
        """Normalised images (N, 3, H, W) to features (N, F, h, w)."""
        output: Tensor = self.layers(images)
        return output
