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
    "event_error_frames_dtw": ("by DTW,\nframes", "{:.1f}"),
    "pce1": ("within\n1", "{:.0%}"),
    "pce3": ("within\n3", "{:.0%}"),
    "phase_accuracy": ("phase\nacc.", "{:.0%}"),
    "tau": ("\ntau", "{:.3f}"),
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
    """The headline numbers of several embeddings, one row each; a dash where a row has none."""
    from cycleback.evaluation import notes

    title = "Key-event error (median), key events within 1 and 3 frames, and the rest"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for title, _ in HEADLINE.values():
        table.add_column(title, justify="right")
    for name, report in rows.items():
        numbers = report.to_json()
        cells = [(pattern, numbers[key]) for key, (_, pattern) in HEADLINE.items()]
        table.add_row(name, *("–" if value is None else pattern.format(value) for pattern, value in cells))
    console().print(table)
    for note in notes(rows):
        print(note)


def console() -> Console:
    """Tables and colours on stdout."""
    return Console()
