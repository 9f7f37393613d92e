"""Curves over time: progress and reward, anomaly scores with frames, loss and cycle-consistency of runs.

Shapes: N frames of a video.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.anomalies import AnomalyReport, AnomalyScores
from cycleback.applications.pace import locate_videos
from cycleback.applications.plots.figure import PHASE_COLOURS, image_bytes, new_figure
from cycleback.applications.progress import ProgressReport
from cycleback.errors import DataError
from cycleback.video import read_frames

MAX_NAMED = 8  # curves that can be told apart by colour; more are drawn in one colour
MAX_TOLD = 3  # oddities in a title
SMOOTHED_SHARE = 0.05  # of the points of a training curve, averaged
BLUE, RED, GREY = "#4477AA", "#CC3344", "#777777"
PERCENT_TICKS = {"ticks": [0, 0.25, 0.5, 0.75, 1], "labels": ["0 %", "25 %", "50 %", "75 %", "100 %"]}
Floats = NDArray[np.float64]
Frames = NDArray[np.uint8]
Log = Sequence[Mapping[str, Any]]
"""Records of a run's log: "step" and "loss", "cycle_rate" or "held_out_cycle_rate"."""


def draw_progress(
    report: ProgressReport, *, size: tuple[float, float] | None = None, format: str = "png"
) -> bytes:
    """Draw the progress of each video against its own time, and below it the reward, if any.

    Curves of videos that do the same at the same time have the same height. Key events are dots on the
    curves, which should lie on the dashed lines of the reference's events.

    Args:
        size: inches.
        format: "png", "svg" or "pdf".
    """
    panels = 2 if report.rewards else 1
    with new_figure(panels, size=size or (8.0, 1.4 + 3.2 * panels), columns=1) as (figure, axes):
        few = len(report.signals) <= MAX_NAMED
        for number, (name, signal) in enumerate(report.signals.items()):
            times, is_reference = report.videos.times(name), name == report.reference
            width = 2.6 if is_reference else 1.6 if few else 0.9
            style: dict[str, Any] = {"linewidth": width, "alpha": 1.0 if few or is_reference else 0.5}
            style |= {"color": PHASE_COLOURS[number] if few else BLUE, "zorder": 3 if is_reference else 2}
            axes[0].plot(times, signal.progress, label=name if few else None, **style)
            if report.rewards:
                axes[1].plot(times, report.rewards[name], **style)
            places = list(report.videos.events(name).values())
            dots = {"color": style["color"] if few else "#222222", "edgecolor": "white"}
            axes[0].scatter(times[places], signal.progress[places], s=26, zorder=4, **dots)
        _draw_reference_events(axes[0], report)
        axes[0].set(ylabel=f"progress of the action\n(as in {report.reference})", ylim=(-0.03, 1.03))
        axes[0].set_yticks(**PERCENT_TICKS)
        axes[-1].set(xlabel="time in the video, s")
        if report.rewards:
            axes[1].set(ylabel="reward")
        for axis in axes:
            axis.margins(x=0.01)
        if few:
            axes[0].legend(loc="lower right")
        return image_bytes(figure, format)


