"""The recurrent embedder of the authors' program: convolutions of each frame, then a GRU over time.

It can count frames. Cycle-consistency is then satisfied by counting alone, whatever the frames show: compare
it with the row that knows nothing but the time.

In training the GRU runs over the sampled frames; in a whole video, over all of them.

Shapes: B videos, T sampled frames, N frames of a whole video, F feature channels, O channels of a layer, h w
grid, R size of the GRU's state, D embedding size.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.base import ConvNorm
from cycleback.models.embedder import Embedder, evaluating, glorot_linear


class GRUEmbedder(Embedder):
    """3x3 convolutions with BatchNorm and ReLU a frame, global max-pool, GRU, linear embedding."""

    can_count_frames = True

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
        """Build the embedder.

        Args:
            in_channels: feature channels of the base (F).
            conv_channels: output channels of each 3x3 convolution; () suits vectors, which have no grid.
            hidden_size: size of the GRU's state (R).
            embedding_size: size of an embedding (D).
            dropout: after the max-pool.
            norm_momentum: of BatchNorm's running statistics.
            normalize: scale each embedding to length 1.
            embedding_gain: factor on the first weights of the embedding (1 in the authors' program). Below 1,
                frames begin closer together, and the first updates need not pull them in.
        """
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

    @property
    def traits(self) -> dict[str, object]:
        """What changes the embeddings besides the weights."""
        return {"normalize": self.normalize}

    def forward(self, features: Tensor) -> Tensor:
        """Features (B, T, 1, F, h, w), in the order of time, to embeddings (B, T, D)."""
        pooled = self._pool(features[:, :, -1].flatten(0, 1))
        states, _ = self.gru(torch.unflatten(pooled, 0, features.shape[:2]))  # (B, T, R)
        return self._embed_states(states)

    def embed_stream(self, chunks: Iterable[Tensor]) -> Iterator[Tensor]:
        """Features (n, F, h, w) of consecutive frames, in pieces, to embeddings (n, D) (see `Embedder`)."""
        state: Tensor | None = None
        for features in chunks:
            with evaluating(self), torch.no_grad():
                states, state = self.gru(self._pool(features)[None], state)  # (1, n, R)
                embeddings = self._embed_states(states[0])
            yield embeddings

    def _pool(self, frames: Tensor) -> Tensor:
        """Features (N, F, h, w), of any float type, to what the GRU sees of each frame (N, O)."""
        grid = self.convs(frames.to(self.embedding.weight.dtype))
        pooled: Tensor = self.dropout(grid.amax(dim=(-2, -1)))
        return pooled

    def _embed_states(self, states: Tensor) -> Tensor:
        """States of the GRU (..., R) to embeddings (..., D)."""
        embeddings: Tensor = self.embedding(states)
        return F.normalize(embeddings, dim=-1) if self.normalize else embeddings
