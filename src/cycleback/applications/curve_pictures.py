"""Pictures of curves over time as PNG bytes: how odd a take is, and how far actions have come."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.anomalies import AnomalyScores
from cycleback.applications.plots import PHASE_COLOURS
from cycleback.errors import require

Floats = NDArray[np.float64]
Frames = NDArray[np.uint8]
BLUE, RED, GREY = "#4477AA", "#CC3344", "#777777"


def shown_frames(found: AnomalyScores, *, count: int = 5) -> list[int]:
    """Frames to show above the curve: the one furthest from typical, and others spread around it."""
    last = len(found.scores) - 1
    spread = np.linspace(0, last, count).round().astype(int)
    spread[np.abs(spread - found.peak).argmin()] = found.peak
    return sorted(set(spread.tolist()))


def anomaly_picture(
    found: AnomalyScores,
    times: Floats,
    *,
    shown: Sequence[int],
    take: Sequence[Frames],
    typical: Sequence[Frames],
    title: str = "",
) -> bytes:
    """The score over time, frames of the take above it, and below it the typical frames they are matched to.

    Args:
        found: scores of the take.
        times: (N,) seconds.
        shown: frames to show.
        take: the picture (H, W, 3) of each of them.
        typical: the picture of the good take that is nearest at each of them.
    """
    figure = _figure((2.1 * max(len(shown), 4), 6.4))
    grid = figure.add_gridspec(3, len(shown), height_ratios=(1, 1.15, 1))
    axis = figure.add_subplot(grid[1, :])
    for first, end in found.spans:
        axis.axvspan(times[first], times[end], color=RED, alpha=0.16, linewidth=0)
    axis.plot(times, found.scores, color=BLUE, linewidth=1.8)
    axis.axhline(found.threshold, color=GREY, linestyle="--", linewidth=1)
    axis.annotate(
        "threshold",
        (1, found.threshold),
        xycoords=("axes fraction", "data"),
        xytext=(-3, 3),
        textcoords="offset points",
        ha="right",
        color=GREY,
        fontsize=8,
    )
    axis.scatter(times[list(shown)], found.scores[list(shown)], color=BLUE, s=22, zorder=3)
    axis.scatter([times[found.peak]], [found.scores[found.peak]], color=RED, s=44, zorder=4)
    axis.set(xlabel="seconds", ylabel="distance from typical", xlim=(times[0], times[-1]))
    for column, frame in enumerate(shown):
        colour = RED if frame == found.peak else BLUE
        text = f"{times[frame]:.2f} s" + (", furthest" if frame == found.peak else "")
        _picture(figure.add_subplot(grid[0, column]), take[column], text, colour)
        label = f"typical at {found.progress[frame]:.0%}"
        _picture(figure.add_subplot(grid[2, column]), typical[column], label, GREY)
    figure.suptitle(title, fontsize=11)
    return _png(figure)


def progress_picture(
    curves: Mapping[str, tuple[Floats, Floats]], *, rewards: Mapping[str, Floats] | None = None
) -> bytes:
    """Progress over time, a line a video, and below it the reward where there is one.

    Args:
        curves: name -> seconds (N,) and progress (N,).
        rewards: name -> reward (N,).
    """
    rows = 2 if rewards else 1
    figure = _figure((7.5, 3.2 * rows))
    axes = figure.subplots(rows, 1, squeeze=False)[:, 0]
    for number, (name, (times, share)) in enumerate(curves.items()):
        colour = PHASE_COLOURS[number % len(PHASE_COLOURS)]
        axes[0].plot(times, share, color=colour, linewidth=1.6, label=name)
        if rewards:
            axes[1].plot(times, rewards[name], color=colour, linewidth=1.6)
    axes[0].set(ylabel="progress", ylim=(-0.03, 1.03))
    if rewards:
        axes[1].set(ylabel="reward")
    axes[-1].set(xlabel="seconds")
    if len(curves) <= len(PHASE_COLOURS):
        axes[0].legend(fontsize=8, frameon=False, loc="lower right")
    return _png(figure)


def _picture(axis: Any, image: Frames, text: str, colour: str) -> None:
    axis.imshow(image)
    axis.set(xticks=[], yticks=[])
    axis.set_title(text, fontsize=9, color=colour)
    for spine in axis.spines.values():
        spine.set(color=colour, linewidth=2)


def _figure(size: tuple[float, float]) -> Any:
    """A figure that needs no screen and leaves matplotlib's global state alone."""
    require("matplotlib", extra="plot", purpose="a picture")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    return buffer.getvalue()
