"""The paper's embedder: 3-D convolutions over context frames, global pooling, fully connected layers.

Paper: Dwibedi et al., CVPR 2019, Sec. 3.4 and the table of architectures in the appendix.
Shapes: B videos, T sampled frames, M = B * T clips, C context frames, N frames of a whole video, F feature
channels, O channels of a layer, h w grid, D embedding size.
"""

from collections.abc import Sequence
from typing import Literal, cast, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.embedder import ContextEmbedder, check_context, glorot_linear
from cycleback.models.temporal_conv import TemporalConv

Pooling = Literal["max", "avg", "flatten"]


class ConvEmbedder(ContextEmbedder):
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
        grid: tuple[int, int] | None = None,
        capacity: float = 1.0,
        batch_norm: bool = True,
        normalize: bool = False,
        embedding_gain: float = 1.0,
    ) -> None:
        """Build the embedder.

        Args:
            in_channels: feature channels of the base (F).
            conv_channels: output channels of each 3x3x3 convolution.
            fc_channels: output channels of each fully connected layer.
            embedding_size: size of an embedding (D).
            context_frames: frames seen for one embedding (C), itself included.
            context_stride: frames of the video between two context frames.
            pooling: "max" (paper) or "avg" over context frames and grid; "flatten" keeps every place apart.
            dropout: before each fully connected layer; 0 in the paper, 0.1 in the authors' program.
            reduce_channels: channels of a 1x1 convolution in front, which makes the rest cheap on a CPU.
            norm_momentum: of BatchNorm's running statistics. The authors' program has 0.01, which takes
                hundreds of updates to forget the first values; 0.1 is right after a short training, too.
            grid: (h, w) of the features; needed to flatten, and only then.
            capacity: factor on `conv_channels` and `fc_channels`, rounded (2 x 256 in the authors' program).
            batch_norm: BatchNorm after each convolution.
            normalize: scale each embedding to length 1.
            embedding_gain: factor on the first weights of the embedding (1 in the authors' program). Below 1,
                frames begin closer together, and the first updates need not pull them in.
        """
        super().__init__()
        check_context(context_frames, context_stride)
        _check(conv_channels, pooling=pooling, grid=grid, capacity=capacity)
        conv_channels, fc_channels = _scaled(conv_channels, capacity), _scaled(fc_channels, capacity)
        self.in_channels, self.embedding_size = in_channels, embedding_size
        self.context_frames, self.context_stride, self.pooling = context_frames, context_stride, pooling
        self.grid, self.normalize = grid and (grid[0], grid[1]), normalize
        self.reduce = nn.Identity() if reduce_channels is None else _reducer(in_channels, reduce_channels)
        sizes = (in_channels if reduce_channels is None else reduce_channels, *conv_channels)
        self.convs = nn.ModuleList(TemporalConv(i, o) for i, o in zip(sizes, conv_channels, strict=False))
        self.norms = nn.ModuleList(
            nn.BatchNorm2d(size, eps=1e-3, momentum=norm_momentum) if batch_norm else nn.Identity()
            for size in conv_channels
        )
        places = context_frames * self.grid[0] * self.grid[1] if self.grid else 1
        sizes = (sizes[-1] * places, *fc_channels)
        self.fcs = nn.ModuleList(glorot_linear(i, o) for i, o in zip(sizes, fc_channels, strict=False))
        self.dropout = nn.Dropout(dropout)
        self.embedding = glorot_linear(sizes[-1], embedding_size, gain=embedding_gain)

    @property
    def traits(self) -> dict[str, object]:
        """What changes the embeddings besides the weights."""
        names = ("context_frames", "context_stride", "pooling", "normalize")
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
        hidden = self._pool(grid)
        for fc in self.fcs:
            hidden = F.relu(fc(self.dropout(hidden)))
        embeddings: Tensor = self.embedding(hidden)
        return F.normalize(embeddings, dim=-1) if self.normalize else embeddings

    def _pool(self, grid: Tensor) -> Tensor:
        """Grid (C, M, O, h, w) to (M, O), or to (M, C * O * h * w) flattened."""
        if self.pooling == "max":
            return grid.amax(dim=(0, 3, 4))
        if self.pooling == "avg":
            return grid.mean(dim=(0, 3, 4))
        if tuple(grid.shape[-2:]) != self.grid:
            raise ValueError(f"the embedder flattens a grid of {self.grid}, got {tuple(grid.shape[-2:])}")
        return grid.transpose(0, 1).flatten(1)

    def _activate(self, grid: Tensor, layer: int) -> Tensor:
        """BatchNorm and ReLU of (C, M, O, h, w)."""
        activated = F.relu(self.norms[layer](grid.flatten(0, 1)))
        return torch.unflatten(activated, 0, grid.shape[:2])


def _check(
    conv_channels: Sequence[int], *, pooling: str, grid: tuple[int, int] | None, capacity: float
) -> None:
    if not conv_channels:
        raise ValueError("conv_channels must name at least one convolution, got ()")
    if pooling not in get_args(Pooling):
        raise ValueError(f"pooling must be one of {get_args(Pooling)}, got {pooling!r}")
    if (pooling == "flatten") != (grid is not None):
        raise ValueError(f"grid (h, w) belongs to pooling 'flatten', got pooling {pooling!r} and grid {grid}")
    if capacity <= 0:
        raise ValueError(f"capacity must be above 0, got {capacity}")


def _scaled(channels: Sequence[int], capacity: float) -> tuple[int, ...]:
    return tuple(max(round(capacity * size), 1) for size in channels)


def _reducer(inputs: int, outputs: int) -> nn.Module:
    """1x1 convolution, BatchNorm, ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs, eps=1e-3), nn.ReLU()
    )
