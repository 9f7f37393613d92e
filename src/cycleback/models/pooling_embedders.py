"""Embedders that pool the feature map of each frame first: `mlp`, `gru` and `pooled`.

Shapes: B videos, T sampled frames, M = B * T clips, C context frames, N frames of a whole video, n of a
chunk, F feature channels, O channels of a layer, h w feature map, R state size of the GRU, D embedding size.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.embedder import ContextEmbedder, Embedder, check_context, eval_mode, glorot_linear
from cycleback.models.layers import ConvNorm


class PooledEmbedder(ContextEmbedder):
    """Means of the features over the cells of a coarse grid: no weights, no context frames.

    It makes a pretrained base usable without training. Untrained features differ between videos mostly by the
    scene, so `standardize` scales each video's embeddings (see `Embedder.standardize`).
    """

    trait_names = ("grid", "standardize")

    def __init__(self, in_channels: int, *, grid: int = 1, standardize: bool = False) -> None:
        super().__init__()
        if grid < 1:
            raise ValueError(f"grid must be at least 1, got {grid}")
        self.in_channels, self.grid, self.standardize = in_channels, grid, standardize
        self.embedding_size = in_channels * grid * grid

    def forward(self, features: Tensor, frames: Tensor | None = None) -> Tensor:
        """Map features (B, T, 1, F, h, w) to embeddings (B, T, D), D = F * grid * grid."""
        frames = features[:, :, -1]
        return torch.unflatten(self._pool(frames.flatten(0, 1)), 0, frames.shape[:2])

    def frame_terms(self, features: Tensor) -> tuple[Tensor, ...]:
        """Embed features (N, F, h, w): (N, D)."""
        return (self._pool(features),)

    def embed_terms(self, terms: tuple[Tensor, ...], indices: Tensor) -> Tensor:
        """Look up the embeddings (M, D) of frames `indices` (1, M)."""
        return terms[0][indices[-1]]

    def _pool(self, features: Tensor) -> Tensor:
        """Average features (N, F, h, w) over the cells: (N, F * grid * grid)."""
        return F.adaptive_avg_pool2d(features.float(), self.grid).flatten(1)


class MLPEmbedder(ContextEmbedder):
    """Mean over the feature map, context frames stacked, layers of Linear, BatchNorm and ReLU.

    It is made for vectors: there the paper's 3x3x3 convolutions would multiply padding with 8 of 9 weights.
    With image features it is the cheapest embedder that learns. The arguments mean the same as those of
    `ConvEmbedder`; dropout comes before each fully connected layer but the first, and before the embedding.
    """

    trait_names = ("context_frames", "context_stride", "normalize")

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

    def forward(self, features: Tensor, frames: Tensor | None = None) -> Tensor:
        """Map features (B, T, C, F, h, w) to embeddings (B, T, D)."""
        clips = self._pool(features.flatten(0, 1))  # (M, C, F)
        return torch.unflatten(self._embed_clips(clips), 0, features.shape[:2])

    def frame_terms(self, features: Tensor) -> tuple[Tensor, ...]:
        """Average features (N, F, h, w): (N, F)."""
        return (self._pool(features),)

    def embed_terms(self, terms: tuple[Tensor, ...], indices: Tensor) -> Tensor:
        """Embed clips of frames `indices` (C, M): (M, D)."""
        return self._embed_clips(terms[0][indices.T])

    def _pool(self, features: Tensor) -> Tensor:
        """Average features (..., F, h, w), of any float type: (..., F)."""
        return features.to(self.embedding.weight.dtype).mean(dim=(-2, -1))

    def _embed_clips(self, clips: Tensor) -> Tensor:
        """Map clips (M, C, F) to embeddings (M, D)."""
        embeddings: Tensor = self.embedding(self.layers(clips.flatten(1)))
        return F.normalize(embeddings, dim=-1) if self.normalize else embeddings


class GRUEmbedder(Embedder):
    """3x3 convolutions with BatchNorm and ReLU per frame, global max-pool, GRU over time, linear embedding.

    This is the recurrent embedder of the authors' program. It can count frames, and counting alone satisfies
    cycle-consistency for any frames: compare it with the baseline that knows only the time.
    In training the GRU runs over the sampled frames, in a whole video over all frames.

    No `conv_channels`, (), suit vectors. `hidden_size` is the state size of the GRU (R). Dropout comes after
    the max-pool. The other arguments mean the same as those of `ConvEmbedder`.
    """

    can_count_frames = True
    mixes_frames = True
    trait_names = ("normalize",)

    def __init__(
        self,
        in_channels: int,
        *,
        conv_channels: Sequence[int] = (512, 512),
        hidden_size: int = 128,
        embedding_size: int = 128,
        dropout: float = 0.0,
        norm_momentum: float = 0.1,
        normalize: bool = False,
        embedding_gain: float = 1.0,
    ) -> None:
        super().__init__()
        self.in_channels, self.embedding_size, self.normalize = in_channels, embedding_size, normalize
        sizes = (in_channels, *conv_channels)
        self.convs = nn.Sequential(
            *(
                ConvNorm(i, o, 3, eps=1e-3, momentum=norm_momentum, activation=nn.ReLU(inplace=True))
                for i, o in pairwise(sizes)
            )
        )
        self.dropout = nn.Dropout(dropout)
        self.gru = nn.GRU(sizes[-1], hidden_size, batch_first=True)
        self.embedding = glorot_linear(hidden_size, embedding_size, gain=embedding_gain)

    def forward(self, features: Tensor, frames: Tensor | None = None) -> Tensor:
        """Map features (B, T, 1, F, h, w), in order of time, to embeddings (B, T, D)."""
        pooled = self._pool(features[:, :, -1].flatten(0, 1))
        states, _ = self.gru(torch.unflatten(pooled, 0, features.shape[:2]))  # (B, T, R)
        return self._embed_states(states)

    def embed_stream(self, chunks: Iterable[Tensor]) -> Iterator[Tensor]:
        """Map features (n, F, h, w) of consecutive frames, in chunks, to embeddings (n, D)."""
        state: Tensor | None = None
        for features in chunks:
            with eval_mode(self), torch.no_grad():
                states, state = self.gru(self._pool(features)[None], state)  # (1, n, R)
                embeddings = self._embed_states(states[0])
            yield embeddings

    def _pool(self, frames: Tensor) -> Tensor:
        """Map features (N, F, h, w), of any float type, to the input of the GRU (N, O)."""
        maps = self.convs(frames.to(self.embedding.weight.dtype))
        pooled: Tensor = self.dropout(maps.amax(dim=(-2, -1)))
        return pooled

    def _embed_states(self, states: Tensor) -> Tensor:
        """Map states of the GRU (..., R) to embeddings (..., D)."""
        embeddings: Tensor = self.embedding(states)
        return F.normalize(embeddings, dim=-1) if self.normalize else embeddings
