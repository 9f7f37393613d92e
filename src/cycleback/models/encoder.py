"""Base network + embedder: frames to embeddings.

A frame is an image (3, H, W) or a vector (V,), see `base.input_kind`; "..." below stands for either.

Shapes: B videos, T sampled frames, C context frames (oldest first, the frame itself last), N frames of a
whole video, H W pixels, V size of a vector, F feature channels, h w feature map, D embedding size.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal, Self, get_args

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from cycleback.models.base import Base, InputKind
from cycleback.models.embedder import Embedder
from cycleback.models.fused import FusedBase

TrainBase = Literal["all", "bn", "frozen"]
Statistics = Literal["batch", "fixed"]
Fit = Literal["stretch", "crop"]


class Encoder(nn.Module):
    """A base and an embedder that fit together, and the frame size they were made for.

    Attributes:
        frame_size: (height, width) of the frames it expects.
        fit: how a video is resized: "stretch", or "crop" the centre and keep the proportions.
        input_kind: as in `Base`; context_frames, context_stride, embedding_size: as in `Embedder`.
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
        self.input_kind: InputKind = base.input_kind
        self.context_frames, self.context_stride = embedder.context_frames, embedder.context_stride
        self.embedding_size = embedder.embedding_size
        self.train_base: TrainBase = "all"
        self.statistics: Statistics = "batch"

    @property
    def device(self) -> torch.device:
        """The device of its weights."""
        return next(chain(self.parameters(), self.buffers())).device

    @property
    def needs_whole_videos(self) -> bool:
        """Whether a frame cannot be embedded without the rest of its video."""
        return self.base.needs_whole_videos or self.embedder.standardize

    def features(self, frames: Tensor, side: Tensor | None = None) -> Tensor:
        """Map frames to features (N, F, h, w).

        Frames are images (N, 3, H, W), uint8 or float in [0, 1], or float vectors (N, V) from `base.prepare`.
        A base of streams also takes the other streams `side` (N, V') of these frames.
        """
        if frames.ndim != self._frame_axes + 1 or frames.shape[1] != self.base.in_channels:
            shape = f"(N, {self.base.frame_shape})"
            raise ValueError(f"{self.input_kind} must be {shape}, got {tuple(frames.shape)}")
        others = () if side is None else (side,)
        features: Tensor = self.base(self.base.to_float(frames), *others)
        return features

    @property
    def _frame_axes(self) -> int:
        return 3 if self.input_kind == "images" else 1

    def embed(self, features: Tensor, numbers: Tensor | None = None) -> Tensor:
        """Map features (B, T, C, F, h, w) of frames numbered `numbers` (B, T) to embeddings (B, T, D)."""
        expected = (self.context_frames, self.base.channels)
        if features.ndim != 6 or tuple(features.shape[2:4]) != expected:
            shape = f"(B, T, C={expected[0]}, F={expected[1]}, h, w)"
            raise ValueError(f"features must be {shape}, got {tuple(features.shape)}")
        embeddings: Tensor = self.embedder(features, numbers)
        return embeddings

    def forward(self, frames: Tensor, side: Tensor | None = None, numbers: Tensor | None = None) -> Tensor:
        """Map frames (B, T, C, ...) and `side` (B, T, C, V'), as `features` takes them, to (B, T, D).

        `numbers` (B, T) are the frame numbers, for embedders that use them.

        In training mode BatchNorm takes its statistics over all B * T * C frames, so each embedding depends
        on the whole batch. In evaluation mode it depends on its own C frames only, or on other
        frames of the video with an embedder that mixes them.
        """
        expected = (self.context_frames, self.base.in_channels)
        if frames.ndim != self._frame_axes + 3 or tuple(frames.shape[2:4]) != expected:
            shape = f"(B, T, C={self.context_frames}, {self.base.frame_shape})"
            raise ValueError(f"{self.input_kind} must be {shape}, got {tuple(frames.shape)}")
        features = self.features(frames.flatten(0, 2), None if side is None else side.flatten(0, 2))
        return self.embed(torch.unflatten(features, 0, frames.shape[:3]), numbers)

    def embed_stream(self, chunks: Iterable[Tensor]) -> Iterator[Tensor]:
        """Embed a whole video in chunks: features (n, F, h, w) to embeddings (n, D); see `Embedder`."""
        return self.embedder.embed_stream(chunks)

    def train(self, mode: bool = True) -> Self:
        """Set the training mode, except for a frozen base and for BatchNorm with fixed statistics."""
        super().train(mode)
        if self.train_base == "frozen":
            self.base.eval()
        if self.statistics == "fixed":
            for norm in _norms(self.base):
                norm.eval()
        return self


def _network(base: Base) -> Base:
    """Return the part of a base that can be trained."""
    return base.appearance if isinstance(base, FusedBase) and base.appearance is not None else base


def _norms(base: Base) -> list[nn.Module]:
    return [module for module in _network(base).modules() if isinstance(module, _BatchNorm)]


def freeze(
    encoder: Encoder, train_base: TrainBase, *, statistics: Statistics = "batch", train_from: str = ""
) -> None:
    """Choose which weights of the base are trained; the embedder is always trained.

    Args:
        encoder: changed in place; later calls of `train()` respect the choice.
        train_base: "all"; "bn": only the scales and shifts of BatchNorm, which stays in training mode (the
            default of the authors' program); "frozen": none, and the base stays in evaluation mode.
        statistics: how BatchNorm of the base normalises in training: "batch", by the statistics of the batch;
            "fixed", by those of the pretrained weights, as in inference. The frames of a batch come from few
            videos and look alike, so their statistics differ from those of other videos.
        train_from: the first part of the base that trains, such as "network.layer2"; "": all of it. Early
            layers are general and cost the most, because their feature maps are the largest.
    """
    if train_base not in get_args(TrainBase):
        raise ValueError(f"train_base must be one of {get_args(TrainBase)}, got {train_base!r}")
    if statistics not in get_args(Statistics):
        raise ValueError(f"statistics must be one of {get_args(Statistics)}, got {statistics!r}")
    norms = _norms(encoder.base)
    if train_base == "bn" and not norms:
        name = type(encoder.base).__name__
        raise ValueError(f"train_base 'bn' needs BatchNorm layers, {name} has none: use 'frozen' or 'all'")
    encoder.train_base, encoder.statistics = train_base, statistics
    encoder.base.requires_grad_(train_base == "all")
    if train_base == "bn":
        for norm in norms:
            norm.requires_grad_(True)
    if train_from:
        _freeze_before(_network(encoder.base), train_from)
    encoder.train(encoder.training)


def _freeze_before(base: Base, part: str) -> None:
    """Freeze the weights before `part`; weights are in the order of the forward pass."""
    names = [name for name, _ in base.named_parameters()]
    first = next((i for i, name in enumerate(names) if f"{name}.".startswith(f"{part}.")), None)
    if first is None:
        parts = sorted({".".join(name.split(".")[:2]) for name in names})
        raise ValueError(
            f"{type(base).__name__} has no part {part!r} to train from; parts: {', '.join(parts)}"
        )
    for _, weight in list(base.named_parameters())[:first]:
        weight.requires_grad_(False)
