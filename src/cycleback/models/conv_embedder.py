"""The paper's embedder: 3-D convolutions over context frames, global pooling, fully connected layers.

Paper: Dwibedi et al., CVPR 2019, Sec. 3.4 and the table of architectures in the appendix.
Shapes: B videos, T sampled frames, M = B * T clips, C context frames, N frames of a whole video, F feature
channels, I O channels of a layer, in and out, h w feature map, D embedding size.
"""

from collections.abc import Sequence
from typing import Literal, cast, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.embedder import ContextEmbedder, check_context, glorot_linear

Pooling = Literal["max", "avg", "flatten"]

BEFORE, CENTER, AFTER = 0, 1, 2  # temporal slices of the kernel: weights of the previous, own and next frame
MAX_STACKED_FRAMES = 3  # stacking makes C * C products: none wasted for two frames, a quarter for three


class TemporalConv(nn.Module):
    """`nn.Conv3d(I, O, 3, padding=1)` on clips laid out (C, M, I, h, w), with the same weights and keys.

    A clip of C frames needs 3 C - 2 products of a frame and a temporal slice of the kernel. The others of the
    3 C products of a padded Conv3d, a third of them at the usual C = 2, multiply zeros. A CPU skips them. A
    GPU, where starting an operation costs more, runs a short clip as one 2-D convolution over its frames side
    by side. Clips are laid out (C, M, ...) so that "all frames but the first" is one block of memory.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, 3, 3, 3))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu")

    def forward(self, clips: Tensor) -> Tensor:
        """Map clips (C, M, I, h, w) to (C, M, O, h, w)."""
        if clips.device.type == "cpu":
            return self.convolve_slices(clips)
        return self.convolve_stacked(clips) if len(clips) <= MAX_STACKED_FRAMES else self.convolve_3d(clips)

    def convolve_slices(self, clips: Tensor) -> Tensor:
        """Run `forward` as three 2-D convolutions, each over the frames it can reach: fast on a CPU."""
        return self._add(
            self._clip_product(clips, CENTER),
            self._clip_product(clips[:-1], BEFORE),
            self._clip_product(clips[1:], AFTER),
        )

    def convolve_stacked(self, clips: Tensor) -> Tensor:
        """Run `forward` as one 2-D convolution over the channels of all frames: fast on a GPU."""
        num_frames = len(clips)
        stacked = clips.transpose(0, 1).flatten(1, 2)  # (M, C * I, h, w)
        stacked = stacked.contiguous(memory_format=torch.channels_last)
        kernel = stack_kernel(self.weight, num_frames)
        output = F.conv2d(stacked, kernel, self.bias.repeat(num_frames), padding=1)
        return torch.unflatten(output, 1, (num_frames, -1)).transpose(0, 1)

    def convolve_3d(self, clips: Tensor) -> Tensor:
        """Run `forward` as one 3-D convolution: for long clips on a GPU."""
        layout = torch.channels_last_3d
        stacked = clips.permute(1, 2, 0, 3, 4).contiguous(memory_format=layout)  # (M, I, C, h, w)
        output = F.conv3d(stacked, self.weight.contiguous(memory_format=layout), self.bias, padding=1)
        return output.permute(2, 0, 1, 3, 4)

    def products(self, frames: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The three products (N, O, h, w) of each frame (N, I, h, w): all that clips are made of."""
        return self._product(frames, BEFORE), self._product(frames, CENTER), self._product(frames, AFTER)

    def add_products(self, products: tuple[Tensor, ...], indices: Tensor) -> Tensor:
        """The output (C, M, O, h, w) for clips of frames `indices` (C, M), from `products` of the video."""
        before, center, after = products
        return self._add(center[indices], before[indices[:-1]], after[indices[1:]])

    def _product(self, frames: Tensor, part: int) -> Tensor:
        """Convolve frames (N, I, h, w) with one temporal slice of the kernel: (N, O, h, w)."""
        bias = self.bias if part == CENTER else None
        return F.conv2d(frames, self.weight[:, :, part], bias, padding=1)

    def _clip_product(self, clips: Tensor, part: int) -> Tensor:
        """Convolve clips (c, M, I, h, w) with one temporal slice: (c, M, O, h, w)."""
        if len(clips) == 0:
            return clips
        return torch.unflatten(self._product(clips.flatten(0, 1), part), 0, clips.shape[:2])

    @staticmethod
    def _add(center: Tensor, before: Tensor, after: Tensor) -> Tensor:
        """Add center (C, ...), before (C - 1, ...) shifted one frame later and after one frame earlier."""
        sums = list(center.unbind(0))
        for position in range(len(sums) - 1):
            sums[position] = sums[position] + after[position]
            sums[position + 1] = sums[position + 1] + before[position]
        return torch.stack(sums)


