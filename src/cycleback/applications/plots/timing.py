"""Bars of phases: one row per take on the common clock, with what is early or late marked."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cycleback.applications.plots.figure import PHASE_COLOURS, image_bytes, new_figure
from cycleback.applications.timing import TakeTiming, TimingReport

MAX_ROWS = 40  # takes that are drawn: those that deviate most
ROW_HEIGHT = 0.42  # inches
BAR = 0.62  # of the distance between two rows
RED, GREY = "#CC3344", "#D5D5D5"
COLOURS = tuple(colour for colour in PHASE_COLOURS if colour != "#BBBBBB")  # grey is before and after
MAX_ENDS = 0.25  # of the action: so much of what a clip shows before and after it is drawn
LEGEND_LETTERS = 110  # on one line
MIN_GAP = 0.06  # of the width between two written deviations


def draw_timing(
    report: TimingReport, *, size: tuple[float, float] | None = None, format: str = "png"
) -> bytes:
    """Draw the phases of the reference and of each take as bars, the time of the action to the right.

    Lines show where the moments of the reference are. A moment that comes early or late by more than can be
    mistaken has a red mark and its deviation in ms.

    Args:
        size: inches.
        format: "png", "svg" or "pdf".
    """
    names = _choose_rows(report)
    rows = 1 + len(names)
    with new_figure(1, size=size or (9.0, 1.5 + ROW_HEIGHT * rows)) as (figure, (axis,)):
        left, right = _limits(report, names)
        shown = [(report.compared_with, report.normal), *((name, report.takes[name]) for name in names)]
        for row, (_, take) in enumerate(shown):
            _draw_bars(axis, take, row, edges=(left, right))
        for moment in report.normal.since[np.isfinite(report.normal.since)]:
            axis.axvline(moment, color="#555555", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        for row, name in enumerate(names, start=1):
            _mark_findings(axis, report, name, row, width=right - left)
        axis.axhline(0.5, color="#555555", linewidth=0.8)
        axis.set_yticks(range(rows), [name for name, _ in shown])
        axis.set(xlim=(left, right), ylim=(rows - 0.4, -0.6), xlabel=f"seconds from {report.zero}")
        axis.tick_params(axis="y", length=0)
        _name_phases(figure, report)
        hidden = len(report.takes) - len(names)
        if hidden:
            figure.suptitle(f"the {len(names)} of {len(report.takes)} takes that deviate most")
        return image_bytes(figure, format)


def _choose_rows(report: TimingReport) -> list[str]:
    """Return the takes to draw, in order: all, or those with the largest findings."""
    if len(report.takes) <= MAX_ROWS:
        return list(report.takes)
    largest = {
        name: max((abs(d.difference_s) for d in report.deviations(name) if d.is_finding), default=0.0)
        for name in report.takes
    }
    chosen = set(sorted(largest, key=lambda name: -largest[name])[:MAX_ROWS])
    return [name for name in report.takes if name in chosen]


def _limits(report: TimingReport, names: Sequence[str]) -> tuple[float, float]:
    """Return the first and the last second that is drawn."""
    since = np.concatenate([report.normal.since, *(report.takes[name].since for name in names)])
    first, last = float(np.nanmin(since)), float(np.nanmax(since))
    margin = MAX_ENDS * max(last - first, 1e-3)
    return first - margin, last + margin


def _draw_bars(axis: Any, take: TakeTiming, row: int, *, edges: tuple[float, float]) -> None:
    """Draw one row: a bar for each phase between two known moments, and grey before and after."""
    known = np.flatnonzero(np.isfinite(take.seconds))
    times = take.since[known]
    begin, end = (limit - take.zero for limit in take.ends)
    if not len(known):
        return
    parts = [(max(begin, edges[0]), times[0], GREY), (times[-1], min(end, edges[1]), GREY)]
    colours = [COLOURS[number % len(COLOURS)] for number in known[:-1]]
    parts += list(zip(times[:-1], times[1:], colours, strict=True))
    for first, last, colour in parts:
        if last > first:
            style = {"color": colour, "alpha": 1.0 if row == 0 else 0.75, "edgecolor": "white", "zorder": 2}
            axis.barh(row, last - first, left=first, height=BAR, **style)


def _mark_findings(axis: Any, report: TimingReport, name: str, row: int, *, width: float) -> None:
    """Mark the moments of one take that are early or late, and write the deviation where there is room."""
    take = report.takes[name]
    findings = [each for each in report.deviations(name) if each.is_finding and not each.is_phase]
    written: list[float] = []
    for each in sorted(findings, key=lambda each: -abs(each.difference_s)):
        place = each.start_s - take.zero
        axis.plot([place, place], [row - BAR / 2, row + BAR / 2], color=RED, linewidth=2.2, zorder=4)
        if all(abs(place - other) > MIN_GAP * width for other in written):
            text = f"{1000 * each.difference_s:+.0f}"
            style = {"color": RED, "fontsize": 7.5, "va": "bottom", "ha": "center", "zorder": 5}
            axis.text(place, row - BAR / 2, text, **style)
            written.append(place)


def _name_phases(figure: Any, report: TimingReport) -> None:
    """Write the legend of the phases above the bars."""
    from matplotlib.patches import Patch

    handles = [
        Patch(color=COLOURS[number % len(COLOURS)], label=phase) for number, phase in enumerate(report.phases)
    ]
    handles += [Patch(color=GREY, label="before and after"), Patch(color=RED, label="early or late, ms")]
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = max(1, min(len(handles), LEGEND_LETTERS // (longest + 8)))
    figure.legend(handles=handles, loc="outside upper center", ncols=columns)
