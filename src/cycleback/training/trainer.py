"""The training loop, readable top to bottom.

One update: learning rate → batch → forward → loss → backward → clip → step → log → look → save.
"""

import dataclasses
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch
from torch import nn

from cycleback.data.augmentation import AugmentSettings
from cycleback.errors import TrainingError
from cycleback.losses import CombinedLoss, LossParts
from cycleback.models import Encoder
from cycleback.training.batches import Batch
from cycleback.training.distributed import Processes
from cycleback.training.ema import WeightAverage
from cycleback.training.failures import explained, saving
from cycleback.training.interrupt import stop_on_interrupt
from cycleback.training.launched import Launched, Numbers
from cycleback.training.log import RunLog
from cycleback.training.precision import Arithmetic, Forward, deterministic
from cycleback.training.report import StepReport
from cycleback.training.schedule import Schedule, learning_rate_factor
from cycleback.training.selection import Selector, better_of, write_selected
from cycleback.training.state import Resumable, TrainState, load_state, save_state
from cycleback.training.step import Step


@dataclass
class Trainer:
    """Trains an encoder on batches that are a function of their number.

    Attributes:
        batches: number -> Batch; its inputs are frames (B, T, C, H, W, 3) uint8, vectors (B, T, C, V) or
            features (B, T, C, F, h, w).
        names: names of the training videos, for messages.
        accumulate: batches of an update; their losses are averaged.
        augmentation: None for inputs that are not pictures, which cannot be augmented.
        clip_norm: longest gradient; None or 0: any.
        ema_decay: of the running average of the weights, which is then what is saved; 0: none.
        processes: those that train together; `batches` must share each batch among them.
    """

    encoder: Encoder
    loss: CombinedLoss
    optimizer: torch.optim.Optimizer
    batches: Callable[[int], Batch]
    names: Sequence[str]
    num_updates: int
    seed: int = 0
    accumulate: int = 1
    augmentation: AugmentSettings | None = None
    clip_norm: float | None = None
    schedule: Schedule = "constant"
    warmup_updates: int = 0
    step_updates: Sequence[int] = ()
    step_factor: float = 0.1
    ema_decay: float = 0.0
    arithmetic: Arithmetic = field(default_factory=Arithmetic)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    processes: Processes = field(default_factory=Processes)

    def __post_init__(self) -> None:
        if self.accumulate < 1:
            raise ValueError(f"accumulate must be at least 1, got {self.accumulate}")

    def run(
        self,
        folder: Path,
        *,
        save_every: int = 100,
        log_every: int = 10,
        selector: Selector | None = None,
        tensorboard: bool = False,
        on_step: Callable[[StepReport], None] | None = None,
        on_save: Callable[[int], object] | None = None,
    ) -> TrainState:
        """Train to `num_updates` from where `folder` says the run is; Ctrl-C saves, then stops.

        Args:
            folder: the run folder, which all processes can read. Only the first one writes there.
            save_every: updates between saves.
            log_every: updates between lines of the log.
            selector: keeps the weights that are best on held-out videos; None: keeps the last.
            tensorboard: write the log for TensorBoard, too.
            on_step: called after each update.
            on_save: called with the step when the encoder holds the weights to keep.
        """
        state = load_state(folder, self._resumable, device=self.device)
        self.processes.share(self.encoder, self.loss)
        started, is_first = time.monotonic() - state.seconds, self.processes.is_first
        with (
            RunLog(folder if is_first else None, resume_step=state.step, tensorboard=tensorboard) as log,
            deterministic(self.arithmetic.deterministic),
            stop_on_interrupt() as interrupted,
        ):
            is_done = selector is not None and selector.is_done(state.selected)
            is_stopped = self.processes.any(interrupted())
            waiting: deque[Launched] = deque()

            def settle(left: int) -> None:
                """Wait for all but the last `left` updates, and tell of them."""
                while len(waiting) > left:
                    report = waiting.popleft().report()
                    if is_first and (report.step % log_every == 0 or report.step == self.num_updates):
                        log.write(report.to_record(seconds=time.monotonic() - started), report)
                    if is_first and on_step is not None:
                        on_step(report)

            while state.step < self.num_updates and not is_done and not is_stopped:
                with explained(state.step, self.device):
                    waiting.append(self.launch(state.step))
                state = dataclasses.replace(state, step=state.step + 1, seconds=time.monotonic() - started)
                is_last = state.step == self.num_updates
                looked = selector is not None and (is_last or state.step % selector.every == 0)
                is_saved = is_last or looked or state.step % save_every == 0
                settle(0 if is_saved else self._updates_ahead)
                is_stopped = self.processes.any(interrupted())
                if is_stopped:
                    settle(0)
                if selector is not None and looked:
                    state = self._look(folder, state, selector, log=log, on_save=on_save)
                    is_done = selector.is_done(state.selected)
                if is_saved or is_stopped:
                    self._save(folder, state, on_save=on_save)
        is_unfinished = state.step < self.num_updates
        return dataclasses.replace(
            state, stopped_early=is_done and is_unfinished, is_interrupted=is_stopped and is_unfinished
        )

    def update(self, step: int) -> StepReport:
        """One optimizer update; all that is random in it is a function of (seed, step)."""
        return self.launch(step).report()

    def launch(self, step: int) -> Launched:
        """Start an update without waiting for the device; its report tells whether it went well."""
        rate = self._set_learning_rate(step)
        self.encoder.train()
        self.optimizer.zero_grad(set_to_none=True)
        losses: list[LossParts] = []
        batches: list[Batch] = []
        for number in range(step * self.accumulate, (step + 1) * self.accumulate):
            batches.append(self.batches(number))
            embeddings, parts = self._step(number, batches[-1])
            losses.append(parts)
        self.processes.average_gradients(self._parameters)
        norm = nn.utils.clip_grad_norm_(self._parameters, self.clip_norm or math.inf)
        launched = Launched(
            step=step + 1,
            learning_rate=rate,
            numbers=Numbers(norm.detach(), losses),
            batches=batches,
            embeddings=embeddings,
            names=self.names,
            shows_frames=self.processes.world_size == 1,
        )
        if not self._updates_ahead:
            launched.require_finite()  # before the weights are touched
        self.optimizer.step()
        if self._average is not None:
            self._average.update(step)
        return launched

    def _look(
        self,
        folder: Path,
        state: TrainState,
        selector: Selector,
        *,
        log: RunLog,
        on_save: Callable[[int], object] | None,
    ) -> TrainState:
        """Measure the held-out videos; keep the weights if they are the best so far."""
        rate = 0.0
        if self.processes.is_first:
            with self._kept_weights():
                self.encoder.eval()
                rate = selector.measure()
        rate = self.processes.from_first(rate)
        if not math.isfinite(rate):
            raise TrainingError(f"held-out cycle rate is {rate} at update {state.step}. Check the videos.")
        selected = better_of(state.selected, step=state.step, rate=rate)
        if self.processes.is_first:
            log.write({"step": state.step, "held_out_cycle_rate": rate})
            with saving(folder), self._kept_weights():
                if selected.step == state.step and on_save is not None:
                    on_save(state.step)
                write_selected(folder, selected)
        return dataclasses.replace(state, selected=selected)

    def _save(self, folder: Path, state: TrainState, *, on_save: Callable[[int], object] | None) -> None:
        """Write the state, and the encoder unless better weights are kept."""
        if not self.processes.is_first:
            return
        save_state(folder, state, self._resumable)
        if state.selected is None and on_save is not None:
            with saving(folder), self._kept_weights():
                on_save(state.step)

    def _kept_weights(self) -> AbstractContextManager[None]:
        """The encoder holds the weights that are worth keeping: their average, where there is one."""
        return nullcontext() if self._average is None else self._average.in_use()

    def _set_learning_rate(self, step: int) -> float:
        factor = learning_rate_factor(
            step,
            num_updates=self.num_updates,
            warmup_updates=self.warmup_updates,
            schedule=self.schedule,
            step_updates=self.step_updates,
            step_factor=self.step_factor,
        )
        for group in self.optimizer.param_groups:
            group["lr"] = group.setdefault("base_lr", group["lr"]) * factor
        return float(self.optimizer.param_groups[0]["lr"])

    @property
    def _updates_ahead(self) -> int:
        """Updates that may be on their way: a GPU works on one while the next is made ready."""
        return 1 if self.device.type == "cuda" else 0

    @cached_property
    def _step(self) -> Step:
        return Step(
            self.encoder,
            self.loss,
            Forward(self.encoder, self.arithmetic),
            seed=self.seed,
            accumulate=self.accumulate,
            augmentation=self.augmentation,
            device=self.device,
            processes=self.processes,
            records=self.arithmetic.record,
        )

    @cached_property
    def _average(self) -> WeightAverage | None:
        return WeightAverage(self.encoder, self.ema_decay) if self.ema_decay else None

    @property
    def _resumable(self) -> dict[str, Resumable]:
        parts: dict[str, Resumable] = {
            "encoder": self.encoder,
            "loss": self.loss,
            "optimizer": self.optimizer,
        }
        return parts if self._average is None else {**parts, "ema": self._average}

    @property
    def _parameters(self) -> list[nn.Parameter]:
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
