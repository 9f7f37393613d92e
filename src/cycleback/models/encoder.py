"""Base network + embedder: images to embeddings.

Shapes: B videos, T sampled frames, C context frames (oldest first, the frame itself last), N frames of a
whole video, H W pixels, F feature channels, h w grid, D embedding size.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, Self, get_args

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from cycleback.models.base import Base, to_unit_range
from cycleback.models.embedder import Embedder

TrainBase = Literal["all", "bn", "frozen"]
Fit = Literal["stretch", "crop"]


class Encoder(nn.Module):
    """A base and an embedder that fit together, and the frames they were made for.

    Attributes:
        frame_size: (height, width) of the frames it expects.
        fit: how a video is brought to that size: "stretch", or "crop" its middle and keep the proportions.
    """

    def __init__(
        self,
        base: Base,
        embedder: Embedder,
        *,
        frame_size: tuple[int, int] = (112, 112),
        fit: Fit = "stretch",
    ) -> None:
        super().__init__()
        self.frame_size: tuple[int, int] = frame_size
        self.fit: Fit = fit
        if base.channels != embedder.in_channels:
            raise ValueError(
                f"the base gives {base.channels} channels, the embedder takes {embedder.in_channels}"
            )
        self.base, self.embedder = base, embedder
        self.train_base: TrainBase = "all"

    @property
    def context_frames(self) -> int:
        """Frames seen for one embedding (C), itself included."""
        return self.embedder.context_frames

    @property
    def context_stride(self) -> int:
        """Frames of the video between two context frames."""
        return self.embedder.context_stride

    @property
    def embedding_size(self) -> int:
        """Size of an embedding (D)."""
        return self.embedder.embedding_size

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return next(self.base.parameters()).device

    def features(self, images: Tensor) -> Tensor:
        """Images (N, 3, H, W), uint8 or float in [0, 1], to features (N, F, h, w)."""
        if images.ndim != 4 or images.shape[1] != 3:
            raise ValueError(f"images must be (N, 3, H, W), got {tuple(images.shape)}")
        features: Tensor = self.base(to_unit_range(images))
        return features

    def embed(self, features: Tensor) -> Tensor:
        """Features (B, T, C, F, h, w) to embeddings (B, T, D)."""
        expected = (self.context_frames, self.base.channels)
        if features.ndim != 6 or tuple(features.shape[2:4]) != expected:
            shape = f"(B, T, C={expected[0]}, F={expected[1]}, h, w)"
            raise ValueError(f"features must be {shape}, got {tuple(features.shape)}")
        embeddings: Tensor = self.embedder(features)
        return embeddings

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, T, C, 3, H, W), uint8 or float in [0, 1], to embeddings (B, T, D).

        In training mode BatchNorm takes its statistics over all B * T * C frames, so each embedding then
        depends on the whole batch; in evaluation mode it depends on its own C frames only.
        """
        if images.ndim != 6 or tuple(images.shape[2:4]) != (self.context_frames, 3):
            shape = f"(B, T, C={self.context_frames}, 3, H, W)"
            raise ValueError(f"images must be {shape}, got {tuple(images.shape)}")
        return self.embed(torch.unflatten(self.features(images.flatten(0, 2)), 0, images.shape[:3]))

    def embed_sequence(self, features: Tensor, *, chunk_frames: int = 64) -> Tensor:
        """A whole video: features (N, F, h, w) to embeddings (N, D), in evaluation mode and without gradient.

        The context of early frames is clamped at frame 0. `chunk_frames` bounds the memory, not the result.
        """
        if features.ndim != 4 or features.shape[1] != self.base.channels or len(features) == 0:
            shape = f"(N >= 1, F={self.base.channels}, h, w)"
            raise ValueError(f"features must be {shape}, got {tuple(features.shape)}")
        if chunk_frames < 1:
            raise ValueError(f"chunk_frames must be at least 1, got {chunk_frames}")
        pieces = (features[i : i + chunk_frames] for i in range(0, len(features), chunk_frames))
        return torch.cat(list(self.embed_stream(pieces)))

    def embed_stream(self, chunks: Iterable[Tensor]) -> Iterator[Tensor]:
        """The same for a video too long to hold: features (n, F, h, w) in pieces to embeddings (n, D)."""
        return self.embedder.embed_stream(chunks)

    def train(self, mode: bool = True) -> Self:
        """Training mode for all but a frozen base, whose BatchNorm statistics must not move."""
        super().train(mode)
        if self.train_base == "frozen":
            self.base.eval()
        return self


def freeze(encoder: Encoder, train_base: TrainBase) -> None:
    """Choose which weights of the base are trained; the embedder is always trained.

    Args:
        encoder: changed in place, for every later call of `train()` as well.
        train_base: "all"; "bn": only the scales and shifts of BatchNorm, which stays in training mode (the
            default of the authors' program); "frozen": none, and the base stays in evaluation mode.
    """
    if train_base not in get_args(TrainBase):
        raise ValueError(f"train_base must be one of {get_args(TrainBase)}, got {train_base!r}")
    encoder.train_base = train_base
    encoder.base.requires_grad_(train_base == "all")
    if train_base == "bn":
        for module in encoder.base.modules():
            if isinstance(module, _BatchNorm):
                module.requires_grad_(True)
    encoder.train(encoder.training)
