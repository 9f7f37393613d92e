"""Train and measure the rows of a results table on a labelled data set, and keep them as JSON.

Rows that are already in the result file are not trained again, so a stopped run goes on where it was.

Example:
    cycleback data prepare golfdb downloads/golfdb golf
    python benchmarks/reproduce.py golf --rows tcc,tcn,tcc+tcn --out results/golf-fast.json
"""

import argparse
import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from cycleback.data import Dataset, read_dataset
from cycleback.embeddings import EmbeddingSet
from cycleback.evaluation import evaluate, time_only_embeddings
from cycleback.models import Encoder
from cycleback.recipe import Recipe, build_encoder, load_recipe
from cycleback.runs import embed_videos, load_encoder, train
from cycleback.training import read_log

LOSSES = {
    "tcc": "{ tcc = 1.0 }",
    "tcn": "{ tcn = 1.0 }",
    "sal": "{ sal = 1.0 }",
    "tcc+tcn": "{ tcc = 1.0, tcn = 1.0 }",
    "tcc+sal": "{ tcc = 1.0, sal = 1.0 }",
    "supervised": "{ supervised = 1.0 }",
    "tcc-stochastic": "{ stochastic_tcc = 1.0 }",
}
KINDS = {"tcc-classification": "classification", "tcc-mse": "mse"}
BASELINES = ("time-only", "untrained", "frozen")
DETAILS = ("by_action", "event_error_by_event", "event_errors", "calibration", "robust")  # not kept


def recipe_of(row: str, name: str, overrides: list[str], seed: int) -> Recipe:
    """The recipe of a row: the named one with the row's loss."""
    loss = [f"loss.weights={LOSSES['tcc' if row in KINDS else row]}"]
    kind = [f"loss.tcc.kind={KINDS[row]}"] if row in KINDS else []
    return load_recipe(name, [*loss, *kind, *overrides, f"run.seed={seed}"])


@dataclass(frozen=True)
class Trained:
    """An encoder, the minutes its training took, and how it went: (update, loss, cycle rate) now and then."""

    encoder: Encoder
    minutes: float = 0.0
    curve: tuple[tuple[float, ...], ...] = ()


def trained(row: str, dataset: Dataset, recipe: Recipe, cache: Path | None) -> Trained:
    """The encoder of a row."""
    if row in ("frozen", "time-only"):
        return Trained(load_encoder("pretrained"))
    if row == "untrained":
        torch.manual_seed(recipe.run.seed)
        return Trained(build_encoder(recipe))
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        state = train(dataset, run, recipe=recipe, cache=cache)
        if state.step < recipe.optimizer.num_updates and not state.stopped_early:
            raise SystemExit(f"stopped at update {state.step} of {row}: nothing is kept of it")
        return Trained(load_encoder(run), state.seconds / 60, curve_of(run))


def curve_of(run: Path, points: int = 40) -> tuple[tuple[float, ...], ...]:
    """The log of a run in about so many points, each the mean of the records since the one before."""
    records = [record for record in read_log(run) if "loss" in record]
    size = max(1, len(records) // points)
    groups = [records[start : start + size] for start in range(0, len(records) - size + 1, size)]
    return tuple(
        (group[-1]["step"], *(round(fmean(r[key] for r in group), 4) for key in ("loss", "cycle_rate")))
        for group in groups
    )


def measure(
    row: str, dataset: Dataset, recipe: Recipe, *, parts: list[str], cache: Path | None
) -> dict[str, Any]:
    """Scores of a row on each held-out part."""
    made = trained(row, dataset, recipe, cache)
    sets = {part: embed_videos(made.encoder, dataset.split(part), cache=cache) for part in ("train", *parts)}
    if row == "time-only":
        sets = {part: time_only_embeddings(found) for part, found in sets.items()}
    scores = {part: score(sets["train"], sets[part]) for part in parts}
    return {"minutes": round(made.minutes, 3), "curve": made.curve, **scores}


def score(seen: EmbeddingSet, held_out: EmbeddingSet) -> dict[str, Any]:
    """The report without its details."""
    report = evaluate(seen, held_out).to_json()
    return {key: value for key, value in report.items() if key not in DETAILS}


def circumstances() -> dict[str, str]:
    """Where and with what the numbers were made."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{os.cpu_count()} CPU cores"
    return {
        "commit": os.environ.get("CYCLEBACK_COMMIT") or commit or "unknown",  # a copy may not be its checkout
        "device": device,
        "torch": torch.__version__,
    }


def main() -> None:
    """Train and measure what is not yet in the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="data set folder with labels and a split")
    parser.add_argument("overrides", nargs="*", help="settings for every row, as section.key=value")
    parser.add_argument("--recipe", default="fast", help="recipe all rows share (default: fast)")
    parser.add_argument("--rows", default=",".join((*BASELINES, *LOSSES)), help="rows, separated by commas")
    parser.add_argument("--parts", default="val", help="held-out splits, separated by commas (default: val)")
    parser.add_argument("--seeds", default="0", help="seeds, separated by commas (default: 0)")
    parser.add_argument("--cache", type=Path, default=None, help="where decoded frames are kept")
    parser.add_argument("--out", type=Path, required=True, help="result file; goes on where it is")
    parser.add_argument("--json", action="store_true", help="print the results as one JSON object")
    arguments = parser.parse_args()
    dataset = read_dataset(arguments.data)
    done: dict[str, Any] = json.loads(arguments.out.read_text("utf-8")) if arguments.out.exists() else {}
    done.setdefault("recipe", [arguments.recipe, *arguments.overrides])
    rows = done.setdefault("rows", {})
    for seed in map(int, arguments.seeds.split(",")):
        for row in arguments.rows.split(","):
            key = row if row in BASELINES else f"{row}/{seed}"
            if key in rows:
                continue
            loss = "tcc" if row in BASELINES else row
            recipe = recipe_of(loss, arguments.recipe, arguments.overrides, seed)
            rows[key] = measure(row, dataset, recipe, parts=arguments.parts.split(","), cache=arguments.cache)
            rows[key] |= circumstances()
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            arguments.out.write_text(json.dumps(done, indent=1) + "\n", "utf-8")
            first = rows[key][arguments.parts.split(",")[0]]
            print(
                key,
                first["event_error_frames"],
                first["event_error_frames_dtw"],
                rows[key]["minutes"],
                flush=True,
            )
    if arguments.json:
        print(json.dumps(done))


if __name__ == "__main__":
    main()
