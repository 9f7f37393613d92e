"""How a run learned: loss and cycle-consistency rate over its updates."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.plots.figure import PHASE_COLOURS, image_bytes, new_figure
from cycleback.errors import DataError

SMOOTHED_SHARE = 0.05  # of a curve's points that a mean is taken over
Log = Sequence[Mapping[str, Any]]
"""Records of a run's log: "step" and "loss", "cycle_rate" or "held_out_cycle_rate"."""


def evolution_picture(
    logs: Mapping[str, Log], *, size: tuple[float, float] | None = None, format: str = "png"
) -> bytes:
    """Two panels: loss, and the share of frames that cycle back; a line a run, raw values faint behind it.

    Args:
        logs: name of the run -> its log.
        size: inches.
        format: "png", "svg" or "pdf".
    """
    for name, log in logs.items():
        if not any("loss" in record for record in log):
            raise DataError(f"the log of {name} has no loss yet. Train it for some updates first.")
    with new_figure(2, size=size or (9.6, 4.0)) as (figure, (left, right)):
        for number, (name, log) in enumerate(logs.items()):
            colour = PHASE_COLOURS[number % len(PHASE_COLOURS)]
            _draw(left, *_curve(log, "loss"), colour=colour, label=name)
            _draw(right, *_curve(log, "cycle_rate"), colour=colour, label=name)
            steps, rates = _curve(log, "held_out_cycle_rate")
            if len(steps):
                right.plot(steps, rates, "o--", color=colour, markersize=4, label=f"{name}, held-out videos")
        _finish(left, right)
        return image_bytes(figure, format)


def _finish(left: Any, right: Any) -> None:
    """Titles, scales and legend."""
    left.set(title="Loss", xlabel="updates")
    right.set(title="Frames that cycle back", xlabel="updates", ylim=(0, 1))
    right.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    for axis in (left, right):
        axis.grid(True)
        axis.margins(x=0.01)
    if len(right.get_legend_handles_labels()[0]) > 1:
        right.legend(loc="lower right")


def _curve(log: Log, key: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Updates and values of the records that have `key`."""
    pairs = [(record["step"], record[key]) for record in log if record.get(key) is not None]
    steps, values = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    return steps, values


def _draw(
    axis: Any, steps: NDArray[np.float64], values: NDArray[np.float64], *, colour: str, label: str
) -> None:
    """Raw values, and their running mean."""
    if len(steps) == 0:
        return
    reach = min(len(values) - 1, max(1, round(SMOOTHED_SHARE * len(values)) // 2))
    window = np.ones(2 * reach + 1)
    mean = np.convolve(values, window, "same") / np.convolve(np.ones(len(values)), window, "same")
    axis.plot(steps, values, color=colour, linewidth=0.7, alpha=0.3)
    axis.plot(steps, mean[: len(steps)], color=colour, linewidth=1.8, label=label)
