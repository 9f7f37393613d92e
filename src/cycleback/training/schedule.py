"""Learning-rate schedules: pure functions of the step."""

import math
from collections.abc import Sequence
from typing import Literal

Schedule = Literal["constant", "cosine", "step"]


def learning_rate_factor(
    step: int,
    *,
    num_updates: int,
    warmup_updates: int = 0,
    schedule: Schedule = "constant",
    step_updates: Sequence[int] = (),
    step_factor: float = 0.1,
) -> float:
    """What the base learning rate is multiplied with at update `step` (0-based).

    "constant"; "cosine": down to 0 at `num_updates`; "step": times `step_factor` at each of `step_updates`.
    All begin with a linear rise over `warmup_updates`.
    """
    if schedule not in ("constant", "cosine", "step"):
        raise ValueError(f"schedule must be 'constant', 'cosine' or 'step', got {schedule!r}")
    if step < warmup_updates:
        return (step + 1) / (warmup_updates + 1)
    if schedule == "constant":
        return 1.0
    if schedule == "step":
        return float(step_factor ** sum(step >= boundary for boundary in step_updates))
    done = (step - warmup_updates) / max(1, num_updates - warmup_updates)
    return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
