"""A network that another library built, as a base: what is the same for all such libraries.

Shapes: N images, H W pixels, F feature channels, h w grid.
"""

import torch
from torch import Tensor, nn

from cycleback.models.base import Base
from cycleback.models.embedder import evaluating
from cycleback.models.preprocessing import Preprocess, Preprocessing

PROBE_PIXELS = 64  # a picture this large shows what a network gives


class AdoptedBase(Base):
    """A base whose `network` and `preprocessing` come from elsewhere; `grid` says how to call it."""

    network: nn.Module
    preprocessing: Preprocessing

    def _adopt(self, network: nn.Module, preprocessing: Preprocessing) -> None:
        self.network, self.preprocessing = network.float().train(), preprocessing
        self.preprocess = Preprocess(preprocessing)

    def _settle(self, *, patch_pixels: int, image_pixels: int) -> None:
        """Learn channels and stride from one picture, and keep from training what it does not reach.

        Args:
            patch_pixels: what the side of a picture must be a multiple of.
            image_pixels: the side of the pictures the network was trained with.
        """
        size = -(-PROBE_PIXELS // patch_pixels) * patch_pixels
        with torch.enable_grad():
            try:
                features = self._look(size, size)
            except (RuntimeError, ValueError, AssertionError):  # a few take pictures of their own size only
                size = image_pixels
                features = self._look(size, size)
            features.sum().backward()  # type: ignore[no-untyped-call]
        self.channels, self.stride = features.shape[1], size // features.shape[2]
        keep_from_training(self.network)
        self.zero_grad(set_to_none=True)

    def grid_size(self, height: int, width: int) -> tuple[int, int]:
        """The grid (h, w) of features, seen from one picture: each kind of network rounds in its own way."""
        with torch.no_grad():
            features = self._look(height, width)
        return features.shape[2], features.shape[3]

    def _look(self, height: int, width: int) -> Tensor:
        picture = torch.full((1, 3, height, width), 0.5, device=self.preprocess.shift.device)
        with evaluating(self):
            features: Tensor = self(picture)
        return features

    @property
    def traits(self) -> dict[str, object]:
        """What changes the features besides the weights."""
        return {"preprocessing": self.preprocessing.to_dict()}

    def normalize(self, images: Tensor) -> Tensor:
        """Images (N, 3, H, W) in [0, 1] on the scale of the weights (see `preprocessing`)."""
        output: Tensor = self.preprocess(images)
        return output


def keep_from_training(network: nn.Module) -> None:
    """Turn each parameter that has no gradient into a buffer, under the same name.

    The features do not depend on it: it belongs to a head, to a later stage, or to masked pictures.
    """
    for name, parameter in list(network.named_parameters()):
        if parameter.grad is None:
            parent, _, child = name.rpartition(".")
            module = network.get_submodule(parent)
            delattr(module, child)
            module.register_buffer(child, parameter.detach())
