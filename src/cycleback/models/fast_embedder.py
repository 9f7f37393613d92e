"""The paper's embedder as a GPU runs it fastest over whole videos: BatchNorm folded, few and large products.

Shapes: N frames of a video, M clips, C context frames, F feature channels, O channels of a layer, h w grid,
D embedding size.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.conv_embedder import ConvEmbedder
from cycleback.models.embedder import ContextEmbedder
from cycleback.models.fused_conv import conv_relu
from cycleback.models.gpu_bricks import rounded
from cycleback.models.temporal_conv import STACKED_FRAMES, TemporalConv, stacked_kernel


class FastEmbedder(ContextEmbedder):
    """A frozen copy of a `ConvEmbedder` for whole videos; later changes of the original do not reach it."""

    takes_half = True

    def __init__(self, source: ConvEmbedder, *, dtype: torch.dtype) -> None:
        super().__init__()
        self.in_channels, self.embedding_size = source.in_channels, source.embedding_size
        self.context_frames, self.context_stride = source.context_frames, source.context_stride
        self.pooling, self.normalize = source.pooling, source.normalize
        self._traits, self._dtype = source.traits, dtype
        folded = [_folded(conv, norm) for conv, norm in zip(source.convs, source.norms, strict=True)]
        first, bias = folded[0]
        self._reduce = _folded_reducer(source.reduce, dtype)
        self._taps = _channels_last(torch.cat(first.unbind(2)), dtype)  # (3 O, I, 3, 3)
        self._bias = F.pad(bias, (len(bias), len(bias))).to(dtype)  # (3 O,), of the frame itself alone
        self._layers = [
            (
                _channels_last(stacked_kernel(kernel, self.context_frames), dtype),
                bias.repeat(self.context_frames).to(dtype),
            )
            for kernel, bias in folded[1:]
        ]
        linears = [cast(nn.Linear, fc) for fc in source.fcs]
        self._fcs = [(fc.weight.detach().to(dtype), fc.bias.detach().to(dtype)) for fc in linears]
        last = source.embedding
        self._embedding = (last.weight.detach().clone(), last.bias.detach().clone())

    @property
    def traits(self) -> dict[str, object]:
        """What changes the embeddings besides the weights."""
        return self._traits

    def forward(self, features: Tensor) -> Tensor:
        """Features (B, T, C, F, h, w) to embeddings (B, T, D)."""
        clips = features.flatten(0, 1)  # (M, C, F, h, w)
        indices = torch.arange(clips.shape[0] * clips.shape[1], device=features.device)
        terms = self.frame_terms(clips.flatten(0, 1))
        embeddings = self.embed_terms(terms, indices.reshape(clips.shape[:2]).T)
        return torch.unflatten(embeddings, 0, features.shape[:2])

    def frame_terms(self, features: Tensor) -> tuple[Tensor, ...]:
        """Products (N, 3 O, h, w) of each frame (N, F, h, w) with the temporal slices of the first kernel."""
        grid = features.to(self._dtype).contiguous(memory_format=torch.channels_last)
        grid = F.pad(grid, (0, 0, 0, 0, 0, 0, 0, rounded(len(grid)) - len(grid)))
        if self._reduce is not None:
            grid = conv_relu(grid, *self._reduce)
        return (F.conv2d(grid, self._taps, self._bias, padding=1)[: len(features)],)

    def embed_terms(self, terms: tuple[Tensor, ...], indices: Tensor) -> Tensor:
        """Embeddings (M, D) of clips of frames `indices` (C, M)."""
        grid = self._empty_clips(indices.shape[1], like=terms[0])
        self._sum(grid[: indices.shape[1]], [terms[0][frames] for frames in indices])
        return self._from_clips(grid)[: indices.shape[1]]

    def embed_stream(self, chunks: Iterable[Tensor]) -> Iterator[Tensor]:
        """Features (n, F, h, w) of consecutive frames, in pieces, to embeddings (n, D) (see `Embedder`).

        Frames are consecutive, so no clip is gathered: all clips of a span read slices of the products.
        """
        backs = [self.context_stride * place for place in range(self.context_frames)][::-1]
        history, start = None, 0
        for features in chunks:
            with torch.no_grad():
                (products,) = self.frame_terms(features)
                history = products[:0] if history is None else history
                count = len(products)
                grid = self._empty_clips(count, like=products)
                edges = {0, count, *backs, *(back - start for back in backs)}
                for first, end in pairwise(sorted(edge for edge in edges if 0 <= edge <= count)):
                    seen = [_slice(history, products, first - back, end - back) for back in backs]
                    self._sum(grid[first:end], seen)
                embeddings = self._from_clips(grid)[:count]
                history = torch.cat([history, products[-backs[0] :]])[-backs[0] :] if backs[0] else history
            start += count
            yield embeddings

    def _empty_clips(self, count: int, *, like: Tensor) -> Tensor:
        """Room for the first layer's output (rounded M, C * O, h, w) of clips; those beyond M are zero."""
        shape = (rounded(count), self.context_frames * like.shape[1] // 3, *like.shape[2:])
        grid = torch.empty(shape, dtype=self._dtype, device=like.device, memory_format=torch.channels_last)
        grid[count:] = 0
        return grid

    def _sum(self, grid: Tensor, seen: Sequence[Tensor]) -> None:
        """Sum up the products (M, 3 O, h, w) of the C frames of each clip into `grid` (M, C * O, h, w)."""
        before, center, after = zip(*(products.chunk(3, dim=1) for products in seen), strict=True)
        for position, place in enumerate(grid.chunk(len(seen), dim=1)):
            others = [*before[max(position - 1, 0) : position], *after[position + 1 : position + 2]]
            if not others:
                place.copy_(center[position])
            for number, other in enumerate(others):
                torch.add(place if number else center[position], other, out=place)

    def _from_clips(self, grid: Tensor) -> Tensor:
        """Embeddings (M, D) from the first layer's sums (M, C * O, h, w)."""
        grid = grid.relu_()
        for weight, bias in self._layers:
            grid = conv_relu(grid, weight, bias, padding=(1, 1))
        return self._from_pooled(self._pool(grid))

    def _pool(self, grid: Tensor) -> Tensor:
        """Grid (M, C * O, h, w) to (M, O)."""
        if self.pooling == "max":
            return torch.unflatten(grid.amax(dim=(2, 3)), 1, (self.context_frames, -1)).amax(dim=1)
        return torch.unflatten(grid.mean(dim=(2, 3)), 1, (self.context_frames, -1)).mean(dim=1)

    def _from_pooled(self, hidden: Tensor) -> Tensor:
        for weight, bias in self._fcs:
            hidden = F.relu(F.linear(hidden, weight, bias))
        embeddings = F.linear(hidden.float(), *self._embedding)
        return F.normalize(embeddings, dim=-1) if self.normalize else embeddings


def _slice(history: Tensor, products: Tensor, first: int, end: int) -> Tensor:
    """Products (m, 3 O, h, w) of frames first ... end - 1, counted from the first new one.

    Earlier ones are in `history`. Before the video begins, its first frame stands still.
    """
    if first >= 0:
        return products[first:end]
    if first >= -len(history):
        return history[len(history) + first : len(history) + end]
    still = history[:1] if len(history) else products[:1]
    return still.expand(end - first, *still.shape[1:])


def can_be_fast(embedder: nn.Module) -> bool:
    """Whether there is a `FastEmbedder` of it."""
    return (
        isinstance(embedder, ConvEmbedder)
        and embedder.pooling != "flatten"
        and embedder.context_frames <= STACKED_FRAMES
    )


def _channels_last(weight: Tensor, dtype: torch.dtype) -> Tensor:
    return weight.detach().to(dtype).contiguous(memory_format=torch.channels_last)


def _folded(conv: nn.Module, norm: nn.Module) -> tuple[Tensor, Tensor]:
    """The kernel (O, I, 3, 3, 3) of a convolution with the BatchNorm after it, and the bias (O,) of both."""
    conv = cast(TemporalConv, conv)
    scale, shift = _affine(norm, conv.bias)
    return (conv.weight * scale[:, None, None, None, None]).detach(), (conv.bias * scale + shift).detach()


def _folded_reducer(reduce: nn.Module, dtype: torch.dtype) -> tuple[Tensor, Tensor] | None:
    """Weight and bias of the 1x1 convolution in front, BatchNorm folded in; None where there is none."""
    if isinstance(reduce, nn.Identity):
        return None
    conv, norm, _ = cast(nn.Sequential, reduce)
    conv = cast(nn.Conv2d, conv)
    scale, shift = _affine(norm, conv.weight)
    return _channels_last(conv.weight * scale[:, None, None, None], dtype), shift.detach().to(dtype)


def _affine(norm: nn.Module, like: Tensor) -> tuple[Tensor, Tensor]:
    """BatchNorm with its running statistics as a factor and a shift (O,)."""
    if not isinstance(norm, nn.BatchNorm2d):
        return torch.ones_like(like), torch.zeros_like(like)
    mean, variance = cast(Tensor, norm.running_mean), cast(Tensor, norm.running_var)
    scale = norm.weight * (variance + norm.eps).rsqrt()
    return scale, norm.bias - mean * scale
