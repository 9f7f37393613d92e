"""Corpora of many videos, embedded by many processes: what they are made of, and who embeds them.

Shapes: N frames of a video, D embedding size.
"""

from cycleback.corpus.run import CorpusReport, embed_corpus
from cycleback.corpus.sources import Item, list_corpus

__all__ = ["CorpusReport", "Item", "embed_corpus", "list_corpus"]