def stack_kernel(weight: Tensor, num_frames: int) -> Tensor:
    """Arrange a kernel (O, I, 3, 3, 3) for C frames side by side: (C * O, C * I, 3, 3).

    Block (p, q) holds the weights from frame q to frame p.
    """
    slices = weight.unbind(2)
    nothing = torch.zeros_like(slices[CENTER])
    frames = range(num_frames)
    blocks = [[slices[q - p + CENTER] if abs(q - p) <= 1 else nothing for q in frames] for p in frames]
    return torch.cat([torch.cat(row, dim=1) for row in blocks])


class ConvEmbedder(ContextEmbedder):
    """3x3x3 convolutions with BatchNorm and ReLU, global max-pool, FC with ReLU, linear embedding.

    `conv_channels` and `fc_channels` are the output channels of each layer; for the sizes see `Embedder`.

    Args:
        pooling: "max" (paper) or "avg" over context frames and positions; "flatten" keeps all positions.
        dropout: before each fully connected layer; 0 in the paper, 0.1 in the authors' program.
        reduce_channels: channels of a 1x1 convolution in front, which makes the rest cheap on a CPU; 0 or
            None for no such layer.
        norm_momentum: of BatchNorm's running statistics. The authors' program has 0.01, which takes
            hundreds of updates to forget the first values; 0.1 is right after a short training, too.
        feature_map_size: (h, w) of the features; needed for "flatten", and only then.
        capacity: factor on `conv_channels` and `fc_channels`, rounded (2 x 256 in the authors' program).
        normalize: scale each embedding to length 1.
        embedding_gain: factor on the initial weights of the embedding (1 in the authors' program). Below
            1, frames start closer together, so the first updates need not pull them in.
    """

    trait_names = ("context_frames", "context_stride", "pooling", "normalize")

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
        feature_map_size: tuple[int, int] | None = None,
        capacity: float = 1.0,
        batch_norm: bool = True,
        normalize: bool = False,
        embedding_gain: float = 1.0,
    ) -> None:
        super().__init__()
        check_context(context_frames, context_stride)
        _check(conv_channels, pooling=pooling, feature_map_size=feature_map_size, capacity=capacity)
        conv_channels, fc_channels = _scale(conv_channels, capacity), _scale(fc_channels, capacity)
        self.in_channels, self.embedding_size = in_channels, embedding_size
        self.context_frames, self.context_stride, self.pooling = context_frames, context_stride, pooling
        self.feature_map_size, self.normalize = feature_map_size and tuple(feature_map_size), normalize
        self.reduce: nn.Module = nn.Identity()
        if reduce_channels:
            conv = nn.Conv2d(in_channels, reduce_channels, 1, bias=False)
            self.reduce = nn.Sequential(conv, nn.BatchNorm2d(reduce_channels, eps=1e-3), nn.ReLU())
        sizes = (reduce_channels or in_channels, *conv_channels)
        self.convs = nn.ModuleList(TemporalConv(i, o) for i, o in zip(sizes, conv_channels, strict=False))
        self.norms = nn.ModuleList(
            nn.BatchNorm2d(size, eps=1e-3, momentum=norm_momentum) if batch_norm else nn.Identity()
            for size in conv_channels
        )
        height, width = feature_map_size or (1, 1)
        positions = context_frames * height * width if pooling == "flatten" else 1
        sizes = (sizes[-1] * positions, *fc_channels)
        self.fcs = nn.ModuleList(glorot_linear(i, o) for i, o in zip(sizes, fc_channels, strict=False))
        self.dropout = nn.Dropout(dropout)
        self.embedding = glorot_linear(sizes[-1], embedding_size, gain=embedding_gain)

    @property
    def _first_conv(self) -> TemporalConv:
        return cast(TemporalConv, self.convs[0])

    def forward(self, features: Tensor, frames: Tensor | None = None) -> Tensor:
        """Map features (B, T, C, F, h, w) to embeddings (B, T, D)."""
        clips = features.flatten(0, 1).transpose(0, 1)  # (C, M, F, h, w)
        reduced = torch.unflatten(self._reduce(clips.flatten(0, 1)), 0, clips.shape[:2])
        embeddings = self._embed_sums(self._first_conv(reduced))  # (M, D)
        return torch.unflatten(embeddings, 0, features.shape[:2])

    def frame_terms(self, features: Tensor) -> tuple[Tensor, ...]:
        """Convolve each frame (N, F, h, w) with the temporal slices of the first kernel."""
        return self._first_conv.products(self._reduce(features))

    def embed_terms(self, terms: tuple[Tensor, ...], indices: Tensor) -> Tensor:
        """Embed clips of frames `indices` (C, M): (M, D)."""
        return self._embed_sums(self._first_conv.add_products(terms, indices))

    def _reduce(self, frames: Tensor) -> Tensor:
        """Map features (N, F, h, w), of any float type, to the input of the first convolution."""
        reduced: Tensor = self.reduce(frames.to(self.embedding.weight.dtype))
        return reduced

    def _embed_sums(self, sums: Tensor) -> Tensor:
        """Map the output (C, M, O, h, w) of the first convolution, before BatchNorm, to (M, D)."""
        maps = self._activate(sums, 0)
        for layer in range(1, len(self.convs)):
            maps = self._activate(self.convs[layer](maps), layer)
        hidden = self._pool(maps)
        for fc in self.fcs:
            hidden = F.relu(fc(self.dropout(hidden)))
        embeddings: Tensor = self.embedding(hidden)
        return F.normalize(embeddings, dim=-1) if self.normalize else embeddings

    def _activate(self, maps: Tensor, layer: int) -> Tensor:
        """Apply BatchNorm and ReLU to (C, M, O, h, w)."""
        activated = F.relu(self.norms[layer](maps.flatten(0, 1)))
        return torch.unflatten(activated, 0, maps.shape[:2])

    def _pool(self, maps: Tensor) -> Tensor:
        """Map (C, M, O, h, w) to (M, O), or to (M, C * O * h * w) flattened."""
        if self.pooling == "max":
            return maps.amax(dim=(0, 3, 4))
        if self.pooling == "avg":
            return maps.mean(dim=(0, 3, 4))
        if tuple(maps.shape[-2:]) != self.feature_map_size:
            expected, size = self.feature_map_size, tuple(maps.shape[-2:])
            raise ValueError(f"the embedder flattens feature maps of size {expected}, got {size}")
        return maps.transpose(0, 1).flatten(1)


def _check(
    conv_channels: Sequence[int], *, pooling: str, feature_map_size: tuple[int, int] | None, capacity: float
) -> None:
    if not conv_channels:
        raise ValueError("conv_channels must name at least one convolution, got ()")
    if pooling not in get_args(Pooling):
        raise ValueError(f"pooling must be one of {get_args(Pooling)}, got {pooling!r}")
    if (pooling == "flatten") != (feature_map_size is not None):
        raise ValueError(
            f"feature_map_size (h, w) belongs to pooling 'flatten', got pooling {pooling!r} "
            f"and feature_map_size {feature_map_size}"
        )
    if capacity <= 0:
        raise ValueError(f"capacity must be above 0, got {capacity}")


def _scale(channels: Sequence[int], capacity: float) -> tuple[int, ...]:
    return tuple(max(round(capacity * size), 1) for size in channels)
