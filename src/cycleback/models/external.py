"""A network that another library built, as a base: the parts that timm and transformers share.

Shapes: N images, H W pixels, F feature channels, h w feature map.
"""

from dataclasses import asdict

import torch
from torch import Tensor, nn

from cycleback.models.base import Base, Normalize, Preprocessing
from cycleback.models.embedder import eval_mode

PROBE_PIXELS = 64  # side of the image that is run through a new network to learn its output shape


class ExternalBase(Base):
    """A base around the `network` of another library; `feature_map` says how to call it."""

    network: nn.Module
    preprocessing: Preprocessing

    def _set_network(self, network: nn.Module, preprocessing: Preprocessing) -> None:
        self.network, self.preprocessing = network.float().train(), preprocessing
        self.preprocess = Normalize(preprocessing)

    def _probe(self, *, patch_pixels: int, image_pixels: int) -> None:
        """Learn channels and stride from one image, and exclude weights without influence from training.

        The side of an image is a multiple of `patch_pixels`; the network was trained with `image_pixels`.
        """
        size = -(-PROBE_PIXELS // patch_pixels) * patch_pixels
        with torch.enable_grad():
            try:
                features = self._run_gray(size, size)
            except (RuntimeError, ValueError, AssertionError):  # a few networks accept one image size only
                size = image_pixels
                features = self._run_gray(size, size)
            features.sum().backward()  # type: ignore[no-untyped-call]
        self.channels, self.stride = features.shape[1], size // features.shape[2]
        convert_unused_parameters(self.network)
        self.zero_grad(set_to_none=True)

    def feature_map_size(self, height: int, width: int) -> tuple[int, int]:
        """The size (h, w) of the feature map, measured: each kind of network rounds in its own way."""
        with torch.no_grad():
            features = self._run_gray(height, width)
        return features.shape[2], features.shape[3]

    def _run_gray(self, height: int, width: int) -> Tensor:
        """The features of one gray image."""
        image = torch.full((1, 3, height, width), 0.5, device=self.preprocess.shift.device)
        with eval_mode(self):
            features: Tensor = self(image)
        return features

    @property
    def traits(self) -> dict[str, object]:
        """Settings besides the weights that change the features."""
        return {"preprocessing": asdict(self.preprocessing)}

    def normalize(self, images: Tensor) -> Tensor:
        """Scale images (N, 3, H, W) in [0, 1] as the weights expect them."""
        output: Tensor = self.preprocess(images)
        return output


def convert_unused_parameters(network: nn.Module) -> None:
    """Turn each parameter without a gradient into a buffer of the same name.

    The features do not depend on it: it belongs to a head, to a later stage, or to masked images.
    """
    for name, parameter in list(network.named_parameters()):
        if parameter.grad is None:
            parent, _, child = name.rpartition(".")
            module = network.get_submodule(parent)
            delattr(module, child)
            module.register_buffer(child, parameter.detach())
