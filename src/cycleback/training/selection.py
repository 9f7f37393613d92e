"""Which weights to keep, without labels: those with which most held-out frames cycle back."""

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from cycleback.errors import TrainingError

SELECTED_FILE = "selected.json"


@dataclass(frozen=True)
class Selected:
    """The best weights so far.

    Attributes:
        step: updates after which they were reached.
        held_out_cycle_rate: share of held-out frames that cycle back, in [0, 1].
        looks_since: looks at the held-out videos after that one.
    """

    step: int
    held_out_cycle_rate: float
    looks_since: int = 0


@dataclass(frozen=True)
class Selector:
    """When to look at the held-out videos, and when to give up.

    Attributes:
        measure: the cycle-consistency rate of the held-out videos with the encoder as it is.
        every: updates between looks; the last update is looked at in any case.
        patience: looks without progress before training stops; 0: never.
    """

    measure: Callable[[], float]
    every: int
    patience: int = 0

    def __post_init__(self) -> None:
        if self.every < 1 or self.patience < 0:
            raise ValueError(
                f"select_every must be at least 1 and patience at least 0, got {self.every}, {self.patience}"
            )

    def is_done(self, selected: Selected | None) -> bool:
        """Whether progress has been waited for long enough."""
        return selected is not None and 0 < self.patience <= selected.looks_since


def better_of(selected: Selected | None, *, step: int, rate: float) -> Selected:
    """What is kept after a look; of equal rates the earlier."""
    if selected is None or rate > selected.held_out_cycle_rate:
        return Selected(step, rate)
    return Selected(selected.step, selected.held_out_cycle_rate, selected.looks_since + 1)


def write_selected(folder: Path, selected: Selected) -> None:
    """Write `selected.json`, whole or not at all."""
    temporary = folder / f".{SELECTED_FILE}.{os.getpid()}"
    try:
        temporary.write_text(json.dumps(asdict(selected), indent=1) + "\n", "utf-8")
        os.replace(temporary, folder / SELECTED_FILE)
    finally:
        temporary.unlink(missing_ok=True)


def require_held_out(count: int) -> None:
    """Refuse to select with fewer than two held-out videos of one action."""
    if count < 2:
        raise TrainingError(
            f"run.select_every needs at least 2 held-out videos of one action, got {count}. "
            "Raise data.held_out, add videos, or set run.select_every=0."
        )
