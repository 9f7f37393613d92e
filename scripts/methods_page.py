"""Write the tables of docs/methods.md from results/methods.json.

Usage: python scripts/methods_page.py
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cycleback.files import write_text

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "scripts")]

from small_folders_page import write_lines  # noqa: E402
from training_page import fill_places  # noqa: E402

from methods import BASELINES, PENN, ROWS, SETS  # noqa: E402

PAGE = ROOT / "docs" / "methods.md"
RESULT = ROOT / "results" / "methods.json"
CHOICE = "golf-choice"
MISSING = "–"
COUNTS = " ‡"  # after the name of a row that can count frames
SCORED = {
    "event_error_frames_dtw": "event error, frames ↓",
    "pce3_dtw": "within 3 frames ↑",
    "phase_accuracy": "phase accuracy ↑",
    "progression": "progression ↑",
    "tau": "tau ↑",
    "precision5": "retrieval ↑",
    "cycle_rate": "cycle rate ↑",
}

Cells = Mapping[str, Mapping[str, Any]]  # set/encoder/row -> scores


def write_value(value: Sequence[float] | None, seeds: int, digits: int = 2) -> str:
    """Return mean and spread over seeds, or a dash."""
    if value is None:
        return MISSING
    spread = f" ± {value[1]:.{digits}f}" if seeds > 1 else ""
    return f"{value[0]:.{digits}f}{spread}"


def of_set(cells: Cells, name: str, encoder: str) -> dict[str, Mapping[str, Any]]:
    """Return the rows of a set, in the order of the benchmark."""
    found = {row: cells.get(f"{name}/{encoder}/{row}") for row in (*BASELINES, *ROWS)}
    return {row: cell for row, cell in found.items() if cell is not None}


def write_title(row: str, cell: Mapping[str, Any]) -> str:
    """Return the name of a row, marked if its embedder can count frames."""
    return row + (COUNTS if cell["can_count_frames"] else "")


def score_table(cells: Cells, name: str, encoder: str) -> str:
    """Return every score of every row of one set."""
    lines = [
        [
            write_title(row, cell),
            *(write_value(cell.get(s), cell["seeds"], 1 if "frames" in s else 3) for s in SCORED),
        ]
        for row, cell in of_set(cells, name, encoder).items()
    ]
    return write_lines(lines, ["row", *SCORED.values()])


def robust_table(cells: Cells, name: str, encoder: str) -> str:
    """Return the share within 3 frames of the videos as they are, and of perturbed ones."""
    lines = []
    for row, cell in of_set(cells, name, encoder).items():
        shares = [cell["pce3_dtw"], *(scores["pce3_dtw"] for scores in cell["robust"].values())]
        texts = [write_value(share, cell["seeds"], 3) for share in shares]
        lines.append([write_title(row, cell), *texts, write_value(cell["minutes"], 1)])
    return write_lines(lines, ["row", "as it is", "cropped", "speed", "lead-in", "minutes"])


def sets_table(cells: Cells, encoder: str) -> str:
    """Return the share within 3 frames of every row on every set."""
    names = [name for name in SETS if name != CHOICE and of_set(cells, name, encoder)]
    lines = []
    for row in (*BASELINES, *ROWS):
        found = [cells.get(f"{name}/{encoder}/{row}") for name in names]
        if sum(cell is not None for cell in found) > 1:
            texts = [
                MISSING if cell is None else write_value(cell["pce3_dtw"], cell["seeds"], 3) for cell in found
            ]
            lines.append([row, *texts])
    return write_lines(lines, ["row", *names])


def penn_table(cells: Cells) -> str:
    """Return tau and cycle rate of every row on the poses of Penn Action."""
    rows = of_set(cells, PENN, "streams")
    lines = [
        [row, *(write_value(c[key], c["seeds"], 3) for key in ("tau", "cycle_rate"))]
        for row, c in rows.items()
    ]
    return write_lines(lines, ["row", "tau ↑", "cycle rate ↑"])


def choice_table(cells: Cells) -> str:
    """Return what the settings that were tried are worth, on training videos alone."""
    lines = []
    for key, cell in sorted(cells.items()):
        name, _, row = key.split("/", 2)
        if name == CHOICE:
            lines.append(
                [
                    f"`{row}`",
                    *(
                        write_value(cell[s], cell["seeds"], 3)
                        for s in ("pce3_dtw", "precision5", "cycle_rate")
                    ),
                ]
            )
    return write_lines(lines, ["row and settings", "within 3 frames ↑", "retrieval ↑", "cycle rate ↑"])


def tables() -> dict[str, str]:
    """Return place in the page -> its table."""
    cells: Cells = json.loads(RESULT.read_text("utf-8"))["rows"]
    return {
        "golf": score_table(cells, "golf", "streams"),
        "robust": robust_table(cells, "golf", "streams"),
        "sets": sets_table(cells, "streams"),
        "penn": penn_table(cells),
        "choice": choice_table(cells),
    }


def main() -> None:
    """Write the page."""
    write_text(PAGE, fill_places(PAGE.read_text("utf-8"), tables()), overwrite=True)


if __name__ == "__main__":
    main()
