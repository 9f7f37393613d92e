"""Penn Action poses, the paper's 13 actions on the official split: tau and cycle rate, without pictures.

Rows: time-only, the raw pose, and TCN, TCC and TCC + TCN, each as one joint model of all actions and as one
model per action. Rows that are already in the result file are not trained again.

Example:
    cycleback data prepare penn-poses downloads/penn_action_poses penn
    python benchmarks/penn_poses.py penn --out results/penn_poses.json
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from cycleback.comparison.methods import parse_method
from cycleback.data import Dataset, load_sequence, read_dataset
from cycleback.embeddings import EmbeddingSet
from cycleback.evaluation import TIME_ONLY, Report, evaluate, time_only_embeddings
from cycleback.files import write_json
from cycleback.provenance import provenance
from cycleback.recipe import load_recipe
from cycleback.runs import embed_videos, load_encoder, train

LEARNED = ("tcn", "tcc", "tcc+tcn")
ROWS = (TIME_ONLY, "raw pose", *(f"{who} {row}" for who in ("joint", "own") for row in LEARNED))
FIGURES = ("tau", "tau_a", "cycle_rate")


def raw(held_out: Dataset) -> EmbeddingSet:
    """Return the poses themselves as embeddings."""
    poses = {record.name: load_sequence(record).features for record in held_out}
    return EmbeddingSet.from_arrays(poses, actions={record.name: record.action for record in held_out})


def train_poses(dataset: Dataset, row: str, action: str, overrides: list[str]) -> tuple[EmbeddingSet, float]:
    """Train a model of one action, or of all with ""; return held-out embeddings and minutes."""
    settings = [*parse_method(row).overrides, f"data.action={action}", "run.restart=false", *overrides]
    held_out = dataset.split("val")
    if action:
        held_out = held_out.subset([record.name for record in held_out if record.action == action])
    with tempfile.TemporaryDirectory() as folder:
        state = train(dataset, Path(folder) / "run", recipe=load_recipe("poses", shared=settings))
        return embed_videos(load_encoder(Path(folder) / "run"), held_out), state.seconds / 60


def reports(dataset: Dataset, row: str, overrides: list[str]) -> tuple[dict[str, Report], float]:
    """Return one report per action, and the minutes of all training."""
    if row in (TIME_ONLY, "raw pose"):
        found = raw(dataset.split("val"))
        return _by_action(time_only_embeddings(found) if row == TIME_ONLY else found), 0.0
    who, _, loss = row.partition(" ")
    if who == "joint":
        found, minutes = train_poses(dataset, loss, "", overrides)
        return _by_action(found), minutes
    parts = {action: train_poses(dataset, loss, action, overrides) for action in dataset.actions}
    return {action: _score(found) for action, (found, _) in parts.items()}, sum(m for _, m in parts.values())


def _by_action(found: EmbeddingSet) -> dict[str, Report]:
    return {action: _score(found.of_action(action)) for action in found.actions}


def _score(found: EmbeddingSet) -> Report:
    return evaluate(None, found, intervals=False, few_shot=False)


def figures(by_action: dict[str, Report], minutes: float) -> dict[str, Any]:
    """Return means over actions, and the scores of each."""
    rows = {a: {f: round(getattr(r, f), 4) for f in FIGURES} for a, r in sorted(by_action.items())}
    means = {f: round(sum(row[f] for row in rows.values()) / len(rows), 4) for f in FIGURES}
    return {**means, "minutes": round(minutes, 2), "by_action": rows}


def main() -> None:
    """Train and score the rows that are not in the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder made by `cycleback data prepare penn-poses`")
    parser.add_argument("overrides", nargs="*", help="settings for every row, as section.key=value")
    parser.add_argument("--rows", default=",".join(ROWS), help="separated by commas")
    parser.add_argument("--out", type=Path, default=Path("results/penn_poses.json"))
    parser.add_argument("--json", action="store_true", help="print the results as one JSON object")
    arguments = parser.parse_args()
    dataset = read_dataset(arguments.data)
    done: dict[str, Any] = json.loads(arguments.out.read_text("utf-8")) if arguments.out.exists() else {}
    rows = done.setdefault("rows", {})
    for row in arguments.rows.split(","):
        if row not in rows:
            by_action, minutes = reports(dataset, row, arguments.overrides)
            rows[row] = figures(by_action, minutes) | provenance() | {"settings": arguments.overrides}
            write_json(arguments.out, done, overwrite=True)
            print(f"{row:16}", {figure: rows[row][figure] for figure in (*FIGURES, "minutes")}, flush=True)
    if arguments.json:
        print(json.dumps(done))


if __name__ == "__main__":
    main()
