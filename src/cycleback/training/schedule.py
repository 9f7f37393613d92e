"""Learning-rate schedules: pure functions of the step."""

import math
from typing import Literal

Schedule = Literal["constant", "cosine"]


def learning_rate_factor(
    step: int, *, num_updates: int, warmup_updates: int = 0, schedule: Schedule = "constant"
) -> float:
    """What the base learning rate is multiplied with at update `step` (0-based)."""
    if step < warmup_updates:
        return (step + 1) / (warmup_updates + 1)
    if schedule == "constant":
        return 1.0
    done = (step - warmup_updates) / max(1, num_updates - warmup_updates)
    return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
