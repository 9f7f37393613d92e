"""Write the card of a golf model from the files in its folder: recipe, videos, weights and results."""

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cycleback.comparison.methods import FROZEN, PARTS, TIME_ONLY
from cycleback.evaluation import Report
from cycleback.evaluation.scores import DAGGER, LEGEND, column_cells, columns
from cycleback.models.checkpoint import FILE_NAME
from cycleback.recipe import Recipe
from cycleback.runs import load_encoder, run_split, saved_recipe

RESULTS_FILE = "results.json"
OWN = "model"  # its row in the results; the others are FROZEN and TIME_ONLY
SHOWN = (
    *("event_error_frames", "event_error_ms", "pce1", "pce3"),
    *("event_error_frames_dtw", "event_error_ms_dtw", "pce1_dtw", "pce3_dtw"),
    *("phase_accuracy", "precision5", "tau", "cycle_rate", "confidence_auroc"),
)
TRAINED_BASE = {
    "frozen": "frozen",
    "bn": "its BatchNorm layers trained",
    "all": "all of it trained",
}

CITATION = (
    "W. McNally, K. Vats, T. Pinto, C. Dulhanty, J. McPhee, A. Wong: GolfDB: A Video Database for Golf Swing "
    "Sequencing. CVPR Workshops 2019, arXiv:1903.06528."
)
LICENCE = f"""The weights in this folder (encoder.safetensors) are licensed under the Creative Commons
Attribution-NonCommercial 4.0 International licence (CC BY-NC 4.0):

    https://creativecommons.org/licenses/by-nc/4.0/legalcode

You may use, share and change them for purposes that are not commercial, if you say where they come from. They
were learned from the videos of GolfDB, which ask for this licence; please cite:

    {CITATION}

The ImageNet weights that training began with (EfficientNet-Lite0) are under Apache-2.0, and so is the code of
cycleback.
"""

CARD = Path(__file__).with_name("golf_model_card.md")


def card(folder: Path) -> str:
    """Return the text of README.md."""
    results: dict[str, Any] = json.loads((folder / RESULTS_FILE).read_text("utf-8"))
    recipe, encoder, name = saved_recipe(folder), load_encoder(folder), results["model"]
    rows = {
        name if row == OWN else row: {part: Report.from_json(found) for part, found in parts.items()}
        for row, parts in results["rows"].items()
    }
    val, slow = ({row: parts[part] for row, parts in rows.items()} for part in ("val", "val_slow"))
    tables = {"val_table": table(val), "slow_table": table(slow)}
    has_mark = DAGGER in "".join(tables.values())
    text = CARD.read_text("utf-8").format(
        **{key: results[key] for key in ("encoder", "torch", "device", "commit")},
        **tables,
        **_network(recipe),
        name=name,
        dimensions=encoder.embedding_size,
        parameters=f"{sum(parameter.numel() for parameter in encoder.parameters()):,}",
        megabytes=f"{(folder / FILE_NAME).stat().st_size / 1e6:.2f}",
        losses=" + ".join(_losses(recipe)),
        effort=_effort(results),
        before=_before(recipe),
        training="\n".join(f"    {line}" for line in _training(recipe, name)),
        train=len(run_split(folder)["train"]),
        val=val[name].counts["videos"],
        slow=slow[name].counts["videos"],
        slow_words=slow_words(name, slow, val),
        legend=LEGEND.format(baseline=f"`{TIME_ONLY}`") + " " if has_mark else "",
        frozen=FROZEN,
        blind=TIME_ONLY,
        citation=CITATION,
    )
    return "\n".join(map(wrap, text.split("\n")))


def wrap(line: str) -> str:
    """Wrap a paragraph, list item or quotation at 100 characters; tables, commands and headings stay."""
    if line.startswith(("|", "    ", "#")):
        return line
    indent = {"- ": "  ", "> ": "> "}.get(line[:2], "")
    return textwrap.fill(line, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def table(reports: Mapping[str, Report]) -> str:
    """Return a table with one line per score and one column per row of the results."""
    rows = {name: report.to_json() for name, report in reports.items()}
    lines = [f"| | {' | '.join(reports)} |", "|---|" + "---:|" * len(reports)]
    for column in columns(*SHOWN):
        cells = (cell.markdown(intervals=True) for cell in column_cells(column, rows).values())
        lines.append(f"| {column.heading} | {' | '.join(cells)} |")
    return "\n".join(lines)


def slow_words(name: str, slow: Mapping[str, Report], val: Mapping[str, Report]) -> str:
    """Describe the results in slow motion, and recommend the frozen base if it is better."""
    near, warped = (
        f"{getattr(slow[name], score):.0f} frames off ({getattr(val[name], score):.0f} at normal speed)"
        for score in ("event_error_frames", "event_error_frames_dtw")
    )
    words = f"by nearest neighbour key events land {near}, by DTW {warped}"
    ours, base = (slow[row].event_error_frames_dtw or 0.0 for row in (name, FROZEN))
    advice = ": there appearance alone is the better choice" if base < ours else ""
    return f"{words}; with the frozen base, by DTW, {base:.0f}{advice}."


def _network(recipe: Recipe) -> dict[str, Any]:
    settings = recipe.encoder
    options = settings.options(settings.embedder)
    seen, stride = options.get("context_frames", 1), options.get("context_stride", 1)
    return {
        "streams": ", ".join(settings.streams),
        "block": settings.efficientnet_lite0.block,
        "base": TRAINED_BASE[settings.train_base]
        + (f", from {settings.train_from} on" if settings.train_from else ""),
        "embedder": settings.embedder,
        "context": f"{seen} frames, {stride} apart" if seen > 1 else "one frame",
        "reach": (seen - 1) * stride,
        "pixels": recipe.data.frame_size,
        "updates": f"{recipe.optimizer.num_updates:,}",
        "batch": recipe.optimizer.batch_size,
    }


def _losses(recipe: Recipe) -> list[str]:
    weights = {name: weight for name, weight in recipe.loss.weights.items() if weight > 0}
    titles = {part.loss: part.title for part in PARTS.values() if not part.tcc_kind}
    return [titles[name] if weight == 1 else f"{weight:g} {titles[name]}" for name, weight in weights.items()]


def _effort(results: Mapping[str, Any]) -> str:
    if results["minutes"] is None or results["trained_on"] is None:
        return ""
    return f", {results['minutes']:g} minutes on {results['trained_on']}"


def _before(recipe: Recipe) -> str:
    return ", after a first stage with the base frozen" if recipe.run.start_from else ""


def _training(recipe: Recipe, name: str) -> list[str]:
    """Return the commands of its training; its first stage, if any, has the recipe of the model's name."""
    start = recipe.run.start_from
    first = [f"cycleback train golf -o {start} --recipe {name}"] if start else []
    return [*first, f"cycleback train golf -o runs/{name} --recipe models/{name}/recipe.toml"]
