"""Networks: images to features (bases), features to embeddings (embedders), both together (`Encoder`)."""

from cycleback.models.base import Base, InputKind
from cycleback.models.checkpoint import (
    base_fingerprint,
    fingerprint,
    load_blueprint,
    load_settings,
    load_weights,
    save_encoder,
)
from cycleback.models.conv_embedder import ConvEmbedder
from cycleback.models.efficientnet_lite0 import EfficientNetLite0
from cycleback.models.embedder import ContextEmbedder, Embedder
from cycleback.models.encoder import Encoder, TrainBase, freeze
from cycleback.models.fast import FastBase, Precision, fast_inference
from cycleback.models.fast_encoder import FastEncoder
from cycleback.models.gru_embedder import GRUEmbedder
from cycleback.models.mlp_embedder import MLPEmbedder
from cycleback.models.pooled_embedder import PooledEmbedder
from cycleback.models.preprocessing import Preprocessing
from cycleback.models.registry import BASES, EMBEDDERS, build_base, build_embedder, rebuild_base
from cycleback.models.resnet50 import ResNet50
from cycleback.models.small import SmallBase
from cycleback.models.temporal_conv import TemporalConv
from cycleback.models.timm_base import TimmBase
from cycleback.models.transformers_base import TransformersBase
from cycleback.models.vector import VectorBase
from cycleback.models.vggm import VGGMBase

__all__ = [
    "BASES",
    "EMBEDDERS",
    "Base",
    "ContextEmbedder",
    "ConvEmbedder",
    "EfficientNetLite0",
    "Embedder",
    "Encoder",
    "FastBase",
    "FastEncoder",
    "GRUEmbedder",
    "InputKind",
    "MLPEmbedder",
    "PooledEmbedder",
    "Precision",
    "Preprocessing",
    "ResNet50",
    "SmallBase",
    "TemporalConv",
    "TimmBase",
    "TrainBase",
    "TransformersBase",
    "VGGMBase",
    "VectorBase",
    "base_fingerprint",
    "build_base",
    "build_embedder",
    "fast_inference",
    "fingerprint",
    "freeze",
    "load_blueprint",
    "load_settings",
    "load_weights",
    "rebuild_base",
    "save_encoder",
]
