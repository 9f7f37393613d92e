"""The embedder without weights: means over parts of the picture, for a base that needs no training."""

import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.models.embedder import ContextEmbedder


class PooledEmbedder(ContextEmbedder):
    """Means of the features over the cells of a coarse grid; no context frames.

    What differs between two untrained videos is mostly the scene, so by default each video's embeddings are
    moved to mean 0 and spread 1 once the whole video is embedded (see `Embedder.standardize`).
    """

    def __init__(self, in_channels: int, *, grid: int = 1, standardize: bool = False) -> None:
        super().__init__()
        if grid < 1:
            raise ValueError(f"grid must be at least 1, got {grid}")
        self.in_channels, self.grid, self.standardize = in_channels, grid, standardize
        self.embedding_size = in_channels * grid * grid

    @property
    def traits(self) -> dict[str, object]:
        """What changes the embeddings besides the weights."""
        return {"grid": self.grid, "standardize": self.standardize}

    def forward(self, features: Tensor) -> Tensor:
        """Features (B, T, 1, F, h, w) to embeddings (B, T, D), D = F * grid * grid."""
        frames = features[:, :, -1]
        return torch.unflatten(self._pool(frames.flatten(0, 1)), 0, frames.shape[:2])

    def frame_terms(self, features: Tensor) -> tuple[Tensor, ...]:
        """The embeddings (N, D) of features (N, F, h, w)."""
        return (self._pool(features),)

    def embed_terms(self, terms: tuple[Tensor, ...], indices: Tensor) -> Tensor:
        """The embeddings (M, D) of frames `indices` (1, M)."""
        return terms[0][indices[-1]]

    def _pool(self, features: Tensor) -> Tensor:
        """Features (N, F, h, w) to their means (N, F * grid * grid)."""
        return F.adaptive_avg_pool2d(features.float(), self.grid).flatten(1)
