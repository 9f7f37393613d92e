"""What pixels must look like for weights that were trained elsewhere.

Shapes: N images, H W pixels.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

Colour = tuple[float, float, float]


@dataclass(frozen=True)
class Preprocessing:
    """(scale * pixels - mean) / std, for pixels in [0, 1]; one mean and std for each of red, green, blue."""

    scale: float
    mean: Colour
    std: Colour

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        mean, std = (
            (float(red), float(green), float(blue)) for red, green, blue in (fields["mean"], fields["std"])
        )
        return cls(float(fields["scale"]), mean, std)


class Preprocess(nn.Module):
    """A `Preprocessing` that runs where the images are."""

    factor: Tensor
    shift: Tensor

    def __init__(self, preprocessing: Preprocessing) -> None:
        super().__init__()
        std = torch.tensor(preprocessing.std)[:, None, None]
        mean = torch.tensor(preprocessing.mean)[:, None, None]
        self.register_buffer("factor", preprocessing.scale / std, persistent=False)
        self.register_buffer("shift", mean / std, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Images (N, 3, H, W) in [0, 1] on the scale of the weights."""
        return images * self.factor - self.shift
