"""Embeddings that have learned nothing, to hold results against.

Shapes: N frames of a video.
"""

import numpy as np

from cycleback.embeddings import EmbeddingSet

TIME_ONLY = "time-only"


def time_only_embeddings(videos: EmbeddingSet) -> EmbeddingSet:
    """The same videos and labels, each frame i of N embedded as i / N: no pixel is looked at."""
    fractions = {name: np.arange(len(videos[name]))[:, None] / len(videos[name]) for name in videos}
    return videos.with_embeddings(fractions, encoder=TIME_ONLY)
