"""Embeddings of whole videos: one value that everything downstream works on."""

from cycleback.embeddings.store import EmbeddingSet

__all__ = ["EmbeddingSet"]
