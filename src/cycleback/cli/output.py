"""How commands print: the result, where it is, and the next useful command."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from cycleback.evaluation import Report


def print_json(value: Any) -> None:
    """Print one JSON object on one line of stdout."""
    print(json.dumps(value))


def print_next(result: str, command: str | None = None) -> None:
    """Print the last lines of a command: where the result is, and what to type next."""
    print(result)
    if command is not None:
        print(f"next: {command}")


def print_reports(rows: "Mapping[str, Report]") -> None:
    """Print the headline scores of several reports, a legend, intervals and warnings.

    A dash stands for a missing score, a dagger for one that is not better than the row `time-only`.
    """
    from cycleback.evaluation import TIME_ONLY, notes
    from cycleback.evaluation.scores import (
        DAGGER,
        HEADLINE,
        LEGEND,
        column_cells,
        columns,
        known_columns,
    )

    scores = {name: report.to_json() for name, report in rows.items()}
    shown = known_columns(columns(*HEADLINE, brief=True), scores)
    cells = [column_cells(column, scores) for column in shown]
    title = "Key-event error (median), key events within 1 and 3 frames, and other scores"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("", no_wrap=True)
    for column in shown:
        table.add_column(column.short or column.title, justify="right")
    for name in rows:
        table.add_row(name, *(found[name].text + DAGGER * found[name].is_below for found in cells))
    console().print(table)
    is_marked = any(cell.is_below for found in cells for cell in found.values())
    legend = [LEGEND.format(baseline=TIME_ONLY)] if is_marked else []
    for line in [*legend, *_intervals(rows), *notes(rows)]:
        print(line)


def _intervals(rows: "Mapping[str, Report]") -> list[str]:
    key = "event_error_frames"
    bounds = {name: row.intervals[key] for name, row in rows.items() if key in row.intervals}
    spans = [f"{name} {low:.1f} to {high:.1f}" for name, (low, high) in bounds.items()]
    return [f"95 % interval of the error, frames: {', '.join(spans)}."] if spans else []


def console() -> Console:
    """Return the console for tables and colours on stdout."""
    return Console()
