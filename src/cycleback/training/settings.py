"""How a run trains: the `[optimizer]` and `[run]` sections of a recipe."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from cycleback.ranges import Count, CountOr0, Range, Scale, Seed, ShareBelow1, Weight

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class OptimizerSettings:
    """How the weights are updated. The paper uses Adam, a fixed learning rate and coupled weight decay."""

    name: Literal["adam", "adamw", "sgd"] = "adam"
    num_updates: Count = 1000
    batch_size: Annotated[int, Range(2, 10_000)] = 6  # videos per batch, over all processes together
    accumulate: Annotated[int, Range(1, 10_000)] = 1  # batches per update; their losses are averaged
    learning_rate: Annotated[float, Range(0, 100)] = 1e-3
    base_factor: Scale = 1.0  # on the learning rate of the base; below 1, pretrained features change slowly
    weight_decay: Weight = 1e-5
    momentum: ShareBelow1 = 0.9  # of sgd
    clip_norm: Annotated[float, Range(0, 10**6)] = 10.0  # largest norm of the gradient; 0 never clips
    schedule: Literal["constant", "cosine", "step"] = "cosine"
    warmup_updates: CountOr0 = 20  # updates over which the learning rate rises linearly
    step_updates: tuple[CountOr0, ...] = (5000, 10000)  # at which schedule "step" applies `step_factor`
    step_factor: Scale = 0.1

    def __post_init__(self) -> None:
        for name in ("num_updates", "accumulate"):
            if getattr(self, name) < 1:
                raise ValueError(f"optimizer.{name} must be at least 1, got {getattr(self, name)}")
        if not self.base_factor > 0:
            raise ValueError(
                f"optimizer.base_factor must be above 0, got {self.base_factor:g}; "
                "to leave the base unchanged, set encoder.train_base='frozen'"
            )
        if self.batch_size < 2:
            raise ValueError(
                f"optimizer.batch_size must be at least 2 (cycles need two videos), got {self.batch_size}"
            )

    def learning_rate_factor(self, step: int) -> float:
        """Return the factor on the learning rate at update `step` (0-based).

        Every schedule starts with a linear rise. Then "constant" stays at 1, "cosine" falls to 0 at
        `num_updates`, and "step" falls at each of `step_updates`.
        """
        if step < self.warmup_updates:
            return (step + 1) / (self.warmup_updates + 1)
        if self.schedule == "constant":
            return 1.0
        if self.schedule == "step":
            return float(self.step_factor ** sum(step >= boundary for boundary in self.step_updates))
        done = (step - self.warmup_updates) / max(1, self.num_updates - self.warmup_updates)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


@dataclass(frozen=True)
class RunSettings:
    """Seed, intervals and arithmetic of a run."""

    seed: Seed = 0
    start_from: str = ""  # a run folder or model name whose encoder to start from; "": new weights
    save_every: Count = 100  # updates between saves
    log_every: Count = 10  # updates between log lines
    precision: Precision = "float32"  # of the forward pass; weights, gradients and losses stay in float32
    channels_last: bool = False  # memory layout (H, W, channels) in the base: faster convolutions on GPUs
    compile: bool = False  # use torch.compile on the forward pass; the first update then takes a minute
    deterministic: bool = False  # use only operations that give the same bits each time
    cuda_graph: bool = True  # on a GPU, replay forward and backward as one CUDA graph where possible
    ema_decay: ShareBelow1 = 0.0  # save a running average of the weights with this decay; 0: the weights
    select_every: CountOr0 = 0  # updates between evaluations of the held-out videos; 0 keeps the last weights
    patience: CountOr0 = 0  # held-out evaluations without progress before training stops; 0 never stops early
    # if held-out pairs run backwards, train again once: with the order loss, or from another start
    restart: bool = True
    tensorboard: bool = False  # also write the log for TensorBoard

    def __post_init__(self) -> None:
        if not 0 <= self.ema_decay < 1:
            raise ValueError(f"run.ema_decay must be at least 0 and below 1, got {self.ema_decay}")
        if self.select_every < 0 or self.patience < 0:
            values = f"{self.select_every} and {self.patience}"
            raise ValueError(f"run.select_every and run.patience must not be negative, got {values}")
        if self.patience > 0 and self.select_every == 0:
            raise ValueError(
                f"run.patience={self.patience} counts held-out evaluations: set run.select_every as well"
            )
