"""The paper's embedder: 3-D convolutions over context frames, global pooling, fully connected layers.

Paper: Dwibedi et al., CVPR 2019, Sec. 3.4 and the table of architectures in the appendix.
Shapes: B videos, T sampled frames, M = B * T clips, C context frames, N frames of a whole video, F feature
channels, O channels of a layer, h w grid, D embedding size.
"""

from collections.abc import Sequence
from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.embedder import Embedder
from cycleback.models.temporal_conv import TemporalConv

Pooling = Literal["max", "avg"]


class ConvEmbedder(Embedder):
    """3x3x3 convolutions with BatchNorm and ReLU, global max-pool, FC with ReLU, linear embedding."""

    def __init__(
        self,
        in_channels: int,
        *,
        conv_channels: Sequence[int] = (512, 512),
        fc_channels: Sequence[int] = (512, 512),
        embedding_size: int = 128,
        context_frames: int = 2,
        context_stride: int = 15,
        pooling: Pooling = "max",
        dropout: float = 0.0,
        reduce_channels: int | None = None,
        norm_momentum: float = 0.1,
    ) -> None:
        """Build the embedder.

        Args:
            in_channels: feature channels of the base (F).
            conv_channels: output channels of each 3x3x3 convolution.
            fc_channels: output channels of each fully connected layer.
            embedding_size: size of an embedding (D).
            context_frames: frames seen for one embedding (C), itself included.
            context_stride: frames of the video between two context frames.
            pooling: "max" (paper) or "avg" over context frames and grid.
            dropout: before each fully connected layer; 0 in the paper, 0.1 in the authors' program.
            reduce_channels: channels of a 1x1 convolution in front, which makes the rest cheap on a CPU.
            norm_momentum: of BatchNorm's running statistics. The authors' program has 0.01, which takes
                hundreds of updates to forget the first values; 0.1 is right after a short training, too.
        """
        super().__init__()
        _check(conv_channels, context_frames=context_frames, context_stride=context_stride, pooling=pooling)
        self.in_channels, self.embedding_size = in_channels, embedding_size
        self.context_frames, self.context_stride, self.pooling = context_frames, context_stride, pooling
        self.reduce = nn.Identity() if reduce_channels is None else _reducer(in_channels, reduce_channels)
        sizes = (in_channels if reduce_channels is None else reduce_channels, *conv_channels)
        self.convs = nn.ModuleList(TemporalConv(i, o) for i, o in zip(sizes, conv_channels, strict=False))
        self.norms = nn.ModuleList(
            nn.BatchNorm2d(size, eps=1e-3, momentum=norm_momentum) for size in conv_channels
        )
        sizes = (sizes[-1], *fc_channels)
        self.fcs = nn.ModuleList(_linear(i, o) for i, o in zip(sizes, fc_channels, strict=False))
        self.dropout = nn.Dropout(dropout)
        self.embedding = _linear(sizes[-1], embedding_size)

    @property
    def traits(self) -> dict[str, object]:
        """What changes the embeddings besides the weights."""
        names = ("context_frames", "context_stride", "pooling")
        return {name: getattr(self, name) for name in names}

    @property
    def _first_conv(self) -> TemporalConv:
        return cast(TemporalConv, self.convs[0])

    def forward(self, features: Tensor) -> Tensor:
        """Features (B, T, C, F, h, w) to embeddings (B, T, D)."""
        clips = features.flatten(0, 1).transpose(0, 1)  # (C, M, F, h, w)
        reduced = torch.unflatten(self._reduce(clips.flatten(0, 1)), 0, clips.shape[:2])
        embeddings = self._embed_summed(self._first_conv(reduced))  # (M, D)
        return torch.unflatten(embeddings, 0, features.shape[:2])

    def frame_terms(self, features: Tensor) -> tuple[Tensor, ...]:
        """Products of each frame (N, F, h, w) with the temporal slices of the first convolution."""
        return self._first_conv.products(self._reduce(features))

    def embed_terms(self, terms: tuple[Tensor, ...], indices: Tensor) -> Tensor:
        """Embeddings (M, D) of clips of frames `indices` (C, M)."""
        return self._embed_summed(self._first_conv.from_products(terms, indices))

    def _reduce(self, frames: Tensor) -> Tensor:
        """Features (N, F, h, w), of any float type, to the input of the first convolution."""
        reduced: Tensor = self.reduce(frames.to(self.embedding.weight.dtype))
        return reduced

    def _embed_summed(self, summed: Tensor) -> Tensor:
        """Output (C, M, O, h, w) of the first convolution, before BatchNorm, to embeddings (M, D)."""
        grid = self._activate(summed, 0)
        for layer in range(1, len(self.convs)):
            grid = self._activate(self.convs[layer](grid), layer)
        hidden = grid.amax(dim=(0, 3, 4)) if self.pooling == "max" else grid.mean(dim=(0, 3, 4))  # (M, O)
        for fc in self.fcs:
            hidden = F.relu(fc(self.dropout(hidden)))
        embeddings: Tensor = self.embedding(hidden)
        return embeddings

    def _activate(self, grid: Tensor, layer: int) -> Tensor:
        """BatchNorm and ReLU of (C, M, O, h, w)."""
        activated = F.relu(self.norms[layer](grid.flatten(0, 1)))
        return torch.unflatten(activated, 0, grid.shape[:2])


def _check(conv_channels: Sequence[int], *, context_frames: int, context_stride: int, pooling: str) -> None:
    if not conv_channels:
        raise ValueError("conv_channels must name at least one convolution, got ()")
    if context_frames < 1 or context_stride < 1:
        got = f"{context_frames} and {context_stride}"
        raise ValueError(f"context_frames and context_stride must be at least 1, got {got}")
    if pooling not in ("max", "avg"):
        raise ValueError(f"pooling must be 'max' or 'avg', got {pooling!r}")


def _reducer(inputs: int, outputs: int) -> nn.Module:
    """1x1 convolution, BatchNorm, ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs, eps=1e-3), nn.ReLU()
    )


def _linear(inputs: int, outputs: int) -> nn.Linear:
    """A fully connected layer with Glorot weights and zero bias, as in the authors' program."""
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
