"""Callbacks through which long work reports its progress. Every long function takes one `Progress`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cycleback.training import StepReport

Counter = Callable[[int, int], None]
"""Called with (items done, items in total)."""


def ignore(done: int, total: int) -> None:
    """The counter that does nothing."""


@dataclass(frozen=True)
class Progress:
    """What a caller wants to hear about; every part is optional."""

    # called with (stages done, stages in total, name of the next one)
    on_stage: Callable[[int, int, str], None] = lambda done, total, name: None
    on_render: Counter = ignore  # videos rendered
    on_frames: Counter = ignore  # videos decoded
    on_features: Counter = ignore  # videos whose features are computed
    on_report: Counter = ignore  # parts of a report written
    # called with (name of the run, updates in total) when a training starts; returns what to call after
    # each update
    on_training: "Callable[[str, int], Callable[[StepReport], None]]" = lambda name, total: lambda step: None
