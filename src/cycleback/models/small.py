"""A light base to train from scratch on a CPU: four strided convolutions."""

from itertools import pairwise

from torch import Tensor, nn

from cycleback.models.base import Base, ConvNorm


class SmallBase(Base):
    """Four 3x3 convolutions of stride 2, each with BatchNorm and ReLU: stride 16, 4 x `width` channels."""

    def __init__(self, *, width: int = 32) -> None:
        super().__init__()
        if width < 1:
            raise ValueError(f"width must be at least 1, got {width}")
        sizes = (3, width, 2 * width, 4 * width, 4 * width)
        self.layers = nn.Sequential(
            *(
                ConvNorm(inputs, outputs, 3, stride=2, activation=nn.ReLU(inplace=True))
                for inputs, outputs in pairwise(sizes)
            )
        )
        self.channels, self.stride = sizes[-1], 16

    def normalize(self, images: Tensor) -> Tensor:
        """Images (N, 3, H, W) from [0, 1] to [-1, 1]."""
        return images * 2.0 - 1.0

    def grid(self, images: Tensor) -> Tensor:
        """Normalised images (N, 3, H, W) to features (N, F, h, w)."""
        output: Tensor = self.layers(images)
        return output
