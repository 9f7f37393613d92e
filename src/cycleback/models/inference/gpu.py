"""Frozen copies of a base and of the paper's embedder for a GPU, in bfloat16.

A GPU spends most of this work moving feature maps to and from its memory, so each layer reads and writes them
as seldom as possible. Everything here also runs on a CPU, with the same values.

Shapes: N images or frames of a video, M clips, C context frames, H W pixels, I O channels in and out,
F feature channels, h w feature map, D embedding size.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.base import Base
from cycleback.models.conv_embedder import MAX_STACKED_FRAMES, ConvEmbedder, TemporalConv, stack_kernel
from cycleback.models.embedder import Embedder
from cycleback.models.layers import ConvNorm, FoldedConv, freeze_copy
from cycleback.models.ops import block_reach, conv_relu, fold_batch_norm, to_block_kernel, to_pixel_blocks

BATCH_MULTIPLE = 32  # cuDNN plans every layer again for a new batch size, so sizes are rounded up to this


def _round_up(count: int) -> int:
    """The next batch size that is a multiple of BATCH_MULTIPLE."""
    return -(-count // BATCH_MULTIPLE) * BATCH_MULTIPLE


class GpuConv(FoldedConv):
    """A `FoldedConv` with ReLU, and the sum before it, inside cuDNN's convolution."""

    def forward(self, input: Tensor) -> Tensor:
        """Map (N, I, H, W) to (N, O, h, w), with the padding of the `ConvNorm` it was made of."""
        if isinstance(self.activation, nn.ReLU) and self.dtype != torch.float32:
            return self.add_relu(input, None)
        input, padding = self._pad(input)
        summed = F.conv2d(input, self.weight, self.bias, self.stride, padding, 1, self.groups)
        output: Tensor = self.activation(summed)
        return output

    def add_relu(self, input: Tensor, other: Tensor | None) -> Tensor:
        """Apply ReLU to the sum of the convolution of `input` and `other` (N, O, h, w)."""
        input, padding = self._pad(input)
        return conv_relu(
            input,
            self.weight,
            self.bias,
            stride=self.stride,
            padding=padding,
            groups=self.groups,
            other=other,
        )

    def _pad(self, input: Tensor) -> tuple[Tensor, tuple[int, int]]:
        """Cast the input, and pad it unless the convolution can: both sides must then be alike."""
        input = input.to(self.dtype)
        (top, bottom), (left, right) = self.padding_of(input)
        if (top, left) == (bottom, right):
            return input, (top, left)
        return F.pad(input, (left, right, top, bottom)), (0, 0)


class PixelBlockConv(nn.Module):
    """A first layer of stride 2, with normalisation and ReLU, as a stride-1 convolution over pixel blocks.

    Frames are normalised, cast, padded and rearranged in one step (see `to_pixel_blocks`). `scale` (3,) is
    the factor on the colours of frames in [0, 255], and `shift` (3,) is added to them.
    """

    def __init__(self, source: ConvNorm, *, scale: Tensor, shift: Tensor, dtype: torch.dtype) -> None:
        super().__init__()
        (kernel, bias), padding = source.fold(), source.padding or 0
        self.reach = block_reach(kernel.shape[-1], padding)
        weight = to_block_kernel(kernel.detach(), padding=padding).to(dtype)
        self.weight = weight.contiguous(memory_format=torch.channels_last)
        self.bias = bias.detach().to(dtype)
        self.scale, self.shift = scale, shift

    def forward(self, frames: Tensor) -> Tensor:
        """Map frames (N, 3, H, W), uint8 or in [0, 1], to (N rounded up, O, h, w) of half the size."""
        scale = self.scale if frames.dtype == torch.uint8 else 255 * self.scale
        blocks = to_pixel_blocks(
            frames,
            self.reach,
            dtype=self.weight.dtype,
            normalization=(scale, self.shift),
            count=_round_up(len(frames)),
        )
        return conv_relu(blocks, self.weight, self.bias)


