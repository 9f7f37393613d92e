"""The paper's embedder as a GPU runs it fastest over whole videos: BatchNorm folded, few and large products.

Shapes: N frames of a video, M clips, C context frames, F feature channels, O channels of a layer, h w grid,
D embedding size.
"""

from functools import reduce
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.conv_embedder import ConvEmbedder
from cycleback.models.embedder import ContextEmbedder
from cycleback.models.gpu_bricks import conv_relu, rounded
from cycleback.models.temporal_conv import STACKED_FRAMES, TemporalConv


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
        self._taps = _channels_last(torch.cat(first.weight.unbind(2)), dtype)  # (3 O, I, 3, 3)
        self._bias = bias.repeat(self.context_frames).to(dtype)[:, None, None]  # (C * O, 1, 1)
        self._layers = [
            (
                _channels_last(conv.stacked_weight(self.context_frames), dtype),
                bias.repeat(self.context_frames).to(dtype),
            )
            for conv, bias in folded[1:]
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
        return (F.conv2d(grid, self._taps, padding=1)[: len(features)],)

    def embed_terms(self, terms: tuple[Tensor, ...], indices: Tensor) -> Tensor:
        """Embeddings (M, D) of clips of frames `indices` (C, M)."""
        count = indices.shape[1]
        grid = self._clips(terms[0], F.pad(indices, (0, rounded(count) - count)))
        for weight, bias in self._layers:
            grid = conv_relu(grid, weight, bias, padding=(1, 1))
        return self._from_pooled(self._pool(grid))[:count]

    def _clips(self, products: Tensor, indices: Tensor) -> Tensor:
        """The first layer's output (M, C * O, h, w) from products (N, 3 O, h, w) of each frame."""
        before, center, after = products.chunk(3, dim=1)
        shape = (indices.shape[1], len(indices) * center.shape[1], *center.shape[2:])
        grid = torch.empty(
            shape, dtype=self._dtype, device=products.device, memory_format=torch.channels_last
        )
        for position, place in enumerate(grid.chunk(len(indices), dim=1)):
            neighbours = [before[frame] for frame in indices[max(position - 1, 0) : position]]
            neighbours += [after[frame] for frame in indices[position + 1 : position + 2]]
            if neighbours:
                torch.add(center[indices[position]], reduce(torch.add, neighbours), out=place)
            else:
                place.copy_(center[indices[position]])
        return grid.add_(self._bias).relu_()

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


def can_be_fast(embedder: nn.Module) -> bool:
    """Whether there is a `FastEmbedder` of it."""
    return (
        isinstance(embedder, ConvEmbedder)
        and embedder.pooling != "flatten"
        and embedder.context_frames <= STACKED_FRAMES
    )


def _channels_last(weight: Tensor, dtype: torch.dtype) -> Tensor:
    return weight.detach().to(dtype).contiguous(memory_format=torch.channels_last)


def _folded(conv: nn.Module, norm: nn.Module) -> tuple[TemporalConv, Tensor]:
    """A convolution with the factor of the BatchNorm after it, and the bias (O,) of both."""
    conv = cast(TemporalConv, conv)
    scale, shift = _affine(norm, conv.bias)
    folded = TemporalConv(conv.weight.shape[1], conv.weight.shape[0]).to(conv.weight.device)
    with torch.no_grad():
        folded.weight.copy_(conv.weight * scale[:, None, None, None, None])
    return folded, (conv.bias * scale + shift).detach()


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
