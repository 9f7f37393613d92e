"""How commands print: the result, where it is, and the next useful command."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from cycleback.evaluation import Report

HEADLINE = {
    "event_error_frames": ("error,\nframes", "{:.1f}"),
    "event_error_ms": ("error,\nms", "{:.0f}"),
    "event_error_frames_dtw": ("DTW,\nframes", "{:.1f}"),
    "pce1": ("within\n1", "{:.0%}"),
    "pce3": ("within\n3", "{:.0%}"),
    "phase_accuracy": ("phase\nacc.", "{:.0%}"),
    "precision5": ("prec.\n@5", "{:.0%}"),
    "tau": ("\ntau", "{:.2f}"),
    "cycle_rate": ("cycle\nrate", "{:.0%}"),
}


def print_json(value: Any) -> None:
    """One JSON object on one line of stdout."""
    print(json.dumps(value))


def print_next(result: str, command: str | None = None) -> None:
    """Last lines of a command: where the result is, and what to type next."""
    print(result)
    if command is not None:
        print(f"next: {command}")


def print_reports(rows: "Mapping[str, Report]") -> None:
    """The headline numbers of several embeddings, one row each, and what one must know to trust them.

    A dash where a row has no number, a dagger where it is not better than the row `time-only`; columns that
    no row has are left out.
    """
    from cycleback.evaluation import notes
    from cycleback.evaluation.baselines import TIME_ONLY
    from cycleback.evaluation.table import COLUMNS, LEGEND

    columns = {column.score: column for column in COLUMNS}
    shown = [key for key in HEADLINE if any(getattr(row, key) is not None for row in rows.values())]
    title = "Key-event error (median), key events within 1 and 3 frames, and the rest"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("", no_wrap=True)
    for key in shown:
        table.add_column(HEADLINE[key][0], justify="right")
    is_marked = False
    for name, report in rows.items():
        floor = None if name == TIME_ONLY else rows.get(TIME_ONLY)
        marks = [columns[key].is_marked(report, floor) for key in shown]
        table.add_row(
            name, *(_text(report, key) + "†" * mark for key, mark in zip(shown, marks, strict=True))
        )
        is_marked = is_marked or any(marks)
    console().print(table)
    legend = [LEGEND.format(baseline=TIME_ONLY)] if is_marked else []
    for line in [*legend, *_intervals(rows), *notes(rows)]:
        print(line)


def _text(report: "Report", key: str) -> str:
    value = getattr(report, key)
    return "–" if value is None else HEADLINE[key][1].format(value)


def _intervals(rows: "Mapping[str, Report]") -> list[str]:
    """How sure the first number of each row is."""
    key = "event_error_frames"
    bounds = {name: row.intervals[key] for name, row in rows.items() if key in row.intervals}
    spans = [f"{name} {low:.1f} to {high:.1f}" for name, (low, high) in bounds.items()]
    return [f"95 % interval of the error, frames: {', '.join(spans)}."] if spans else []


def console() -> Console:
    """Tables and colours on stdout."""
    return Console()
