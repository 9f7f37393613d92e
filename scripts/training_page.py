"""Draw the pictures of docs/results/training.md and write its tables, from the committed results.

Usage: python scripts/training_page.py
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from cycleback.applications.plots.figure import PHASE_COLOURS, image_bytes, new_figure
from cycleback.evaluation.scores import LEGEND, TIME_ONLY, Column, columns, markdown_table
from cycleback.files import write_bytes, write_text

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))

from rows import ROWS  # noqa: E402

PAGE = ROOT / "docs" / "results" / "training.md"
IMAGES = ROOT / "docs" / "images"
RESULTS = ROOT / "results"
LINES = ("tcc", "tcc-classification", "tcc-mse", "tcn", "tcc+tcn", "sal")
SCORED = [  # two decimals: seeds differ by more
    column if column.better == "lower" else replace(column, pattern="{:.2f}")
    for column in columns(
        *("event_error_frames", "event_error_frames_dtw"),
        *("phase_accuracy", "progression", "tau", "cycle_rate"),
    )
]
MINUTES = Column("minutes", "minutes", "{:.2f}", "")
GROUPS = {
    "temperature": ("temperature 0.01", "temperature 0.03", "as it is", "temperature 0.3", "temperature 1.0"),
    "learning rate": ("learning rate 1e-4", "learning rate 1e-3", "as it is", "learning rate 1e-2"),
    "videos per batch": ("batch 2", "as it is", "batch 8", "batch 16"),
    "kind of loss": ("as it is", "classification, temperature 0.1", "mse, temperature 0.1"),
}
DEFAULTS = {
    "temperature": "0.1",
    "learning rate": "3e-3",
    "videos per batch": "4",
    "kind of loss": "regression",
}


def read(name: str) -> dict[str, Any]:
    """Read a committed result file."""
    found: dict[str, Any] = json.loads((RESULTS / name).read_text("utf-8"))
    return found


def mean_curve(runs: Mapping[str, Any], name: str) -> tuple[list[float], list[float]]:
    """Return updates and training cycle rate of a row, mean over its seeds."""
    curves = [run["curve"] for key, run in runs.items() if key.rpartition("/")[0] == name and "curve" in run]
    return [point[0] for point in curves[0]], [
        fmean(p[2] for p in points) for points in zip(*curves, strict=True)
    ]


def draw_losses(runs: Mapping[str, Any]) -> bytes:
    """Draw how each loss learns, with a pretrained base and from scratch."""
    with new_figure(2, size=(11, 4)) as (figure, axes):
        for axis, (base, title) in zip(
            axes, (("pretrained", "pretrained base, frozen"), ("scratch", "from scratch")), strict=True
        ):
            for colour, row in zip(PHASE_COLOURS, LINES, strict=False):
                axis.plot(*mean_curve(runs, f"{base}/{row}"), color=colour, label=row, linewidth=1.8)
            axis.set(title=title, xlabel="update", ylabel="frames that cycle back (training batches)")
            axis.grid(axis="y")
        axes[0].legend(ncols=2)
        return image_bytes(figure, "svg")


def draw_settings(runs: Mapping[str, Any]) -> bytes:
    """Draw how TCC alone learns, one setting at a time."""
    with new_figure(4, size=(11, 7), columns=2) as (figure, axes):
        for axis, (title, names) in zip(axes, GROUPS.items(), strict=True):
            for colour, name in zip(PHASE_COLOURS, names, strict=False):
                label = DEFAULTS[title] if name == "as it is" else short_label(name, title)
                width = 2.4 if name == "as it is" else 1.4
                axis.plot(*mean_curve(runs, name), color=colour, label=label, linewidth=width)
            axis.set(title=title, xlabel="update", ylabel="frames that cycle back")
            axis.grid(axis="y")
            axis.legend()
        return image_bytes(figure, "svg")


def short_label(name: str, title: str) -> str:
    """Return the value alone; the title of the panel names the setting."""
    return name.partition(",")[0] if title == "kind of loss" else name.split()[-1]


def ablation_table(rows: Mapping[str, Any], base: str) -> str:
    """Return mean and spread over seeds of each row of a base."""
    found = {row: rows[f"{base}/{row}"] for row in ROWS if f"{base}/{row}" in rows}
    return markdown_table([*SCORED, MINUTES], found, corner=base)


def settings_table(rows: Mapping[str, Any]) -> str:
    """Return means over seeds of each experiment."""
    keys = ("event_error_frames", "event_error_frames_dtw", "tau", "cycle_rate")
    shown = [column for column in SCORED if column.key in keys]
    return markdown_table(shown, rows, corner="TCC alone, but for")


def tables() -> dict[str, str]:
    """Return place in the page -> its table."""
    ablation, settings = read("ablation.json"), read("what_matters.json")
    return {
        "ablation": "\n\n".join(
            [
                *(ablation_table(ablation["rows"], base) for base in ("pretrained", "scratch")),
                LEGEND.format(baseline=TIME_ONLY),
            ]
        ),
        "settings": settings_table(settings["rows"]),
    }


def fill_places(page: str, places: Mapping[str, str]) -> str:
    """Replace the text between `<!-- name -->` and `<!-- /name -->` for each name."""
    for name, text in places.items():
        before, start, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        page = f"{before}{start}{text}\n{end}{after}"
    return page


def main() -> None:
    """Draw the pictures and write the page."""
    losses, settings = (read(f"{name}.json")["runs"] for name in ("ablation", "what_matters"))
    write_bytes(IMAGES / "training-losses.svg", draw_losses(losses), overwrite=True)
    write_bytes(IMAGES / "training-settings.svg", draw_settings(settings), overwrite=True)
    write_text(PAGE, fill_places(PAGE.read_text("utf-8"), tables()), overwrite=True)


if __name__ == "__main__":
    main()
