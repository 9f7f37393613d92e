"""The embedder for vectors: context frames side by side, fully connected layers.

On a grid of one place the paper's 3x3x3 convolutions would multiply padding with 8 of every 9 weights. With
picture features it takes their mean over the grid first, which makes it the cheapest embedder that learns.

Shapes: B videos, T sampled frames, M = B * T clips, C context frames, N frames of a whole video, F feature
channels, h w grid, D embedding size.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.embedder import ContextEmbedder, check_context, glorot_linear


class MLPEmbedder(ContextEmbedder):
    """Mean over the grid, context frames stacked, layers of Linear, BatchNorm and ReLU, linear embedding."""

    def __init__(
        self,
        in_channels: int,
        *,
        fc_channels: Sequence[int] = (512, 512),
        embedding_size: int = 128,
        context_frames: int = 2,
        context_stride: int = 15,
        dropout: float = 0.0,
        norm_momentum: float = 0.1,
        normalize: bool = False,
        embedding_gain: float = 1.0,
    ) -> None:
        """Build the embedder.

        Args:
            in_channels: feature channels of the base (F).
            fc_channels: output channels of each fully connected layer.
            embedding_size: size of an embedding (D).
            context_frames: frames seen for one embedding (C), itself included.
            context_stride: frames of the video between two context frames.
            dropout: before each fully connected layer but the first, and before the embedding.
            norm_momentum: of BatchNorm's running statistics.
            normalize: scale each embedding to length 1.
            embedding_gain: factor on the first weights of the embedding (1 in the authors' program). Below 1,
                frames begin closer together, and the first updates need not pull them in.
        """
        super().__init__()
        check_context(context_frames, context_stride)
        self.in_channels, self.embedding_size, self.normalize = in_channels, embedding_size, normalize
        self.context_frames, self.context_stride = context_frames, context_stride
        self.layers = nn.Sequential()
        sizes = (context_frames * in_channels, *fc_channels)
        for inputs, outputs in pairwise(sizes):
            self.layers.append(glorot_linear(inputs, outputs, bias=False))
            self.layers.append(nn.BatchNorm1d(outputs, momentum=norm_momentum))
            self.layers.append(nn.ReLU(inplace=True))
            self.layers.append(nn.Dropout(dropout))
        self.embedding = glorot_linear(sizes[-1], embedding_size, gain=embedding_gain)

    @property
    def traits(self) -> dict[str, object]:
        """What changes the embeddings besides the weights."""
        names = ("context_frames", "context_stride", "normalize")
        return {name: getattr(self, name) for name in names}

    def forward(self, features: Tensor) -> Tensor:
        """Features (B, T, C, F, h, w) to embeddings (B, T, D)."""
        clips = self._pool(features.flatten(0, 1))  # (M, C, F)
        return torch.unflatten(self._embed_clips(clips), 0, features.shape[:2])

    def frame_terms(self, features: Tensor) -> tuple[Tensor, ...]:
        """The means (N, F) of features (N, F, h, w)."""
        return (self._pool(features),)

    def embed_terms(self, terms: tuple[Tensor, ...], indices: Tensor) -> Tensor:
        """Embeddings (M, D) of clips of frames `indices` (C, M)."""
        return self._embed_clips(terms[0][indices.T])

    def _pool(self, features: Tensor) -> Tensor:
        """Features (..., F, h, w), of any float type, to their means (..., F)."""
        return features.to(self.embedding.weight.dtype).mean(dim=(-2, -1))

    def _embed_clips(self, clips: Tensor) -> Tensor:
        """Clips (M, C, F) to embeddings (M, D)."""
        embeddings: Tensor = self.embedding(self.layers(clips.flatten(1)))
        return F.normalize(embeddings, dim=-1) if self.normalize else embeddings
