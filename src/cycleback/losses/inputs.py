"""What the losses ask of their inputs, checked once at the door; and the precision they compute in.

Shapes: B videos, T sampled frames per video, D embedding size.
"""

from collections.abc import Collection

import torch
from torch import Tensor


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Refuse a name that is not one of `choices`."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_positive(name: str, value: float) -> None:
    """Refuse zero, negative numbers and NaN."""
    if not value > 0:
        raise ValueError(f"{name} must be positive, got {value!r}")


def check_embeddings(embeddings: Tensor, *, min_videos: int) -> None:
    """Refuse embeddings that are not (B >= `min_videos`, T, D), or have no frame or no channel."""
    shape = tuple(embeddings.shape)
    if len(shape) != 3 or shape[0] < min_videos or 0 in shape:
        raise ValueError(f"embeddings must be (B >= {min_videos}, T, D), got {shape}")


def check_per_frame(name: str, values: Tensor, embeddings: Tensor) -> None:
    """Refuse values that are not one for each frame (B, T) of the embeddings."""
    expected = tuple(embeddings.shape[:2])
    if tuple(values.shape) != expected:
        raise ValueError(f"{name} must be (B, T) = {expected} like the embeddings, got {tuple(values.shape)}")


def check_mask(mask: Tensor, embeddings: Tensor) -> None:
    """Refuse a mask that is not boolean (B, T), or that leaves a video without a frame."""
    check_per_frame("mask", mask, embeddings)
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be bool, True for real frames, got {mask.dtype}")
    empty = (~mask.any(dim=1)).nonzero().flatten().tolist()
    if empty:
        raise ValueError(f"mask leaves no frame in videos {empty} of the batch; drop these videos")


def can_look(values: Tensor) -> bool:
    """Whether values may be read for a check: not while a CUDA graph is recorded, when there are none."""
    return not (values.is_cuda and torch.cuda.is_current_stream_capturing())


def without_autocast(embeddings: Tensor) -> torch.autocast:
    """Context in which autocast is off: a half-precision softmax saturates, and distances cancel."""
    return torch.autocast(embeddings.device.type, enabled=False)


def full_precision(values: Tensor) -> Tensor:
    """Half precision and integers become float32; float64 stays."""
    return values if values.dtype == torch.float64 else values.float()
