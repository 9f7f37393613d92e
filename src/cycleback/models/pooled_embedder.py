"""The embedder without weights: the mean of the grid. With a pretrained base it needs no training."""

import torch.nn.functional as F
from torch import Tensor

from cycleback.models.embedder import Embedder


class PooledEmbedder(Embedder):
    """Mean of the features over the grid, optionally scaled to length 1; no context frames."""

    def __init__(self, in_channels: int, *, normalize: bool = False) -> None:
        super().__init__()
        self.in_channels = self.embedding_size = in_channels
        self.normalize = normalize

    @property
    def traits(self) -> dict[str, object]:
        """What changes the embeddings besides the weights."""
        return {"normalize": self.normalize}

    def forward(self, features: Tensor) -> Tensor:
        """Features (B, T, 1, F, h, w) to embeddings (B, T, F)."""
        return self._pool(features[:, :, -1])

    def frame_terms(self, features: Tensor) -> tuple[Tensor, ...]:
        """The embeddings (N, F) of features (N, F, h, w)."""
        return (self._pool(features),)

    def embed_terms(self, terms: tuple[Tensor, ...], indices: Tensor) -> Tensor:
        """The embeddings (M, F) of frames `indices` (1, M)."""
        return terms[0][indices[-1]]

    def _pool(self, features: Tensor) -> Tensor:
        """Features (..., F, h, w) to their mean (..., F)."""
        means = features.float().mean(dim=(-2, -1))
        return F.normalize(means, dim=-1) if self.normalize else means