class GpuBase(nn.Module):
    """A frozen copy of a base; call it like the base. Its features are bfloat16 and channels last.

    Args:
        base: its `float32_parts` stay in float32, except for a first layer that runs over pixel blocks.
        dtype: of the arithmetic; float32 is for tests.
    """

    def __init__(self, base: Base, *, dtype: torch.dtype = torch.bfloat16) -> None:
        super().__init__()
        black = torch.zeros(1, 3, 1, 1, device=next(base.parameters()).device)
        self.shift = base.normalize(black)  # normalising is a factor and a shift per colour
        self.scale = (base.normalize(black + 1) - self.shift) / 255
        self.has_pixel_blocks = False

        def replace(layer: ConvNorm, is_float32: bool) -> nn.Module:
            if layer.can_use_pixel_blocks:
                self.has_pixel_blocks = True
                scale, shift = self.scale.flatten(), self.shift.flatten()
                return PixelBlockConv(layer, scale=scale, shift=shift, dtype=dtype)
            return GpuConv(layer, dtype=torch.float32 if is_float32 else dtype)

        self.network = freeze_copy(base, replace)

    @torch.no_grad()
    def forward(self, frames: Tensor) -> Tensor:
        """Map images (N, 3, H, W), uint8 or float in [0, 1], to features (N, F, h, w)."""
        images = frames if self.has_pixel_blocks else self._normalize(frames)
        return self.network.feature_map(images)[: len(frames)]

    def _normalize(self, frames: Tensor) -> Tensor:
        """Normalise the images; blank ones fill the batch up."""
        scale = self.scale if frames.dtype == torch.uint8 else 255 * self.scale
        shape = (_round_up(len(frames)), *frames.shape[1:])
        images = torch.empty(shape, device=frames.device, memory_format=torch.channels_last)
        torch.addcmul(self.shift, frames, scale, out=images[: len(frames)])
        images[len(frames) :] = 0
        return images


