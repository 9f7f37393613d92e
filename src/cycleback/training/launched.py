"""An update on its way: its numbers are still on the device.

Reading them waits for the device, so a GPU would stand still between updates. It is told of the next update
first, and then asked how the last one went.

Shapes: B videos, T sampled frames per video, D embedding size.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cycleback.errors import TrainingError
from cycleback.losses import LossParts
from cycleback.training.batches import Batch
from cycleback.training.images import shown_frames
from cycleback.training.report import StepReport

TOTAL, NORM = "", "|gradient|"  # no names of losses


@dataclass(frozen=True)
class Launched:
    """What an update was made of, and where its numbers will be.

    Attributes:
        step: updates so far, this one included.
        numbers: length of the gradient before clipping, and the losses of each batch of the update.
        embeddings: (B, T, D) of the last batch, before the update.
        names: names of the training videos, for messages.
        shows_frames: whether the embeddings are those of all frames of the last batch.
    """

    step: int
    learning_rate: float
    numbers: "Numbers"
    batches: Sequence[Batch]
    embeddings: Tensor
    names: Sequence[str]
    shows_frames: bool

    def report(self) -> StepReport:
        """How it went; waits for the device."""
        self.require_finite()
        means = {name: float(np.mean(column)) for name, column in self.numbers.read().items()}
        return StepReport(
            step=self.step,
            gradient_norm=means.pop(NORM),
            loss=means.pop(TOTAL),
            parts=means,
            learning_rate=self.learning_rate,
            embeddings=self.embeddings,
            frames=shown_frames(self.batches[-1]) if self.shows_frames else None,
        )

    def require_finite(self) -> None:
        """Refuse to go on with numbers that are none; waits for the device."""
        values = self.numbers.read()
        if np.isfinite([*values[NORM], *values[TOTAL]]).all():
            return
        broken = next((i for i, total in enumerate(values[TOTAL]) if not math.isfinite(total)), -1)
        parts = {name: column[broken] for name, column in values.items() if name not in (NORM, TOTAL)}
        terms = ", ".join(f"{name} {value:g}" for name, value in parts.items())
        videos = ", ".join(self.names[video] for video in self.batches[broken].videos)
        raise TrainingError(
            f"loss or gradient is not finite at update {self.step} ({terms}; videos: {videos}). "
            "Lower optimizer.learning_rate or set optimizer.clip_norm; the last saved state is whole."
        )


class Numbers:
    """The scalars of an update on their way from the device; only reading them waits."""

    def __init__(self, gradient_norm: Tensor, losses: Sequence[LossParts]) -> None:
        self._names = [NORM, *(name for parts in losses for name in (TOTAL, *parts.parts))]
        scalars = torch.stack([gradient_norm, *(v for p in losses for v in (p.total, *p.parts.values()))])
        self._values, self._arrived = scalars, None
        if scalars.is_cuda:
            self._values = torch.empty(scalars.shape, pin_memory=True).copy_(scalars, non_blocking=True)
            self._arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._arrived.record()

    def read(self) -> dict[str, list[float]]:
        """Length of the gradient, the losses and their parts: by name, a number a batch."""
        if self._arrived is not None:
            self._arrived.synchronize()
        columns: dict[str, list[float]] = {}
        for name, value in zip(self._names, self._values.tolist(), strict=True):
            columns.setdefault(name, []).append(value)
        return columns
