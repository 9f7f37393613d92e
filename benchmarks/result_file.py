"""A result file: runs by `base/row/seed`, and a summary over seeds by `base/row`."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from cycleback.files import write_text

NOT_SCORES = ("counts", "intervals", "protocol", "can_count_frames")  # fields of a report without a mean


def read_results(path: Path, others: Sequence[Path] = ()) -> dict[str, Any]:
    """Read the result file, if it exists, and add the runs of other files."""
    result: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    result.setdefault("runs", {})
    for other in others:
        found = json.loads(other.read_text("utf-8"))
        result["runs"] |= found["runs"]
        if "recipe" in found:
            result["recipe"] = {**result.get("recipe", {}), **found["recipe"]}
    return result


def write_results(path: Path, result: Mapping[str, Any]) -> None:
    """Overwrite the result file."""
    write_text(path, format_json(result), overwrite=True)


def format_json(value: Any) -> str:
    """Return indented JSON with every list of numbers on one line."""
    text = json.dumps(value, indent=1)
    return re.sub(r"\[[^\[\]{}]*\]", lambda found: " ".join(found[0].split()), text) + "\n"


def summarize(runs: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base/row` -> number of seeds, and minutes and scores of each part as [mean, spread]."""
    return {
        name: {
            "seeds": len(group),
            **{key: mean_and_spread([run[key] for run in group]) for key in ("minutes", *parts_of(group[0]))},
        }
        for name, group in group_seeds(runs).items()
    }


def group_seeds(runs: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return `base/row` -> the runs of all its seeds."""
    groups: dict[str, list[Any]] = {}
    for key, run in runs.items():
        groups.setdefault(key.rpartition("/")[0], []).append(run)
    return groups


def parts_of(run: Mapping[str, Any]) -> list[str]:
    """Return the held-out parts that a run, or a row of the summary, has scores of."""
    return [key for key, value in run.items() if isinstance(value, dict)]


def mean_and_spread(values: Sequence[Any]) -> Any:
    """Return each number of several reports as [mean, spread]; None if one report lacks it."""
    if isinstance(values[0], dict):
        keys = [key for key in values[0] if key not in NOT_SCORES]
        return {key: mean_and_spread([value[key] for value in values]) for key in keys}
    if any(value is None for value in values):
        return None
    return [round(fmean(values), 4), round(stdev(values), 4) if len(values) > 1 else 0.0]