class GpuEmbedder(Embedder):
    """A frozen copy of a `ConvEmbedder` for whole videos: BatchNorm folded, few and large products."""

    takes_half = True
    trait_names = ConvEmbedder.trait_names

    def __init__(self, source: ConvEmbedder, *, dtype: torch.dtype) -> None:
        super().__init__()
        self.in_channels, self.embedding_size = source.in_channels, source.embedding_size
        self.context_frames, self.context_stride = source.context_frames, source.context_stride
        self.pooling, self.normalize = source.pooling, source.normalize
        self._dtype = dtype
        self._reduce: tuple[Tensor, Tensor] | None = None
        if isinstance(source.reduce, nn.Sequential):
            conv, norm, _ = source.reduce
            weight, bias = fold_batch_norm(cast(nn.Conv2d, conv).weight, None, norm)
            self._reduce = _to_channels_last(weight, dtype), bias.detach().to(dtype)
        (first, bias), *others = (
            fold_batch_norm(cast(TemporalConv, conv).weight, cast(TemporalConv, conv).bias, norm)
            for conv, norm in zip(source.convs, source.norms, strict=True)
        )
        self._taps = _to_channels_last(torch.cat(first.unbind(2)), dtype)  # (3 O, I, 3, 3)
        bias = F.pad(bias.detach(), (len(bias), len(bias)))  # (3 O,): only the frame's own slice has one
        self._bias = bias.to(dtype)
        self._layers = [
            (
                _to_channels_last(stack_kernel(kernel, self.context_frames), dtype),
                bias.detach().repeat(self.context_frames).to(dtype),
            )
            for kernel, bias in others
        ]
        linears = [cast(nn.Linear, fc) for fc in source.fcs]
        self._fcs = [(fc.weight.detach().to(dtype), fc.bias.detach().to(dtype)) for fc in linears]
        last = source.embedding
        self._embedding = (last.weight.detach().clone(), last.bias.detach().clone())

    @staticmethod
    def supports(embedder: ConvEmbedder) -> bool:
        """Whether this class can replace an embedder."""
        return embedder.pooling != "flatten" and embedder.context_frames <= MAX_STACKED_FRAMES

    def forward(self, features: Tensor, frames: Tensor | None = None) -> Tensor:
        """Map features (B, T, C, F, h, w) to embeddings (B, T, D)."""
        products = self._convolve_frames(features.flatten(0, 2))  # (M * C, 3 O, h, w)
        context = [products[place :: self.context_frames] for place in range(self.context_frames)]
        sums = self._empty_sums(len(context[0]), like=products)
        self._add_up(sums[: len(context[0])], context)
        return torch.unflatten(self._embed_sums(sums)[: len(context[0])], 0, features.shape[:2])

    def _convolve_frames(self, features: Tensor) -> Tensor:
        """Convolve each frame (N, F, h, w) with the temporal slices of the first kernel: (N, 3 O, h, w)."""
        maps = features.to(self._dtype).contiguous(memory_format=torch.channels_last)
        maps = F.pad(maps, (0, 0, 0, 0, 0, 0, 0, _round_up(len(maps)) - len(maps)))
        if self._reduce is not None:
            maps = conv_relu(maps, *self._reduce)
        return F.conv2d(maps, self._taps, self._bias, padding=1)[: len(features)]

    def embed_stream(self, chunks: Iterable[Tensor]) -> Iterator[Tensor]:
        """Map features (n, F, h, w) of consecutive frames, in chunks, to embeddings (n, D).

        Frames are consecutive, so no clip is gathered: all clips of a span read slices of the products.
        """
        backs = [self.context_stride * place for place in range(self.context_frames)][::-1]
        history, start = None, 0
        for features in chunks:
            with torch.no_grad():
                products = self._convolve_frames(features)
                history = products[:0] if history is None else history
                count = len(products)
                sums = self._empty_sums(count, like=products)
                edges = {0, count, *backs, *(back - start for back in backs)}
                for first, end in pairwise(sorted(edge for edge in edges if 0 <= edge <= count)):
                    context = [_slice(history, products, first - back, end - back) for back in backs]
                    self._add_up(sums[first:end], context)
                embeddings = self._embed_sums(sums)[:count]
                history = torch.cat([history, products[-backs[0] :]])[-backs[0] :] if backs[0] else history
            start += count
            yield embeddings

    def _empty_sums(self, count: int, *, like: Tensor) -> Tensor:
        """Memory for the first layer's output (M rounded up, C * O, h, w); clips beyond M are zero."""
        shape = (_round_up(count), self.context_frames * like.shape[1] // 3, *like.shape[2:])
        sums = torch.empty(shape, dtype=self._dtype, device=like.device, memory_format=torch.channels_last)
        sums[count:] = 0
        return sums

    def _add_up(self, sums: Tensor, context: Sequence[Tensor]) -> None:
        """Add the products (M, 3 O, h, w) of the C frames of each clip into `sums` (M, C * O, h, w)."""
        before, center, after = zip(*(products.chunk(3, dim=1) for products in context), strict=True)
        for position, place in enumerate(sums.chunk(len(context), dim=1)):
            others = [*before[max(position - 1, 0) : position], *after[position + 1 : position + 2]]
            if not others:
                place.copy_(center[position])
            for number, other in enumerate(others):
                torch.add(place if number else center[position], other, out=place)

    def _embed_sums(self, sums: Tensor) -> Tensor:
        """Map the first layer's sums (M, C * O, h, w) to embeddings (M, D)."""
        maps = sums.relu_()
        for weight, bias in self._layers:
            maps = conv_relu(maps, weight, bias, padding=(1, 1))
        if self.pooling == "max":
            hidden = torch.unflatten(maps.amax(dim=(2, 3)), 1, (self.context_frames, -1)).amax(dim=1)
        else:
            hidden = torch.unflatten(maps.mean(dim=(2, 3)), 1, (self.context_frames, -1)).mean(dim=1)
        for weight, bias in self._fcs:  # hidden is (M, O)
            hidden = F.relu(F.linear(hidden, weight, bias))
        embeddings = F.linear(hidden.float(), *self._embedding)
        return F.normalize(embeddings, dim=-1) if self.normalize else embeddings


def _slice(history: Tensor, products: Tensor, first: int, end: int) -> Tensor:
    """The products (m, 3 O, h, w) of frames first ... end - 1, counted from the first new frame.

    Earlier frames are in `history`. Before the video begins, its first frame is repeated.
    """
    if first >= 0:
        return products[first:end]
    if first >= -len(history):
        return history[len(history) + first : len(history) + end]
    still = history[:1] if len(history) else products[:1]
    return still.expand(end - first, *still.shape[1:])


def _to_channels_last(weight: Tensor, dtype: torch.dtype) -> Tensor:
    return weight.detach().to(dtype).contiguous(memory_format=torch.channels_last)
