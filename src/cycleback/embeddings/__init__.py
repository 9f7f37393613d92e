"""Embeddings of whole videos: one value that everything downstream works on."""

from cycleback.embeddings.embedding_set import EmbeddingSet, check_one_action, check_same_encoder

__all__ = ["EmbeddingSet", "check_one_action", "check_same_encoder"]
