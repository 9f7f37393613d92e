"""How commands print: the result, where it is, and the next useful command."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from cycleback.applications import Verdict
    from cycleback.evaluation import Report


def print_json(value: Any) -> None:
    """Print one JSON object on one line of stdout."""
    print(json.dumps(value))


def print_result(
    facts: Any,
    text: str,
    next_command: Sequence[object] | None = None,
    *,
    as_json: bool,
    verdict: "Verdict | None" = None,
) -> None:
    """Print the result of a command: as JSON, or in words with the words of the next useful command.

    A verdict on the result is one more key, or a line before it.
    """
    if as_json:
        print_json(facts if verdict is None else {**facts, "verdict": verdict.to_json()})
        return
    if verdict is not None:
        print(verdict)
    print(text)
    if next_command is not None:
        print(f"next: {shlex.join(map(str, ('cycleback', *next_command)))}")


def print_reports(rows: "Mapping[str, Report]") -> None:
    """Print the headline scores of several reports, a legend, intervals and warnings.

    A dash stands for a missing score, a dagger for one that is not better than the row `time-only`.
    """
    from cycleback.evaluation import TIME_ONLY, notes
    from cycleback.evaluation.scores import DAGGER, HEADLINE, LEGEND, column_cells, columns, known_columns

    scores = {name: report.to_json() for name, report in rows.items()}
    headline = known_columns(columns(*HEADLINE, brief=True), scores)
    cells = [column_cells(column, scores) for column in headline]
    title = "Key-event error (median), key events within 1 and 3 frames, and other scores"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=0)
    table.add_column("", no_wrap=True)
    for column in headline:
        table.add_column(column.short or column.title, justify="right")
    for name in rows:
        table.add_row(escape(name), *(column[name].text + DAGGER * column[name].is_below for column in cells))
    Console().print(table)
    if any(cell.is_below for column in cells for cell in column.values()):
        print(LEGEND.format(baseline=TIME_ONLY))
    bounds = {name: row.intervals.get("event_error_frames") for name, row in rows.items()}
    spans = [f"{name} {span[0]:.1f} to {span[1]:.1f}" for name, span in bounds.items() if span]
    if spans:
        print(f"95 % interval of the error, frames: {', '.join(spans)}.")
    for note in notes(rows):
        print(note)
