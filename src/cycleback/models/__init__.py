"""Networks: images to features (bases), features to embeddings (embedders), both together (`Encoder`).

Modules from bottom to top: `ops` (operations on feature maps), `layers`, the bases and embedders, `encoder`,
`checkpoint`, `registry`. `inference` holds frozen, faster copies for whole videos.
"""

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
from cycleback.models.inference import FastEncoder, Precision, default_precision, fast_inference
from cycleback.models.registry import BASES, EMBEDDERS, build_base, build_embedder, rebuild_base
from cycleback.models.resnet50 import ResNet50
from cycleback.models.scratch import SmallBase, VGGMBase
from cycleback.models.streams import STREAMS, FusedBase
from cycleback.models.vector import VectorBase

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