def _draw_reference_events(axis: Any, report: ProgressReport) -> None:
    """Draw the reference's key events as lines across, named at the right."""
    if report.reference not in report.signals:
        return
    progress = report.signals[report.reference].progress
    place = {"xycoords": ("axes fraction", "data"), "va": "center", "fontsize": 9, "color": "#555555"}
    for name, frame in report.videos.events(report.reference).items():
        height = float(progress[frame])
        axis.axhline(height, color="#BBBBBB", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        axis.annotate(name, (1.01, height), annotation_clip=False, **place)


def draw_oddest(report: AnomalyReport) -> bytes:
    """Draw the video with the highest score as PNG, beside the frames of good takes it is matched to."""
    name = report.oddest
    anomaly, good = report.scores[name], report.good
    frames = choose_frames(anomaly)
    matched = [(good.names[take], frame) for take, frame in anomaly.matches[frames].tolist()]
    sentences = wrap_oddities(report.describe(name)) if anomaly.verdict == "something differs" else []
    files = dict(zip(good.names, locate_videos(good, good.names), strict=True))
    return draw_anomaly(
        anomaly,
        report.videos.times(name),
        frames=frames,
        take=list(
            read_frames(
                locate_videos(report.videos, [name])[0],
                [report.videos.first_frame(name) + frame for frame in frames],
            )
        ),
        normal=[read_frames(files[take], [good.first_frame(take) + frame])[0] for take, frame in matched],
        title="\n".join([f"{name}: {anomaly.verdict}", *sentences]),
    )


def wrap_oddities(sentences: Sequence[str]) -> list[str]:
    """Return what is odd as lines of a title, at most MAX_TOLD."""
    rest = len(sentences) - MAX_TOLD
    return [*sentences[:MAX_TOLD], *([f"and {rest} more"] if rest > 0 else [])]


def choose_frames(anomaly: AnomalyScores, *, count: int = 5) -> list[int]:
    """Choose frames to show above the curve: the one with the highest score, and others spread around it."""
    spread = np.linspace(0, len(anomaly.scores) - 1, count).round().astype(int)
    spread[np.abs(spread - anomaly.peak).argmin()] = anomaly.peak
    return sorted(set(spread.tolist()))


def draw_anomaly(
    anomaly: AnomalyScores,
    times: Floats,
    *,
    frames: Sequence[int],
    take: Sequence[Frames],
    normal: Sequence[Frames],
    title: str = "",
) -> bytes:
    """Draw the score over time as PNG, with frames of the take above and matched good frames below.

    Args:
        anomaly: scores of the take.
        times: (N,) seconds.
        frames: frames to show.
        take: the picture (H, W, 3) of each of them.
        normal: the picture of the nearest good take at each of them.
    """
    with new_figure(1, size=(2.1 * max(len(frames), 4), 6.4)) as (figure, (whole,)):
        whole.remove()
        grid = figure.add_gridspec(3, len(frames), height_ratios=(1, 1.15, 1))
        _draw_scores(figure.add_subplot(grid[1, :]), anomaly, times, frames)
        for column, frame in enumerate(frames):
            colour = RED if frame == anomaly.peak else BLUE
            text = f"{times[frame]:.2f} s" + (", furthest" if frame == anomaly.peak else "")
            _draw_frame(figure.add_subplot(grid[0, column]), take[column], text, colour)
            label = f"typical at {anomaly.progress[frame]:.0%}"
            _draw_frame(figure.add_subplot(grid[2, column]), normal[column], label, GREY)
        figure.suptitle(title)
        return image_bytes(figure, "png")


def _draw_scores(axis: Any, anomaly: AnomalyScores, times: Floats, frames: Sequence[int]) -> None:
    for first, end in anomaly.spans:
        axis.axvspan(times[first], times[end], color=RED, alpha=0.16, linewidth=0)
    for number, (stream, own) in enumerate(anomaly.streams.items()):
        axis.plot(times, own, color=PHASE_COLOURS[1 + number], linewidth=0.9, alpha=0.8, label=stream)
    axis.plot(times, anomaly.scores, color=BLUE, linewidth=1.8)
    if anomaly.streams:
        low, high = axis.get_ylim()
        axis.set_ylim(low, high + 0.25 * (high - low))  # room for the legend
        axis.legend(loc="upper left", fontsize=8, ncols=len(anomaly.streams), frameon=False)
    axis.axhline(anomaly.threshold, color=GREY, linestyle="--", linewidth=1)
    place = {"xycoords": ("axes fraction", "data"), "xytext": (-3, 3), "textcoords": "offset points"}
    axis.annotate("threshold", (1, anomaly.threshold), **place, ha="right", color=GREY, fontsize=8)
    axis.scatter(times[list(frames)], anomaly.scores[list(frames)], color=BLUE, s=22, zorder=3)
    axis.scatter([times[anomaly.peak]], [anomaly.scores[anomaly.peak]], color=RED, s=44, zorder=4)
    axis.set(xlabel="seconds", ylabel="distance from typical", xlim=(times[0], times[-1]))


def _draw_frame(axis: Any, image: Frames, text: str, colour: str) -> None:
    axis.imshow(image)
    axis.set(xticks=[], yticks=[])
    axis.set_title(text, fontsize=9, color=colour)
    for spine in axis.spines.values():
        spine.set(color=colour, linewidth=2, visible=True)


def draw_evolution(
    logs: Mapping[str, Log], *, size: tuple[float, float] | None = None, format: str = "png"
) -> bytes:
    """Draw loss and share of frames that cycle back: one line per run, raw values faint behind it.

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
            _draw_smooth(left, *_read_curve(log, "loss"), colour=colour, label=name)
            _draw_smooth(right, *_read_curve(log, "cycle_rate"), colour=colour, label=name)
            steps, rates = _read_curve(log, "held_out_cycle_rate")
            if len(steps):
                right.plot(steps, rates, "o--", color=colour, markersize=4, label=f"{name}, held-out videos")
        left.set(title="Loss", xlabel="updates")
        right.set(title="Frames that cycle back", xlabel="updates", ylim=(0, 1))
        right.set_yticks(**PERCENT_TICKS)
        for axis in (left, right):
            axis.grid(True)
            axis.margins(x=0.01)
        if len(right.get_legend_handles_labels()[0]) > 1:
            right.legend(loc="lower right")
        return image_bytes(figure, format)


def _read_curve(log: Log, key: str) -> tuple[Floats, Floats]:
    """Updates and values of the records that have `key`."""
    pairs = [(record["step"], record[key]) for record in log if record.get(key) is not None]
    steps, values = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    return steps, values


def _draw_smooth(axis: Any, steps: Floats, values: Floats, *, colour: str, label: str) -> None:
    """Draw raw values, and their running mean."""
    if len(steps) == 0:
        return
    reach = min(len(values) - 1, max(1, round(SMOOTHED_SHARE * len(values)) // 2))
    window = np.ones(2 * reach + 1)
    mean = np.convolve(values, window, "same") / np.convolve(np.ones(len(values)), window, "same")
    axis.plot(steps, values, color=colour, linewidth=0.7, alpha=0.3)
    axis.plot(steps, mean[: len(steps)], color=colour, linewidth=1.8, label=label)
