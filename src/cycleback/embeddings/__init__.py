"""Embeddings of whole videos: one value that everything downstream works on."""

from cycleback.embeddings.encoders import check_one_action, check_same_encoder
from cycleback.embeddings.store import EmbeddingSet

__all__ = ["EmbeddingSet", "check_one_action", "check_same_encoder"]
