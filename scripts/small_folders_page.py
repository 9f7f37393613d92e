"""Write the tables of docs/results/small_folders.md from results/small_folders.json.

Usage: python scripts/small_folders_page.py
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from cycleback.evaluation.scores import MISSING, TIME_ONLY, column_cells, columns
from cycleback.files import write_text

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "scripts")]

from training_page import fill_places  # noqa: E402

from small_folders import ALL, PENN, ROWS, SETS, SIZES, TRAINED, UNTRAINED  # noqa: E402

PAGE = ROOT / "docs" / "results" / "small_folders.md"
RESULT = ROOT / "results" / "small_folders.json"
ERROR, SHARE = "event_error_frames", "pce3"
SHOWN = ("2", "20")  # sizes with a table of the rows that learn nothing
BEFORE = "fused"  # what the trained rows start from

Cells = Mapping[str, Mapping[str, Any]]  # set/size/row -> scores


def set_rows(cells: Cells, name: str, size: str) -> dict[str, Mapping[str, Any]]:
    """Return the rows of a set at one size that see something in at least half of the folders."""
    found = {row: cells[f"{name}/{size}/{row}"] for row in ROWS if f"{name}/{size}/{row}" in cells}
    return {row: cell for row, cell in found.items() if 2 * cell["seen"] >= cell["folders"]}


def write_lines(lines: Iterable[Sequence[str]], head: Sequence[str]) -> str:
    """Return a Markdown table; all columns but the first are numbers."""
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))


def size_table(cells: Cells, size: str, method: str) -> str:
    """Return error and share within 3 frames of each untrained row; a smaller set is taken as a whole."""
    found = {name: (size, set_rows(cells, name, size)) for name in SETS}
    found |= {name: (ALL, set_rows(cells, name, ALL)) for name in SETS if not found[name][1]}
    used = [row for row in (TIME_ONLY, *UNTRAINED) if any(row in rows for _, rows in found.values())]
    lines = []
    for name, (chosen, rows) in found.items():
        if not rows:
            continue
        error, share = (column_cells(c, rows) for c in columns(f"{ERROR}{method}", f"{SHARE}{method}"))
        texts = [
            f"{error[row].markdown()} / {share[row].markdown()}" if row in rows else MISSING for row in used
        ]
        title = f"{name}, all {rows[TIME_ONLY]['videos']}" if chosen == ALL else name
        lines.append([title, *texts])
    return write_lines(lines, [f"{size} videos", *used])


def trained_table(cells: Cells, method: str) -> str:
    """Return error and share within 3 frames before and after training, on the same folders."""
    lines = []
    for size in SIZES[1:]:  # with two videos, training keeps the untrained streams
        for name in SETS:
            rows = set_rows(cells, name, size)
            if "trained" in rows:
                used = {row: rows[row] for row in (BEFORE, *TRAINED) if row in rows}
                count = min(cell["folders"] for cell in used.values())
                texts = {row: write_folders(cell, count, method) for row, cell in used.items()}
                shown = (texts.get(row, MISSING) for row in (BEFORE, *TRAINED))
                lines.append([f"{name}, {size}", str(count), *shown])
    return write_lines(lines, ["set, videos of a folder", "folders", BEFORE, *TRAINED])


def write_folders(cell: Mapping[str, Any], count: int, method: str) -> str:
    """Return the median error and the mean share of the first folders of a cell."""
    errors, shares = (cell["by_folder"][f"{key}{method}"][:count] for key in (ERROR, SHARE))
    return f"{median(errors):.1f} / {fmean(shares):.3f}"


def worse_table(cells: Cells, row: str, method: str) -> str:
    """Return in how many folders a row has a larger error than time-only."""
    lines = []
    for name in SETS:
        counts = []
        for size in SIZES:
            rows = set_rows(cells, name, size)
            both = [rows[r]["by_folder"][f"{ERROR}{method}"] for r in (row, TIME_ONLY) if r in rows]
            is_worse = [mine > clock for mine, clock in zip(*both, strict=True)] if len(both) == 2 else []
            counts.append(f"{sum(is_worse)} of {len(is_worse)}" if is_worse else MISSING)
        lines.append([name, *counts])
    return write_lines(lines, ["videos of a folder", *SIZES])


def poses_table(cells: Cells) -> str:
    """Return tau and cycle rate of the poses of Penn Action by size."""
    lines = []
    for size in SIZES:
        rows = set_rows(cells, PENN, size)
        keys = [(row, key) for key in ("tau", "cycle_rate") for row in (TIME_ONLY, "pose")]
        if rows:
            lines.append([size, *(f"{rows[row][key]:.3f}" for row, key in keys)])
    head = [f"{key}, {row}" for key in ("tau", "cycle rate") for row in (TIME_ONLY, "pose")]
    return write_lines(lines, ["videos of a folder", *head])


def tables() -> dict[str, str]:
    """Return place in the page -> its table."""
    cells: Cells = json.loads(RESULT.read_text("utf-8"))["runs"]
    return {
        **{f"dtw-{size}": size_table(cells, size, "_dtw") for size in SHOWN},
        **{f"nearest-{size}": size_table(cells, size, "") for size in SHOWN},
        "trained-dtw": trained_table(cells, "_dtw"),
        "trained-nearest": trained_table(cells, ""),
        "worse": worse_table(cells, BEFORE, "_dtw"),
        "poses": poses_table(cells),
    }


def main() -> None:
    """Write the page."""
    write_text(PAGE, fill_places(PAGE.read_text("utf-8"), tables()), overwrite=True)


if __name__ == "__main__":
    main()
