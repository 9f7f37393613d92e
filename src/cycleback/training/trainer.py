"""The training loop, readable top to bottom.

One update: learning rate → batch → forward → loss → backward → clip → step → log → save.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor, nn

from cycleback.alignment import cycle_consistency_rate
from cycleback.data import AugmentSettings, augment, draw_augmentation
from cycleback.errors import TrainingError
from cycleback.losses import CombinedLoss
from cycleback.models import Encoder
from cycleback.training.batches import Batch, mixed_seed
from cycleback.training.log import JsonlLog
from cycleback.training.schedule import Schedule, learning_rate_factor
from cycleback.training.state import TrainState, load_state, save_state


@dataclass(frozen=True)
class StepReport:
    """What one update did.

    Attributes:
        embeddings: (B, T, D) of the batch, before the update.
    """

    step: int
    loss: float
    parts: Mapping[str, float]
    gradient_norm: float
    learning_rate: float
    embeddings: Tensor

    @cached_property
    def cycle_rate(self) -> float:
        """Share of frames that cycle back to within one sampled frame; worked out when asked for."""
        return cycle_consistency_rate(list(self.embeddings.float().cpu().numpy()))


@dataclass
class Trainer:
    """Trains an encoder on batches that are a function of the step.

    Attributes:
        batches: step -> Batch; its inputs are frames (B, T, C, H, W, 3) uint8 or features (B, T, C, F, h, w).
        names: names of the training videos, for messages.
        augmentation: None for feature inputs, which cannot be augmented.
    """

    encoder: Encoder
    loss: CombinedLoss
    optimizer: torch.optim.Optimizer
    batches: Callable[[int], Batch]
    names: Sequence[str]
    num_updates: int
    seed: int = 0
    augmentation: AugmentSettings | None = None
    clip_norm: float | None = None
    schedule: Schedule = "constant"
    warmup_updates: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def run(
        self,
        folder: Path,
        *,
        save_every: int = 100,
        log_every: int = 10,
        on_step: Callable[[StepReport], None] | None = None,
        on_save: Callable[[int], object] | None = None,
    ) -> TrainState:
        """Train to `num_updates` from where `folder` says the run is; Ctrl-C saves, then stops."""
        parts = {"encoder": self.encoder, "loss": self.loss, "optimizer": self.optimizer}
        state = load_state(folder, **parts, device=self.device)  # type: ignore[arg-type]
        log = JsonlLog(folder, resume_step=state.step)
        started = time.monotonic() - state.seconds
        with _stop_on_interrupt() as interrupted:
            while state.step < self.num_updates and not interrupted():
                report = self.update(state.step)
                state = TrainState(step=state.step + 1, seconds=time.monotonic() - started)
                is_last = state.step == self.num_updates
                if is_last or state.step % log_every == 0:
                    log.write(_record(report, state))
                if is_last or interrupted() or state.step % save_every == 0:
                    save_state(folder, state, **parts)  # type: ignore[arg-type]
                    if on_save is not None:
                        on_save(state.step)
                if on_step is not None:
                    on_step(report)
        return state

    def update(self, step: int) -> StepReport:
        """One optimizer update; all that is random in it is a function of (seed, step)."""
        torch.manual_seed(mixed_seed(self.seed, step))
        rate = self._set_learning_rate(step)
        batch = self.batches(step)
        self.encoder.train()
        embeddings, near = self._embed(batch)
        parts = self.loss.parts(embeddings, times=batch.times.to(self.device), positives=near)
        self._require_finite(step, parts.total, parts.parts, batch)
        self.optimizer.zero_grad(set_to_none=True)
        parts.total.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self._parameters(), self.clip_norm or math.inf)
        self._require_finite(step, norm, parts.parts, batch)
        self.optimizer.step()
        return StepReport(
            step=step + 1,
            loss=float(parts.total.detach()),
            parts={name: float(value.detach()) for name, value in parts.parts.items()},
            gradient_norm=float(norm),
            learning_rate=rate,
            embeddings=embeddings.detach(),
        )

    def _embed(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Embeddings (B, T, D) of the anchors, and those of the positives where the batch has them."""
        inputs = batch.inputs.to(self.device, non_blocking=True)
        if inputs.dtype == torch.uint8:
            embeddings = self.encoder(self._images(inputs))
        else:
            embeddings = self.encoder.embed(inputs.float())
        if not batch.has_positives:
            return embeddings, None
        anchors, near = embeddings.chunk(2, dim=1)
        return anchors, near

    def _images(self, frames: Tensor) -> Tensor:
        """Frames (B, T, C, H, W, 3) uint8 as augmented images (B, T, C, 3, H, W) in [0, 1]."""
        images = frames.movedim(-1, -3).float() / 255
        if self.augmentation is None:
            return images
        generator = torch.Generator().manual_seed(int(torch.randint(2**62, ()).item()))
        draw = draw_augmentation(len(images), settings=self.augmentation, generator=generator)
        return augment(images, draw)

    def _set_learning_rate(self, step: int) -> float:
        factor = learning_rate_factor(
            step, num_updates=self.num_updates, warmup_updates=self.warmup_updates, schedule=self.schedule
        )
        for group in self.optimizer.param_groups:
            group["lr"] = group.setdefault("base_lr", group["lr"]) * factor
        return float(self.optimizer.param_groups[0]["lr"])

    def _parameters(self) -> list[nn.Parameter]:
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def _require_finite(self, step: int, value: Tensor, parts: Mapping[str, Tensor], batch: Batch) -> None:
        if torch.isfinite(value):
            return
        terms = ", ".join(f"{name} {float(part.detach()):g}" for name, part in parts.items())
        videos = ", ".join(self.names[video] for video in batch.videos)
        raise TrainingError(
            f"loss or gradient is not finite at update {step + 1} ({terms}; videos: {videos}). "
            "Lower optimizer.learning_rate or set optimizer.clip_norm; the last saved state is whole."
        )


def _record(report: StepReport, state: TrainState) -> dict[str, object]:
    parts = {f"loss/{name}": value for name, value in report.parts.items()}
    return {
        "step": report.step,
        "loss": report.loss,
        **parts,
        "cycle_rate": report.cycle_rate,
        "gradient_norm": report.gradient_norm,
        "learning_rate": report.learning_rate,
        "seconds": round(state.seconds, 3),
    }


@contextmanager
def _stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a request to stop after the update at hand; the second one stops at once."""
    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested.is_set
        return
    previous = signal.getsignal(signal.SIGINT)

    def request(number: int, frame: object) -> None:
        requested.set()
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, request)
    try:
        yield requested.is_set
    finally:
        signal.signal(signal.SIGINT, previous)
