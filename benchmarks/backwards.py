"""How often TCC matches videos backwards, with and without the loss of order.

A walk to another video and back cannot tell forwards from backwards, so where videos look different (two
camera views), the first updates decide. Each setting is trained with every seed for so many updates; then
held-out videos are matched by nearest neighbour, pair by pair: `tau` is the mean of Kendall's tau, and
`backwards` the share of the pairs where it is negative. A stopped run goes on where it was.

Example:
    python benchmarks/backwards.py golf --seeds 0,1,2 --out results/backwards.json
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from cycleback.data import Dataset, read_dataset
from cycleback.errors import UserError
from cycleback.evaluation import pair_taus
from cycleback.files import write_text
from cycleback.recipe import load_recipe
from cycleback.runs import embed_videos
from result_file import tidy_json
from results_page import backwards_table
from rows import LOSSES, circumstances, trained

RECIPE = "golf-lite"
SETTINGS: dict[str, tuple[str, ...]] = {
    "4 videos of 20 frames": (),
    "8 videos of 20 frames": ("optimizer.batch_size=8",),
    "4 videos of 32 frames": ("data.frames_per_video=32",),
}
ROWS = ("tcc+tcn", "tcc+tcn+order")


def measured(
    dataset: Dataset, overrides: tuple[str, ...], row: str, seed: int, *, updates: int, videos: int
) -> dict[str, Any]:
    """Train once, match held-out videos with each other."""
    given = (f"loss.weights={LOSSES[row]}", f"optimizer.num_updates={updates}", f"run.seed={seed}")
    made = trained(row, dataset, load_recipe(RECIPE, [*overrides, *given]), None)
    held_out = embed_videos(made.encoder, dataset.split("val"))
    taus = pair_taus([held_out[name] for name in list(held_out)[:videos]])
    others = taus[~np.eye(len(taus), dtype=bool) & ~np.isnan(taus)]
    shares = {"tau": float(others.mean()), "backwards": float((others < 0).mean())}
    return {**{key: round(value, 4) for key, value in shares.items()}, **circumstances()}


def main() -> None:
    """Train, keep, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="data set folder with a split")
    parser.add_argument("--seeds", default="0,1,2", help="separated by commas (default: 0,1,2)")
    parser.add_argument("--updates", type=int, default=200, help="of each training (default: 200)")
    parser.add_argument("--videos", type=int, default=60, help="held-out ones to match (default: 60)")
    parser.add_argument("--out", type=Path, default=None, help="result file; goes on where it is")
    parser.add_argument("--json", action="store_true", help="print the results as one line of JSON, last")
    arguments = parser.parse_args()
    out: Path | None = arguments.out
    result: dict[str, Any] = json.loads(out.read_text("utf-8")) if out and out.exists() else {}
    asked = {"recipe": RECIPE, "updates": arguments.updates, "videos": arguments.videos}
    if changed := [key for key in asked if result.get(key, asked[key]) != asked[key]]:
        raise SystemExit(
            f"{out} was made with {changed[0]} {result[changed[0]]}: take the same, or another --out"
        )
    result |= asked
    runs: dict[str, dict[str, Any]] = result.setdefault("runs", {})
    try:
        dataset = read_dataset(arguments.data)
    except UserError as error:
        raise SystemExit(f"error: {error}") from None
    for seed in map(int, arguments.seeds.split(",")):
        for setting, overrides in SETTINGS.items():
            for row in ROWS:
                key = f"{setting}/{row}/{seed}"
                if key in runs:
                    continue
                runs[key] = measured(
                    dataset, overrides, row, seed, updates=arguments.updates, videos=arguments.videos
                )
                print(
                    f"{key}: tau {runs[key]['tau']:.3f}, backwards {runs[key]['backwards']:.3f}", flush=True
                )
                if out is not None:
                    write_text(out, tidy_json(result), overwrite=True)
    print(json.dumps(result) if arguments.json else "\n".join(backwards_table(runs)))


if __name__ == "__main__":
    main()
