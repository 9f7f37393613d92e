"""A result file: runs by `base/row/seed`, and a summary over seeds by `base/row`."""

import json
import re
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from cycleback.files import write_text

UNCOUNTED = ("counts", "intervals", "protocol", "can_count_frames")  # of a report: not for a mean


def opened(path: Path, others: list[Path]) -> dict[str, Any]:
    """The result file as it is so far, with the runs of other files."""
    result: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    recipes, runs = result.setdefault("recipe", {}), result.setdefault("runs", {})
    for other in others:
        found = json.loads(other.read_text("utf-8"))
        recipes |= found["recipe"]
        runs |= found["runs"]
    return result


def write(path: Path, result: dict[str, Any]) -> None:
    """Keep all runs and their summary; the file is replaced whole."""
    result["rows"] = summary(result["runs"])
    write_text(path, tidy_json(result), overwrite=True)


def tidy_json(value: Any) -> str:
    """Indented JSON with every list of numbers on one line."""
    text = json.dumps(value, indent=1)
    return re.sub(r"\[[^\[\]{}]*\]", lambda found: " ".join(found[0].split()), text) + "\n"


def summary(runs: dict[str, Any]) -> dict[str, Any]:
    """`base/row` -> number of seeds, and the minutes and scores of each part as [mean, spread] over them."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for key, run in runs.items():
        groups.setdefault(key.rpartition("/")[0], []).append(run)
    return {name: {"seeds": len(group), **_figures(group)} for name, group in groups.items()}


def _figures(group: list[dict[str, Any]]) -> dict[str, Any]:
    return {key: over_seeds([run[key] for run in group]) for key in ("minutes", *parts_of(group[0]))}


def parts_of(run: dict[str, Any]) -> list[str]:
    """The held-out parts that a run, or a row of the summary, has scores of."""
    return [key for key, value in run.items() if isinstance(value, dict)]


def over_seeds(values: list[Any]) -> Any:
    """Each number of several reports as [mean, spread]; None where one of them has none."""
    if isinstance(values[0], dict):
        keys = [key for key in values[0] if key not in UNCOUNTED]
        return {key: over_seeds([value[key] for value in values]) for key in keys}
    if any(value is None for value in values):
        return None
    return [round(fmean(values), 4), round(stdev(values), 4) if len(values) > 1 else 0.0]
