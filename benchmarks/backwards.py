"""How often TCC matches videos backwards, with and without the order loss.

A cycle to another video and back has no direction of time, so where videos look different (two camera views),
the first updates decide. Each setting is trained with every seed; then held-out videos are matched by nearest
neighbour, pair by pair: `tau` is the mean of Kendall's tau, and `backwards` the share of pairs where it is
negative. Rows that are already in the result file are not trained again.

With --restarts the folder is one of pose sequences of several actions. For each action and seed, `cycleback
train` is left to itself (`run.restart=true`): the share of pairs of up to 16 held-out videos whose nearest
neighbours run backwards (tau-b below -0.5) after the first training, and in what is kept.

Example:
    python benchmarks/backwards.py golf --seeds 0,1,2 --out results/backwards.json
    python benchmarks/backwards.py penn --restarts --seeds 0,1 --out results/backwards.json
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from cycleback.data import Dataset, read_dataset
from cycleback.errors import UserError
from cycleback.evaluation import pair_taus
from cycleback.provenance import provenance
from cycleback.recipe import load_recipe
from cycleback.runs import embed_videos, train
from result_file import read_results, write_results
from results_page import backwards_table, restarts_table
from rows import row_recipe, train_row

RECIPE = "golf-lite"
SETTINGS: dict[str, tuple[str, ...]] = {
    "4 videos of 20 frames": (),
    "8 videos of 20 frames": ("optimizer.batch_size=8",),
    "4 videos of 32 frames": ("data.frames_per_video=32",),
}
ROWS = ("tcc+tcn", "tcc+tcn+order")
POSES, POSE_UPDATES = "poses", 500  # recipe and updates of each training with --restarts


def measure(
    dataset: Dataset, overrides: tuple[str, ...], row: str, seed: int, *, updates: int, videos: int
) -> dict[str, Any]:
    """Train once and match held-out videos with each other."""
    recipe = row_recipe(row, RECIPE, [*overrides, f"optimizer.num_updates={updates}"], seed)
    made = train_row(row, dataset, recipe, None)
    held_out = embed_videos(made.encoder, dataset.split("val"))
    taus = pair_taus([held_out[name] for name in list(held_out)[:videos]])
    others = taus[~np.eye(len(taus), dtype=bool) & ~np.isnan(taus)]
    shares = {"tau": float(others.mean()), "backwards": float((others < 0).mean())}
    return {**{key: round(value, 4) for key, value in shares.items()}, **provenance()}


def measure_restarts(dataset: Dataset, seeds: list[int], out: Path | None, result: dict[str, Any]) -> None:
    """Train each action with each seed, and add what was measured to `result["restarts"]`."""
    section = result.setdefault("restarts", {"recipe": POSES, "updates": POSE_UPDATES, "runs": {}})
    for seed in seeds:
        for action in dataset.actions:
            key = f"{action}/{seed}"
            if key in section["runs"]:
                continue
            settings = [f"data.action={action}", f"run.seed={seed}", f"optimizer.num_updates={POSE_UPDATES}"]
            with tempfile.TemporaryDirectory() as folder:
                state = train(dataset, Path(folder) / "run", recipe=load_recipe(POSES, settings))
            again = state.restart
            row: dict[str, Any] = {"before": state.backwards if again is None else again.before}
            row |= {"after": state.backwards, "setting": None if again is None else again.setting}
            shares = {name: round(row[name], 4) for name in ("before", "after")}
            section["runs"][key] = {**row, **shares, "seconds": round(state.seconds, 1), **provenance()}
            print(f"{key}: {section['runs'][key]}", flush=True)
            if out is not None:
                write_results(out, result)


def main() -> None:
    """Train, write and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="data set folder with a split")
    parser.add_argument("--seeds", default="0,1,2", help="separated by commas (default: 0,1,2)")
    parser.add_argument("--updates", type=int, default=200, help="of each training (default: 200)")
    parser.add_argument("--videos", type=int, default=60, help="held-out videos to match (default: 60)")
    parser.add_argument("--out", type=Path, default=None, help="result file; its rows are not trained again")
    parser.add_argument("--restarts", action="store_true", help="measure what `train` does about it")
    parser.add_argument("--json", action="store_true", help="print the results as one line of JSON, last")
    arguments = parser.parse_args()
    out: Path | None = arguments.out
    result: dict[str, Any] = read_results(out) if out else {}
    asked = {"recipe": RECIPE, "updates": arguments.updates, "videos": arguments.videos}
    if changed := [key for key in asked if result.get(key, asked[key]) != asked[key]]:
        raise SystemExit(
            f"{out} was made with {changed[0]} {result[changed[0]]}. Use the same, or another --out."
        )
    result |= asked
    runs: dict[str, dict[str, Any]] = result.setdefault("runs", {})
    try:
        dataset = read_dataset(arguments.data)
    except UserError as error:
        raise SystemExit(f"error: {error}") from None
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    if arguments.restarts:
        measure_restarts(dataset, seeds, out, result)
        print(json.dumps(result) if arguments.json else "\n".join(restarts_table(result["restarts"]["runs"])))
        return
    for seed in seeds:
        for setting, overrides in SETTINGS.items():
            for row in ROWS:
                key = f"{setting}/{row}/{seed}"
                if key in runs:
                    continue
                runs[key] = measure(
                    dataset, overrides, row, seed, updates=arguments.updates, videos=arguments.videos
                )
                print(
                    f"{key}: tau {runs[key]['tau']:.3f}, backwards {runs[key]['backwards']:.3f}", flush=True
                )
                if out is not None:
                    write_results(out, result)
    print(json.dumps(result) if arguments.json else "\n".join(backwards_table(runs)))


if __name__ == "__main__":
    main()
