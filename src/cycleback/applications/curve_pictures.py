"""Pictures of curves over time as PNG bytes: how odd a take is, and how far actions have come."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.anomalies import AnomalyScores
from cycleback.applications.plots.figure import PHASE_COLOURS, image_bytes, new_figure

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
    with new_figure(1, size=(2.1 * max(len(shown), 4), 6.4)) as (figure, (whole,)):
        whole.remove()
        grid = figure.add_gridspec(3, len(shown), height_ratios=(1, 1.15, 1))
        _draw_scores(figure.add_subplot(grid[1, :]), found, times, shown)
        for column, frame in enumerate(shown):
            colour = RED if frame == found.peak else BLUE
            text = f"{times[frame]:.2f} s" + (", furthest" if frame == found.peak else "")
            _draw_frame(figure.add_subplot(grid[0, column]), take[column], text, colour)
            label = f"typical at {found.progress[frame]:.0%}"
            _draw_frame(figure.add_subplot(grid[2, column]), typical[column], label, GREY)
        figure.suptitle(title)
        return image_bytes(figure, "png")


def _draw_scores(axis: Any, found: AnomalyScores, times: Floats, shown: Sequence[int]) -> None:
    for first, end in found.spans:
        axis.axvspan(times[first], times[end], color=RED, alpha=0.16, linewidth=0)
    axis.plot(times, found.scores, color=BLUE, linewidth=1.8)
    axis.axhline(found.threshold, color=GREY, linestyle="--", linewidth=1)
    place = {"xycoords": ("axes fraction", "data"), "xytext": (-3, 3), "textcoords": "offset points"}
    axis.annotate("threshold", (1, found.threshold), **place, ha="right", color=GREY, fontsize=8)
    axis.scatter(times[list(shown)], found.scores[list(shown)], color=BLUE, s=22, zorder=3)
    axis.scatter([times[found.peak]], [found.scores[found.peak]], color=RED, s=44, zorder=4)
    axis.set(xlabel="seconds", ylabel="distance from typical", xlim=(times[0], times[-1]))


def _draw_frame(axis: Any, image: Frames, text: str, colour: str) -> None:
    axis.imshow(image)
    axis.set(xticks=[], yticks=[])
    axis.set_title(text, fontsize=9, color=colour)
    for spine in axis.spines.values():
        spine.set(color=colour, linewidth=2, visible=True)


def progress_picture(
    curves: Mapping[str, tuple[Floats, Floats]], *, rewards: Mapping[str, Floats] | None = None
) -> bytes:
    """Progress over time, a line a video, and below it the reward where there is one.

    Args:
        curves: name -> seconds (N,) and progress (N,).
        rewards: name -> reward (N,).
    """
    rows = 2 if rewards else 1
    with new_figure(rows, size=(7.5, 3.2 * rows), columns=1) as (figure, axes):
        for number, (name, (times, share)) in enumerate(curves.items()):
            colour = PHASE_COLOURS[number % len(PHASE_COLOURS)]
            axes[0].plot(times, share, color=colour, linewidth=1.6, label=name)
            if rewards:
                axes[1].plot(times, rewards[name], color=colour, linewidth=1.6)
        axes[0].set(ylabel="progress", ylim=(-0.03, 1.03))
        axes[-1].set(xlabel="seconds")
        if rewards:
            axes[1].set(ylabel="reward")
        if len(curves) <= len(PHASE_COLOURS):
            figure.legend(loc="outside right upper")
        return image_bytes(figure, "png")
