"""What one update did.

Shapes: B videos, T sampled frames per video, D embedding size.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from cycleback.alignment import backward_share, cycle_consistency_rate


@dataclass(frozen=True)
class StepReport:
    """What one update did.

    Attributes:
        step: updates so far, this one included.
        loss: mean over the batches of the update.
        parts: each part of the loss, before its weight; likewise a mean.
        embeddings: (B, T, D) of the last batch, before the update.
        frames: (B, T, H, W, 3) uint8 the embeddings were made of; None where the input was no picture.
    """

    step: int
    loss: float
    parts: Mapping[str, float]
    gradient_norm: float
    learning_rate: float
    embeddings: Tensor
    frames: Tensor | None = None

    @cached_property
    def cycle_rate(self) -> float:
        """Share of frames that cycle back to within one sampled frame; worked out when asked for."""
        return cycle_consistency_rate(self._videos)

    @cached_property
    def backwards(self) -> float:
        """Share of pairs of videos that are matched backwards in time; worked out when asked for."""
        return backward_share(self._videos)

    @cached_property
    def _videos(self) -> list[NDArray[np.float32]]:
        return list(self.embeddings.float().cpu().numpy())

    def to_record(self, *, seconds: float) -> dict[str, float]:
        """The line of the log."""
        return {
            "step": self.step,
            "loss": self.loss,
            **{f"loss/{name}": value for name, value in self.parts.items()},
            "cycle_rate": self.cycle_rate,
            "backwards": self.backwards,
            "gradient_norm": self.gradient_norm,
            "learning_rate": self.learning_rate,
            "seconds": round(seconds, 3),
        }
