"""The training loop, readable top to bottom.

One update: learning rate → batch → forward → loss → backward → clip → step → log → evaluate held-out → save.
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
from typing import Any

import torch
from torch import nn

from cycleback.data.augmentation import AugmentSettings
from cycleback.errors import TrainingError
from cycleback.losses import CombinedLoss, LossParts
from cycleback.models import Encoder
from cycleback.training.batches import Batch
from cycleback.training.distributed import Processes
from cycleback.training.failures import explain_failures, explain_save_failures, stop_on_interrupt
from cycleback.training.held_out import select_better, write_selected
from cycleback.training.log import RunLog, StepReport
from cycleback.training.settings import OptimizerSettings, RunSettings
from cycleback.training.state import TrainState, WeightAverage, load_state, save_state
from cycleback.training.update import ForwardBackward, PendingUpdate, Scalars, use_deterministic


@dataclass
class Trainer:
    """Trains an encoder on batches that are a function of their number.

    The inputs of a batch are frames (B, T, C, H, W, 3) uint8, vectors (B, T, C, V) or features (B, T, C, F,
    h, w). Only frames are augmented.
    """

    encoder: Encoder
    loss: CombinedLoss
    optimizer: torch.optim.Optimizer
    batches: Callable[[int], Batch]  # shares each batch among `processes`
    names: Sequence[str]  # of the training videos, for messages
    settings: OptimizerSettings = field(default_factory=OptimizerSettings)
    run_settings: RunSettings = field(default_factory=RunSettings)
    augmentation: AugmentSettings | None = None  # None leaves frames unchanged
    processes: Processes = field(default_factory=Processes)
    slow_momentum: float = 0.99  # of the slow copy of the encoder, for losses that need targets

    def run(
        self,
        folder: Path,
        *,
        evaluate_held_out: Callable[[], float] | None = None,
        on_step: Callable[[StepReport], None] = lambda report: None,
        on_save: Callable[[int], object] = lambda step: None,
    ) -> TrainState:
        """Train to the last update from the state in `folder`; Ctrl-C saves, then stops.

        Args:
            folder: the run folder, which all processes can read. Only the first one writes there.
            evaluate_held_out: returns the cycle-consistency rate of the held-out videos; needed for
                `select_every`.
            on_step: called after each update, by the first process.
            on_save: called with the step when the encoder holds the weights to keep.
        """
        settings, is_first = self.run_settings, self.processes.is_first
        num_updates, log_folder = self.settings.num_updates, folder if is_first else None
        state = load_state(folder, self._resumable, device=self.processes.device)
        self.processes.share(*(part for part in self._resumable.values() if isinstance(part, nn.Module)))
        started = time.monotonic() - state.seconds
        with (
            RunLog(log_folder, resume_step=state.step, tensorboard=settings.tensorboard) as log,
            use_deterministic(settings.deterministic),
            stop_on_interrupt() as is_interrupted,
        ):
            pending: deque[PendingUpdate] = deque()
            is_stopped = self.processes.any(is_interrupted())
            while state.step < num_updates and not self._has_lost_patience(state) and not is_stopped:
                # learning rate, batch, forward, loss, backward, clip, step
                with explain_failures(state.step, self.processes.device):
                    pending.append(self.start_update(state.step))
                state = dataclasses.replace(state, step=state.step + 1, seconds=time.monotonic() - started)
                is_last = state.step == num_updates
                is_evaluated = bool(settings.select_every) and (
                    is_last or state.step % settings.select_every == 0
                )
                is_saved = is_last or is_evaluated or state.step % settings.save_every == 0

                # log: on a GPU, one update stays pending so that the device never idles
                while len(pending) > (0 if is_saved else self._max_pending):
                    self._report(pending.popleft(), log, started=started, on_step=on_step)
                is_stopped = self.processes.any(is_interrupted())
                while is_stopped and pending:
                    self._report(pending.popleft(), log, started=started, on_step=on_step)

                # evaluate held-out videos, and keep the weights if they are the best so far
                if is_evaluated and evaluate_held_out is not None:
                    state = self._select(folder, state, evaluate_held_out, log=log, on_save=on_save)

                # save
                if is_saved or is_stopped:
                    self._save(folder, state, on_save=on_save)
        is_unfinished = state.step < num_updates
        stopped_early = self._has_lost_patience(state) and is_unfinished
        return dataclasses.replace(
            state, stopped_early=stopped_early, is_interrupted=is_stopped and is_unfinished
        )

    def start_update(self, step: int) -> PendingUpdate:
        """Start one update without waiting for the device; everything random depends on (seed, step)."""
        # learning rate
        factor = self.settings.learning_rate_factor(step)
        for group in self.optimizer.param_groups:
            group["lr"] = group.setdefault("base_lr", group["lr"]) * factor
        # batch, forward, loss, backward
        self.encoder.train()
        self.optimizer.zero_grad(set_to_none=True)
        accumulate = self.settings.accumulate
        batches: list[Batch] = []
        losses: list[LossParts] = []
        for number in range(step * accumulate, (step + 1) * accumulate):
            batches.append(self.batches(number))
            embeddings, parts = self._forward_backward(number, batches[-1])
            losses.append(parts)
        # clip
        weights = [weight for group in self.optimizer.param_groups for weight in group["params"]]
        self.processes.average_gradients(weights)
        norm = nn.utils.clip_grad_norm_(weights, self.settings.clip_norm or math.inf)
        update = PendingUpdate(
            step=step + 1,
            learning_rate=float(self.optimizer.param_groups[0]["lr"]),
            scalars=Scalars(norm.detach(), losses),
            batches=batches,
            embeddings=embeddings,
            names=self.names,
            has_all_frames=self.processes.world_size == 1,
        )
        if not self._max_pending:
            update.require_finite()  # before the weights change
        # step
        self.optimizer.step()
        if self._average is not None:
            self._average.update(step)
        return update

    def _report(
        self, update: PendingUpdate, log: RunLog, *, started: float, on_step: Callable[[StepReport], None]
    ) -> None:
        """Wait for an update, log it if it is due, and call `on_step`."""
        report = update.report()
        if not self.processes.is_first:
            return
        if report.step % self.run_settings.log_every == 0 or report.step == self.settings.num_updates:
            log.write(report.to_record(seconds=time.monotonic() - started), report)
        on_step(report)

    def _select(
        self,
        folder: Path,
        state: TrainState,
        evaluate_held_out: Callable[[], float],
        *,
        log: RunLog,
        on_save: Callable[[int], object],
    ) -> TrainState:
        """Evaluate the held-out videos; save the encoder if it is the best so far."""
        rate = 0.0
        if self.processes.is_first:
            with self._kept_weights():
                self.encoder.eval()
                rate = evaluate_held_out()
        rate = self.processes.from_first(rate)
        if not math.isfinite(rate):
            raise TrainingError(f"held-out cycle rate is {rate} at update {state.step}. Check the videos.")
        selected = select_better(state.selected, step=state.step, rate=rate)
        if self.processes.is_first:
            log.write({"step": state.step, "held_out_cycle_rate": rate})
            with explain_save_failures(folder), self._kept_weights():
                if selected.step == state.step:
                    on_save(state.step)
                write_selected(folder, selected)
        return dataclasses.replace(state, selected=selected)

    def _save(self, folder: Path, state: TrainState, *, on_save: Callable[[int], object]) -> None:
        """Write the encoder, unless better weights are kept, and then the state.

        A kill between the two leaves the older state, from which resuming writes the same encoder again.
        """
        if not self.processes.is_first:
            return
        if state.selected is None:
            with explain_save_failures(folder), self._kept_weights():
                on_save(state.step)
        save_state(folder, state, self._resumable)

    def _has_lost_patience(self, state: TrainState) -> bool:
        """Whether the held-out rate has not improved for `patience` evaluations."""
        return (
            state.selected is not None and 0 < self.run_settings.patience <= state.selected.evaluations_since
        )

    def _kept_weights(self) -> AbstractContextManager[None]:
        """Let the encoder hold the weights to keep: their running average, if there is one."""
        return nullcontext() if self._average is None else self._average.in_use()

    @property
    def _max_pending(self) -> int:
        """Updates that may be pending: a GPU computes one while the next is prepared."""
        return 1 if self.processes.device.type == "cuda" else 0

    @cached_property
    def _forward_backward(self) -> ForwardBackward:
        return ForwardBackward(
            self.encoder,
            self.loss,
            self.run_settings,
            accumulate=self.settings.accumulate,
            augmentation=self.augmentation,
            processes=self.processes,
            slow_momentum=self.slow_momentum,
        )

    @cached_property
    def _average(self) -> WeightAverage | None:
        decay = self.run_settings.ema_decay
        return WeightAverage(self.encoder, decay) if decay else None

    @property
    def _resumable(self) -> dict[str, Any]:
        parts = {"encoder": self.encoder, "loss": self.loss, "optimizer": self.optimizer}
        if self._forward_backward.slow_copy is not None:
            parts["slow_copy"] = self._forward_backward.slow_copy
        return parts if self._average is None else {**parts, "ema": self._average}
