"""Draw the pictures of docs/training.md and write its tables, from the committed results.

Usage: python scripts/training_page.py
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from cycleback.applications.plots.figure import PHASE_COLOURS, image_bytes, new_figure

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "training.md"
IMAGES = ROOT / "docs" / "images"
RESULTS = ROOT / "results"
LINES = ("tcc", "tcc-classification", "tcc-mse", "tcn", "tcc+tcn", "sal")
ROWS = (
    *("time-only", "untrained", "frozen", "supervised", "sal", "tcn", "tcc", "tcc-stochastic"),
    *("tcc-classification", "tcc-mse", "tcc+sal", "tcc+tcn"),
)
COLUMNS = {
    "event_error_frames": ("event error, frames ↓", 1),
    "event_error_frames_dtw": ("by DTW ↓", 1),
    "phase_accuracy": ("phase accuracy ↑", 2),
    "progression": ("progression ↑", 2),
    "tau": ("tau ↑", 2),
    "cycle_rate": ("cycle rate ↑", 2),
    "minutes": ("minutes", 2),
}
GROUPS = {
    "temperature": ("temperature 0.01", "temperature 0.03", "as it is", "temperature 0.3", "temperature 1.0"),
    "learning rate": ("learning rate 1e-4", "learning rate 1e-3", "as it is", "learning rate 1e-2"),
    "videos a batch": ("batch 2", "as it is", "batch 8", "batch 16"),
    "kind of loss": ("as it is", "classification, temperature 0.1", "mse, temperature 0.1"),
}
DEFAULTS = {
    "temperature": "0.1",
    "learning rate": "3e-3",
    "videos a batch": "4",
    "kind of loss": "regression",
}


def read(name: str) -> dict[str, Any]:
    """A committed result file."""
    found: dict[str, Any] = json.loads((RESULTS / name).read_text("utf-8"))
    return found


def mean_curve(runs: Mapping[str, Any], name: str) -> tuple[list[float], list[float]]:
    """Updates and training cycle rate of a row, mean over its seeds."""
    curves = [run["curve"] for key, run in runs.items() if key.rpartition("/")[0] == name and "curve" in run]
    return [point[0] for point in curves[0]], [
        fmean(p[2] for p in points) for points in zip(*curves, strict=True)
    ]


def draw_losses(runs: Mapping[str, Any]) -> bytes:
    """How each loss learns, with a pretrained base and from scratch."""
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
    """TCC alone, one setting at a time: how it learns."""
    with new_figure(4, size=(11, 7), columns=2) as (figure, axes):
        for axis, (title, names) in zip(axes, GROUPS.items(), strict=True):
            for colour, name in zip(PHASE_COLOURS, names, strict=False):
                label = DEFAULTS[title] if name == "as it is" else short(name, title)
                width = 2.4 if name == "as it is" else 1.4
                axis.plot(*mean_curve(runs, name), color=colour, label=label, linewidth=width)
            axis.set(title=title, xlabel="update", ylabel="frames that cycle back")
            axis.grid(axis="y")
            axis.legend()
        return image_bytes(figure, "svg")


def short(name: str, title: str) -> str:
    """The value alone, where the title says of what."""
    return name.partition(",")[0] if title == "kind of loss" else name.split()[-1]


def ablation_table(rows: Mapping[str, Any], base: str) -> str:
    """Mean and spread over seeds of each row."""
    lines = [
        f"| {base} | {' | '.join(title for title, _ in COLUMNS.values())} |",
        "|---|" + "---:|" * len(COLUMNS),
    ]
    for row in ROWS:
        if f"{base}/{row}" not in rows:
            continue
        found = rows[f"{base}/{row}"]
        cells = (cell(found[key], digits, found["seeds"]) for key, (_, digits) in COLUMNS.items())
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cell(value: list[float], digits: int, seeds: int) -> str:
    """Mean ± spread; the mean alone of a single run."""
    return f"{value[0]:.{digits}f}" + (f" ± {value[1]:.{digits}f}" if seeds > 1 else "")


def settings_table(rows: Mapping[str, Any]) -> str:
    """Means over seeds of each experiment."""
    keys = ("event_error_frames", "event_error_frames_dtw", "tau", "cycle_rate")
    lines = [
        f"| TCC alone, but for | {' | '.join(COLUMNS[key][0] for key in keys)} |",
        "|---|" + "---:|" * len(keys),
    ]
    for name, row in rows.items():
        lines.append(f"| {name} | {' | '.join(f'{row[key]:.{COLUMNS[key][1]}f}' for key in keys)} |")
    return "\n".join(lines)


def tables() -> dict[str, str]:
    """Name of a place in the page -> what stands there."""
    ablation, settings = read("ablation.json"), read("what_matters.json")
    return {
        "ablation": "\n\n".join(ablation_table(ablation["rows"], base) for base in ("pretrained", "scratch")),
        "settings": settings_table(settings["rows"]),
    }


def filled(page: str, places: Iterable[tuple[str, str]]) -> str:
    """The page with the text between `<!-- name -->` and `<!-- /name -->` replaced."""
    for name, text in places:
        before, start, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        page = f"{before}{start}{text}\n{end}{after}"
    return page


def main() -> None:
    """Make all."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    (IMAGES / "training-losses.svg").write_bytes(draw_losses(read("ablation.json")["runs"]))
    (IMAGES / "training-settings.svg").write_bytes(draw_settings(read("what_matters.json")["runs"]))
    PAGE.write_text(filled(PAGE.read_text("utf-8"), tables().items()), "utf-8")


if __name__ == "__main__":
    main()
