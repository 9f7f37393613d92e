"""Any vision network of the `transformers` library as a base: DINOv2, ViT, SigLIP, CLIP, ConvNeXt, ...

Shapes: N images, H W pixels, F feature channels, h w grid.
"""

import inspect
from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn

from cycleback.errors import CheckpointError
from cycleback.models.adopted import PROBE_PIXELS, AdoptedBase
from cycleback.models.transformers_files import Pretrained, from_blueprint, load_pretrained

TRAITS = ("model_type", "hidden_act", "num_attention_heads", "patch_size")  # not to be seen in the weights


class TransformersBase(AdoptedBase):
    """A network by its name on the hub or by its folder, with the weights and pixel scale it comes with.

    The features are those of its last layer. Tokens of the whole picture (class, registers) are dropped,
    those of the patches laid out as they lie in it. Weights that take no part in that are never trained.
    """

    def __init__(
        self, *, model: str = "facebook/dinov2-small", blueprint: Mapping[str, Any] | None = None
    ) -> None:
        """Build the network.

        Args:
            model: name on the hub, or a folder with the files that the library's `save_pretrained` writes.
                The hub is asked only for what is not on this machine.
            blueprint: build this instead, with random weights (see `rebuild`).
        """
        super().__init__()
        source = load_pretrained(model) if blueprint is None else from_blueprint(blueprint)
        self._adopt(getattr(source.network, "vision_model", source.network), source.preprocessing)
        self.config = source.config
        vision = self.config.get("vision_config") or self.config
        self._traits = {name: vision.get(name) for name in TRAITS}
        self.patch_pixels, self.merges_patches = _side(vision.get("patch_size") or 1), "depths" in vision
        takes = inspect.signature(self.network.forward).parameters
        self._options = {"interpolate_pos_encoding": True} if "interpolate_pos_encoding" in takes else {}
        image_pixels = _side(vision.get("image_size") or PROBE_PIXELS)
        self._settle(patch_pixels=self.patch_pixels, image_pixels=image_pixels)
        _require_trained(model, source, self.network)

    @property
    def traits(self) -> dict[str, object]:
        """What changes the features besides the weights."""
        return {**self._traits, **super().traits}

    @property
    def blueprint(self) -> dict[str, Any]:
        """The library's own description of the network, and its pixel scale."""
        return {"config": self.config, "preprocessing": self.preprocessing.to_dict()}

    @classmethod
    def rebuild(cls, blueprint: Mapping[str, Any], **options: Any) -> Self:
        """The same network with weights yet to be filled; needs neither the hub nor the folder."""
        return cls(**{**options, "blueprint": blueprint})

    def grid(self, images: Tensor) -> Tensor:
        """Normalised images (N, 3, H, W) to features (N, F, h, w)."""
        output: Tensor = self.network(pixel_values=images, **self._options).last_hidden_state
        if output.ndim == 4:
            return output
        height, width = self._patches(output.shape[1], images.shape[-2:])
        patches = output[:, -height * width :]  # the tokens of the whole picture come first
        return torch.unflatten(patches.mT, 2, (height, width))

    def _patches(self, tokens: int, pixels: torch.Size) -> tuple[int, int]:
        """Rows and columns of the patches among `tokens`."""
        height, width = (side // self.patch_pixels for side in pixels)
        while self.merges_patches and height * width > tokens:
            height, width = -(-height // 2), -(-width // 2)
        if height * width > tokens:
            raise CheckpointError(f"the base hides patches: {tokens} tokens for {height} x {width} of them")
        return height, width


def _side(size: Any) -> int:
    """Pixels of a side from the library's number, or pair of numbers."""
    return int(size[0] if isinstance(size, list | tuple) else size)


def _require_trained(model: str, source: Pretrained, network: nn.Module) -> None:
    """Refuse weights that the library made up because the files lack them."""
    prefix = "" if network is source.network else "vision_model."
    used = {prefix + name for name, _ in network.named_parameters()}
    if untrained := sorted(source.missing & used):
        found = f"{untrained[0]} and {len(untrained) - 1} more" if len(untrained) > 1 else untrained[0]
        raise CheckpointError(f"the base {model!r} comes without the weights of {found}. Fetch it again.")
