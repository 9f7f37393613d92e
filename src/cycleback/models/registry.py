"""Every base and embedder by the name used in recipes."""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cycleback.models.base import Base
from cycleback.models.checkpoint import load_blueprint
from cycleback.models.conv_embedder import ConvEmbedder
from cycleback.models.efficientnet_lite0 import EfficientNetLite0
from cycleback.models.embedder import Embedder
from cycleback.models.gru_embedder import GRUEmbedder
from cycleback.models.mlp_embedder import MLPEmbedder
from cycleback.models.pooled_embedder import PooledEmbedder
from cycleback.models.resnet50 import ResNet50
from cycleback.models.small import SmallBase
from cycleback.models.timm_base import TimmBase
from cycleback.models.transformers_base import TransformersBase
from cycleback.models.vector import VectorBase
from cycleback.models.vggm import VGGMBase

BASES: dict[str, type[Base]] = {
    "efficientnet_lite0": EfficientNetLite0,
    "resnet50": ResNet50,
    "small": SmallBase,
    "timm": TimmBase,
    "transformers": TransformersBase,
    "vector": VectorBase,
    "vggm": VGGMBase,
}
EMBEDDERS: dict[str, type[Embedder]] = {
    "conv": ConvEmbedder,
    "gru": GRUEmbedder,
    "mlp": MLPEmbedder,
    "pooled": PooledEmbedder,
}


def build_base(name: str, **options: Any) -> Base:
    """The base called `name`, with the keyword arguments of its class."""
    return _base_class(name)(**options)


def rebuild_base(name: str, folder: str | Path, **options: Any) -> Base:
    """The base of the encoder saved in `folder`, its weights yet to be filled by `load_weights`.

    Takes what `build_base` was given, but looks for no pretrained weights: the folder alone is enough.
    """
    return _base_class(name).rebuild(load_blueprint(folder), **options)


def build_embedder(name: str, in_channels: int, **options: Any) -> Embedder:
    """The embedder called `name` for features of `in_channels`, with the keyword arguments of its class."""
    if name not in EMBEDDERS:
        raise ValueError(_unknown("embedder", name, EMBEDDERS))
    return EMBEDDERS[name](in_channels, **options)


def _base_class(name: str) -> type[Base]:
    if name not in BASES:
        raise ValueError(_unknown("base", name, BASES))
    return BASES[name]


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    return f"there is no {kind} {name!r}.{guess} Known: {', '.join(sorted(known))}."
