"""The form of every loss, weighted sums of losses, and the checks and precision that losses share.

Shapes: B videos, T sampled frames per video, D embedding size.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class LossParts:
    """A loss and its parts, for the log."""

    total: Tensor  # scalar to call `backward` on
    parts: dict[str, Tensor]  # scalar of each part by name, before its weight


class Loss(nn.Module):
    """`loss(embeddings (B, T, D), *, ...) -> scalar`."""

    # the keywords that `forward` takes, among those of `CombinedLoss.parts`; a caller passes no others
    needs: frozenset[str] = frozenset()
    capturable: bool = True  # whether it can be captured in a CUDA graph: it never waits for the device


class CombinedLoss(Loss):
    """Weighted sum of losses on the same embeddings (Dwibedi et al., CVPR 2019, 5.1, combined losses).

    Args:
        parts: Name -> (loss, weight >= 0). A part of weight 0 is left out and needs nothing.
    """

    def __init__(self, parts: Mapping[str, tuple[Loss, float]]) -> None:
        super().__init__()
        for name, (_, weight) in parts.items():
            if not weight >= 0:
                raise ValueError(f"weight of {name!r} must not be negative, got {weight!r}")
        self.weights = {name: float(weight) for name, (_, weight) in parts.items() if weight > 0}
        if not self.weights:
            raise ValueError(f"no part has a positive weight; parts: {sorted(parts)}")
        self.losses = nn.ModuleDict({name: parts[name][0] for name in self.weights})
        self.needs_of = {name: parts[name][0].needs for name in self.weights}
        self.needs = frozenset().union(*self.needs_of.values())
        self.capturable = all(parts[name][0].capturable for name in self.weights)

    def parts(
        self,
        embeddings: Tensor,
        *,
        times: Tensor | None = None,
        positives: Tensor | None = None,
        phases: Tensor | None = None,
        frames: Tensor | None = None,
        positive_frames: Tensor | None = None,
        targets: Tensor | None = None,
        matches: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> LossParts:
        """Return the sum and each part; a part gets only the inputs that it needs.

        Args:
            embeddings: (B, T, D).
            times: (B, T), as a fraction of the video.
            positives: (B, T, D), other frames of the same videos: close in time, or of another view.
            phases: (B, T) int64, the labels.
            frames: (B, T), frame numbers.
            positive_frames: (B, T), frame numbers of the positives.
            targets: (B, T, D), the positives as a slow copy of the encoder embeds them.
            matches: (B, B, T), the frame of the second video that goes with each frame of the first.
            generator: Source of randomness of the parts.
        """
        inputs: dict[str, Any] = {"times": times, "positives": positives, "phases": phases}
        inputs |= {"frames": frames, "positive_frames": positive_frames, "targets": targets}
        inputs |= {"matches": matches, "generator": generator}
        values: dict[str, Tensor] = {}
        for name, loss in self.losses.items():
            values[name] = loss(embeddings, **{key: inputs[key] for key in self.needs_of[name]})
        total = torch.stack([self.weights[name] * value for name, value in values.items()]).sum()
        return LossParts(total, values)

    def forward(self, embeddings: Tensor, **inputs: Any) -> Tensor:
        """Return the weighted sum, a scalar; arguments as in `parts`."""
        return self.parts(embeddings, **inputs).total


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Refuse a name that is not one of `choices`."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_positive(name: str, value: float) -> None:
    """Refuse zero, negative numbers and NaN."""
    if not value > 0:
        raise ValueError(f"{name} must be positive, got {value!r}")


def check_embeddings(embeddings: Tensor, *, min_videos: int = 1, size: int | None = None) -> None:
    """Refuse embeddings that are not (B >= `min_videos`, T, D = `size`), or have no frame or no channel."""
    shape = tuple(embeddings.shape)
    if len(shape) != 3 or shape[0] < min_videos or 0 in shape:
        raise ValueError(f"embeddings must be (B >= {min_videos}, T, D), got {shape}")
    if size is not None and shape[-1] != size:
        raise ValueError(f"embeddings must be (B, T, {size}) for this loss, got {shape}")


def check_per_frame(name: str, values: Tensor, embeddings: Tensor) -> None:
    """Refuse values that do not have one entry per frame (B, T) of the embeddings."""
    expected = tuple(embeddings.shape[:2])
    if tuple(values.shape) != expected:
        raise ValueError(f"{name} must be (B, T) = {expected} like the embeddings, got {tuple(values.shape)}")


def without_autocast(embeddings: Tensor) -> torch.autocast:
    """Return a context without autocast: a half-precision softmax saturates, and distances cancel."""
    return torch.autocast(embeddings.device.type, enabled=False)


def full_precision(values: Tensor) -> Tensor:
    """Convert half precision and integers to float32; float64 stays."""
    return values if values.dtype == torch.float64 else values.float()
