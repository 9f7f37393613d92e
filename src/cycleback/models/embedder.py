"""The interface of an embedder: features of a frame and its context frames to one embedding.

Shapes: B videos, T sampled frames, C context frames (oldest first, the frame itself last), N frames of a
whole video, n frames of a chunk, M clips, F feature channels, h w feature map, D embedding size.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Embedder(nn.Module, ABC):
    """Features to embeddings, for sampled clips (`forward`) and for whole videos (`embed_stream`)."""

    in_channels: int  # feature channels it expects (F)
    embedding_size: int  # size of an embedding (D)
    context_frames: int = 1  # frames per embedding (C), the frame itself included
    context_stride: int = 1  # frames of the video between two context frames
    standardize: bool = False  # whether each whole video is scaled to mean 0 and standard deviation 1
    takes_half: bool = False  # whether it may get features in 16 bits; all others get float32
    can_count_frames: bool = False  # whether it can know how long the video has run, and close cycles by that
    mixes_frames: bool = False  # whether the embedding of a frame depends on the other sampled frames
    trait_names: tuple[str, ...] = ()  # attributes besides the weights that change the embeddings

    @property
    def traits(self) -> dict[str, object]:
        """The values of `trait_names`, part of the fingerprint."""
        return {name: getattr(self, name) for name in self.trait_names}

    @abstractmethod
    def forward(self, features: Tensor, frames: Tensor | None = None) -> Tensor:
        """Map features (B, T, C, F, h, w) to embeddings (B, T, D).

        `frames` (B, T) are their frame numbers; None numbers them 0, 1, 2 and so on.
        """

    @abstractmethod
    def embed_stream(self, chunks: Iterable[Tensor]) -> Iterator[Tensor]:
        """Embed a video that arrives in chunks, in evaluation mode and without gradients.

        Takes features (n, F, h, w) of consecutive frames, in chunks of any length, and yields embeddings
        (n, D), one tensor per chunk. The chunk length changes them by rounding at most. Memory grows with the
        chunk and with the span of the context, not with the video.
        """


class ContextEmbedder(Embedder):
    """An embedder that sees a frame and a fixed number of frames before it, and nothing else."""

    @abstractmethod
    def frame_terms(self, features: Tensor) -> tuple[Tensor, ...]:
        """Compute everything that depends on one frame only: features (N, F, h, w) to tensors (N, ...)."""

    @abstractmethod
    def embed_terms(self, terms: tuple[Tensor, ...], indices: Tensor) -> Tensor:
        """Embed clips of frames `indices` (C, M) from the `frame_terms` of their video: (M, D)."""

    def embed_stream(self, chunks: Iterable[Tensor]) -> Iterator[Tensor]:
        """Map features (n, F, h, w) of consecutive frames, in chunks, to embeddings (n, D)."""
        reach = self.context_stride * (self.context_frames - 1)
        history: tuple[Tensor, ...] = ()
        start = 0
        for features in chunks:
            with eval_mode(self), torch.no_grad():
                terms = self.frame_terms(features)
                if history:
                    terms = tuple(torch.cat(pair) for pair in zip(history, terms, strict=True))
                kept = len(terms[0]) - len(features)
                indices = self._context(start, len(features)).to(features.device) - (start - kept)  # (C, n)
                embeddings = self.embed_terms(terms, indices)
                history = tuple(term[max(len(term) - reach, 0) :].clone() for term in terms) if reach else ()
            start += len(features)
            yield embeddings

    def _context(self, start: int, count: int) -> Tensor:
        """Context frames of frames start ... start + count - 1: (C, count), clamped at frame 0."""
        back = torch.arange(self.context_frames - 1, -1, -1) * self.context_stride  # (C,)
        return (torch.arange(start, start + count) - back[:, None]).clamp_min(0)


def check_context(context_frames: int, context_stride: int) -> None:
    """Refuse context frames or a stride below 1."""
    if context_frames < 1 or context_stride < 1:
        got = f"{context_frames} and {context_stride}"
        raise ValueError(f"context_frames and context_stride must be at least 1, got {got}")


def glorot_linear(inputs: int, outputs: int, *, bias: bool = True, gain: float = 1.0) -> nn.Linear:
    """A fully connected layer with Glorot weights times `gain` and zero bias (authors' program: gain 1)."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight, gain=gain)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


@contextmanager
def eval_mode(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode inside the block, then restore the mode of each of its parts."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training
