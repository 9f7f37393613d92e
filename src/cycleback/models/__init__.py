"""Networks: images to features (bases), features to embeddings (embedders), both together (`Encoder`).

Modules from bottom to top: `ops` (operations on feature maps), `layers`, the bases and embedders, `encoder`,
`checkpoint`, `registry`. `inference` holds frozen, faster copies for whole videos.

The names below are loaded when first used: `streams` and `joints` work without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cycleback.models.base import Base, Preprocessing
    from cycleback.models.checkpoint import (
        base_fingerprint,
        fingerprint,
        load_settings,
        load_weights,
        save_encoder,
    )
    from cycleback.models.conv_embedder import ConvEmbedder, TemporalConv
    from cycleback.models.efficientnet_lite0 import EfficientNetLite0
    from cycleback.models.embedder import Embedder
    from cycleback.models.encoder import Encoder, freeze
    from cycleback.models.fused import FusedBase
    from cycleback.models.inference import FastEncoder, Precision, default_precision, fast_inference
    from cycleback.models.registry import BASES, EMBEDDERS, build_base, build_embedder, rebuild_base
    from cycleback.models.resnet50 import ResNet50
    from cycleback.models.scratch import SmallBase, VGGMBase
    from cycleback.models.streams import STREAMS
    from cycleback.models.vector import VectorBase

_HOMES = {
    "BASES": "cycleback.models.registry",
    "EMBEDDERS": "cycleback.models.registry",
    "STREAMS": "cycleback.models.streams",
    "Base": "cycleback.models.base",
    "ConvEmbedder": "cycleback.models.conv_embedder",
    "EfficientNetLite0": "cycleback.models.efficientnet_lite0",
    "Embedder": "cycleback.models.embedder",
    "Encoder": "cycleback.models.encoder",
    "FastEncoder": "cycleback.models.inference",
    "FusedBase": "cycleback.models.fused",
    "Precision": "cycleback.models.inference",
    "Preprocessing": "cycleback.models.base",
    "ResNet50": "cycleback.models.resnet50",
    "SmallBase": "cycleback.models.scratch",
    "TemporalConv": "cycleback.models.conv_embedder",
    "VGGMBase": "cycleback.models.scratch",
    "VectorBase": "cycleback.models.vector",
    "base_fingerprint": "cycleback.models.checkpoint",
    "build_base": "cycleback.models.registry",
    "build_embedder": "cycleback.models.registry",
    "default_precision": "cycleback.models.inference",
    "fast_inference": "cycleback.models.inference",
    "fingerprint": "cycleback.models.checkpoint",
    "freeze": "cycleback.models.encoder",
    "load_settings": "cycleback.models.checkpoint",
    "load_weights": "cycleback.models.checkpoint",
    "rebuild_base": "cycleback.models.registry",
    "save_encoder": "cycleback.models.checkpoint",
}

__all__ = [
    "BASES",
    "EMBEDDERS",
    "STREAMS",
    "Base",
    "ConvEmbedder",
    "EfficientNetLite0",
    "Embedder",
    "Encoder",
    "FastEncoder",
    "FusedBase",
    "Precision",
    "Preprocessing",
    "ResNet50",
    "SmallBase",
    "TemporalConv",
    "VGGMBase",
    "VectorBase",
    "base_fingerprint",
    "build_base",
    "build_embedder",
    "default_precision",
    "fast_inference",
    "fingerprint",
    "freeze",
    "load_settings",
    "load_weights",
    "rebuild_base",
    "save_encoder",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'cycleback.models' has no attribute {name!r}")
