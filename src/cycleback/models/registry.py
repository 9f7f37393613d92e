"""Every base and embedder by the name used in recipes. A new one is one file and one row here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from cycleback.errors import CheckpointError, did_you_mean
from cycleback.models.base import Base
from cycleback.models.checkpoint import load_blueprint
from cycleback.models.conv_embedder import ConvEmbedder
from cycleback.models.efficientnet_lite0 import EfficientNetLite0
from cycleback.models.embedder import Embedder
from cycleback.models.external import TimmBase, TransformersBase
from cycleback.models.pooling_embedders import GRUEmbedder, MLPEmbedder, PooledEmbedder
from cycleback.models.resnet50 import ResNet50
from cycleback.models.scratch import SmallBase, VGGMBase
from cycleback.models.transformer_embedder import TransformerEmbedder
from cycleback.models.vector import VectorBase

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
    "transformer": TransformerEmbedder,
}

Part = TypeVar("Part", Base, Embedder)


def build_base(name: str, **options: Any) -> Base:
    """Build the base called `name` with the keyword arguments of its class."""
    return _find("base", name, BASES)(**options)


def rebuild_base(name: str, folder: str | Path, **options: Any) -> Base:
    """Build the base of the encoder saved in `folder`, for `load_weights` to fill.

    Takes the arguments of `build_base`, but needs no pretrained file: the folder alone is enough.
    """
    kind, blueprint = _find("base", name, BASES), load_blueprint(folder)
    try:
        return kind.rebuild(blueprint, **options)
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"the base {name!r} cannot be built from the weights in {folder} ({error!r}). Copy them again."
        ) from error


def build_embedder(name: str, in_channels: int, **options: Any) -> Embedder:
    """Build the embedder called `name` for `in_channels` features with the arguments of its class."""
    return _find("embedder", name, EMBEDDERS)(in_channels, **options)


def _find(kind: str, name: str, table: Mapping[str, type[Part]]) -> type[Part]:
    if name not in table:
        raise ValueError(f"there is no {kind} {name!r}. {did_you_mean(name, table)}")
    return table[name]
