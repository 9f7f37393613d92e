"""Line charts of a comparison as SVG: colour-blind safe, a mark a line, baselines dashed."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cycleback.applications.plots import PHASE_COLOURS
from cycleback.comparison.tables import Rows
from cycleback.errors import require

MARKS = "osD^vPX*"
BASELINE_STYLES = {"time": ("#000000", ":"), "imagenet": ("#777777", "--"), "random": ("#777777", "-.")}
MOST_FRAMES = 30  # of error shown in the distribution
INK, GRID = "#333333", "#E4E4E4"


def few_shot_figure(rows: Rows) -> bytes | None:
    """Phase accuracy against the number of labelled videos; the shade is the spread over draws."""
    shots = {name: row["report"].get("few_shot") or {} for name, row in rows.items()}
    if not any(shots.values()):
        return None
    figure, (axis,) = canvas(1, width=8.4, height=4.2)
    for name, by_count in shots.items():
        counts = sorted(by_count, key=int)
        mean = np.array([by_count[count]["mean"] for count in counts])
        spread = np.array([by_count[count]["spread"] for count in counts])
        videos, style = [int(count) for count in counts], line_style(name, rows)
        axis.plot(videos, mean, label=rows[name]["title"], markersize=5, **style)
        axis.fill_between(videos, mean - spread, mean + spread, color=style["color"], alpha=0.13, linewidth=0)
    axis.set(xlabel="labelled videos", ylabel="phase accuracy")
    axis.set_xticks(sorted({int(count) for by_count in shots.values() for count in by_count}))
    return _finish(figure, axis)


def error_figure(rows: Rows) -> bytes | None:
    """Share of key events within k frames of the truth, against k."""
    errors = {name: np.asarray(row["report"].get("event_errors") or []) for name, row in rows.items()}
    known = {name: values for name, values in errors.items() if len(values)}
    if not known:
        return None
    most = int(min(MOST_FRAMES, max(values.max() for values in known.values())))
    frames = np.arange(most + 1)
    figure, (axis,) = canvas(1, width=8.4, height=4.2)
    for name, values in known.items():
        shares = [(values <= k).mean() for k in frames]
        every = max(1, most // 10)
        axis.plot(
            frames, shares, label=rows[name]["title"], markevery=every, markersize=4, **line_style(name, rows)
        )
    axis.set(xlabel="frames from the truth", ylabel="share of key events", ylim=(0, 1.02), xlim=(0, most))
    return _finish(figure, axis)


def curves_figure(curves: Mapping[str, Sequence[Mapping[str, float]]], rows: Rows) -> bytes | None:
    """Loss of each learned row in a panel of its own, and the cycle rates of all in the last."""
    drawn = {name: lines for name, lines in curves.items() if lines}
    if not drawn:
        return None
    columns = min(3, len(drawn) + 1)
    figure, axes = canvas(len(drawn) + 1, width=3.1 * columns, height=2.3, columns=columns)
    for axis, (name, lines) in zip(axes, drawn.items(), strict=False):
        colour = line_style(name, rows)["color"]
        axis.plot(*_series(lines, "loss"), color=colour, linewidth=1.3)
        axis.set_title(f"loss: {rows[name]['title']}", fontsize=9)
        axis.set_xlabel("update", fontsize=8)
    for name, lines in drawn.items():
        axes[len(drawn)].plot(
            *_series(lines, "cycle_rate"), color=line_style(name, rows)["color"], linewidth=1.3
        )
    axes[len(drawn)].set_title("training frames that cycle back", fontsize=9)
    axes[len(drawn)].set(ylim=(0, 1.02))
    axes[len(drawn)].set_xlabel("update", fontsize=8)
    for axis in axes[len(drawn) + 1 :]:
        axis.set_visible(False)
    return _svg(figure)


def _series(lines: Sequence[Mapping[str, float]], key: str) -> tuple[list[float], list[float]]:
    """Updates, and the running mean of a number over a twentieth of them."""
    values = np.array([line[key] for line in lines])
    width = max(1, len(values) // 20)
    total = np.cumsum(np.insert(values, 0, 0.0))
    starts = np.maximum(np.arange(len(values)) - width + 1, 0)
    means = (total[1:] - total[starts]) / (np.arange(len(values)) - starts + 1)
    return [line["step"] for line in lines], list(means)


def line_style(name: str, rows: Rows) -> dict[str, Any]:
    """Colour, mark and dashes of a row, the same in every chart."""
    if name in BASELINE_STYLES:
        colour, dashes = BASELINE_STYLES[name]
        return {"color": colour, "linestyle": dashes, "linewidth": 1.5}
    place = [other for other in rows if other not in BASELINE_STYLES].index(name)
    colours = [colour for colour in PHASE_COLOURS if colour != "#BBBBBB"]  # too like the baselines
    return {
        "color": colours[place % len(colours)],
        "marker": MARKS[place % len(MARKS)],
        "linewidth": 1.8,
    }


def canvas(panels: int, *, width: float, height: float, columns: int | None = None) -> tuple[Any, list[Any]]:
    """A figure `width` inches wide with panels `height` inches high; leaves matplotlib's state alone."""
    require("matplotlib", extra="plot", purpose="the comparison's page")
    from matplotlib.figure import Figure

    columns = columns or panels
    rows = -(-panels // columns)
    figure = Figure(figsize=(width, height * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.spines[["left", "bottom"]].set_color("#AAAAAA")
        axis.tick_params(colors=INK, labelsize=8)
        axis.grid(color=GRID, linewidth=0.8)
        axis.set_axisbelow(True)
    return figure, axes


def _finish(figure: Any, axis: Any) -> bytes:
    axis.legend(fontsize=8.5, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=3)
    return _svg(figure)


def _svg(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
