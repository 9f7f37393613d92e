"""Networks: images to features (bases), features to embeddings (embedders), both together (`Encoder`)."""

from cycleback.models.base import Base
from cycleback.models.checkpoint import (
    base_fingerprint,
    fingerprint,
    load_settings,
    load_weights,
    save_encoder,
)
from cycleback.models.conv_embedder import ConvEmbedder
from cycleback.models.efficientnet_lite0 import EfficientNetLite0
from cycleback.models.embedder import Embedder
from cycleback.models.encoder import Encoder, TrainBase, freeze
from cycleback.models.fast import FastBase, fast_inference
from cycleback.models.pooled_embedder import PooledEmbedder
from cycleback.models.registry import BASES, EMBEDDERS, build_base, build_embedder
from cycleback.models.small import SmallBase
from cycleback.models.temporal_conv import TemporalConv
from cycleback.models.vggm import VGGMBase

__all__ = [
    "BASES",
    "EMBEDDERS",
    "Base",
    "ConvEmbedder",
    "EfficientNetLite0",
    "Embedder",
    "Encoder",
    "FastBase",
    "PooledEmbedder",
    "SmallBase",
    "TemporalConv",
    "TrainBase",
    "VGGMBase",
    "base_fingerprint",
    "build_base",
    "build_embedder",
    "fast_inference",
    "fingerprint",
    "freeze",
    "load_settings",
    "load_weights",
    "save_encoder",
]
