"""Line charts of a comparison as SVG: colour-blind safe, a mark a line, baselines dashed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cycleback.applications.plots.figure import PHASE_COLOURS, image_bytes, new_figure
from cycleback.comparison.tables import Rows

MARKS = "osD^vPX*"
BASELINE_STYLES = {"time": ("#000000", ":"), "imagenet": ("#777777", "--"), "random": ("#777777", "-.")}
MOST_FRAMES = 30  # of error shown in the distribution


def few_shot_figure(rows: Rows) -> bytes | None:
    """Phase accuracy against the number of labelled videos; the shade is the spread over draws."""
    shots = {name: row["report"].get("few_shot") or {} for name, row in rows.items()}
    if not any(shots.values()):
        return None
    with new_figure(1, size=(8.4, 4.2)) as (figure, (axis,)):
        for name, by_count in shots.items():
            counts = sorted(by_count, key=int)
            mean = np.array([by_count[count]["mean"] for count in counts])
            spread = np.array([by_count[count]["spread"] for count in counts])
            videos, style = [int(count) for count in counts], line_style(name, rows)
            axis.plot(videos, mean, label=rows[name]["title"], markersize=5, **style)
            axis.fill_between(
                videos, mean - spread, mean + spread, color=style["color"], alpha=0.13, linewidth=0
            )
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
    with new_figure(1, size=(8.4, 4.2)) as (figure, (axis,)):
        for name, values in known.items():
            shares = [(values <= k).mean() for k in frames]
            every = max(1, most // 10)
            axis.plot(
                frames,
                shares,
                label=rows[name]["title"],
                markevery=every,
                markersize=4,
                **line_style(name, rows),
            )
        axis.set(xlabel="frames from the truth", ylabel="share of key events", ylim=(0, 1.02), xlim=(0, most))
        return _finish(figure, axis)


def curves_figure(curves: Mapping[str, Sequence[Mapping[str, float]]], rows: Rows) -> bytes | None:
    """Loss of each learned row in a panel of its own, and the cycle rates of all in the last."""
    drawn = {name: lines for name, lines in curves.items() if lines}
    if not drawn:
        return None
    columns = min(3, len(drawn) + 1)
    size = (3.1 * columns, 2.3 * -(-(len(drawn) + 1) // columns))
    with new_figure(len(drawn) + 1, size=size, columns=columns) as (figure, (*axes, last)):
        for axis, (name, lines) in zip(axes, drawn.items(), strict=True):
            colour = line_style(name, rows)["color"]
            axis.plot(*_series(lines, "loss"), color=colour, linewidth=1.3)
            last.plot(*_series(lines, "cycle_rate"), color=colour, linewidth=1.3)
            axis.set(title=f"loss: {rows[name]['title']}")
        last.set(title="training frames that cycle back", ylim=(0, 1.02))
        for axis in (*axes, last):
            axis.grid(True)
            axis.set(xlabel="update")
        return image_bytes(figure, "svg")


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


def _finish(figure: Any, axis: Any) -> bytes:
    axis.grid(True)
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=3)
    return image_bytes(figure, "svg")
