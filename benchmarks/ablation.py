"""Every loss on the hard synthetic set with several seeds: held-out scores as mean and spread.

Renders 84 videos (70 for training, 14 held out), trains each row with each seed, and writes the scores of
every run to the result file. Rows that are already there are not trained again.

Example:
    python benchmarks/ablation.py --rows tcc,tcn,tcc+tcn --seeds 0,1,2 --out results/ablation.json
"""

import argparse
import json
from pathlib import Path
from typing import Any

from cycleback.data import Dataset, read_dataset
from cycleback.evaluation.scores import columns
from cycleback.files import write_text
from cycleback.provenance import provenance
from cycleback.synth import write_dataset
from result_file import group_seeds, mean_and_spread, read_results, write_results
from rows import ROWS, SEEDLESS, measure, row_recipe

VIDEOS, HELD_OUT = 84, 14
SCORED = (
    "phase_accuracy",
    "progression",
    "tau",
    "event_error_frames",
    "event_error_frames_dtw",
    "cycle_rate",
)
BASES = {"pretrained": "fast", "scratch": "fast-scratch"}
PAPER = (
    "loss.tcn.positive_window=5",
    "encoder.conv.embedding_gain=1.0",
)  # as in the paper and the authors' program


def hard_set(folder: Path) -> Dataset:
    """Render the set, or read it; its last videos are held out."""
    if not (folder / "splits.csv").exists():
        write_dataset(folder, videos=VIDEOS, seed=0, level="hard", overwrite=True)
        names = read_dataset(folder).names
        rows = [f"{name},{'train' if i < VIDEOS - HELD_OUT else 'val'}" for i, name in enumerate(names)]
        write_text(folder / "splits.csv", "\n".join(["video,split", *rows, ""]))
    return read_dataset(folder)


def summarize(runs: dict[str, Any]) -> dict[str, Any]:
    """Return `base/row` -> number of seeds, and scores and minutes as [mean, spread] over seeds."""
    rows = {}
    for name, group in group_seeds(runs).items():
        values = [{**run["val"], "minutes": run["minutes"]} for run in group]
        keys = (*SCORED, "minutes")
        rows[name] = {"seeds": len(group)} | {key: mean_and_spread([v[key] for v in values]) for key in keys}
    return rows


def write(path: Path, result: dict[str, Any]) -> None:
    """Write all runs and their summary."""
    result["rows"] = summarize(result["runs"])
    write_results(path, result)


def add_options(parser: argparse.ArgumentParser, *, seeds: str, out: str) -> None:
    """Add the options that all programs on these videos share."""
    parser.add_argument("--seeds", default=seeds, help=f"separated by commas (default: {seeds})")
    parser.add_argument("--data", type=Path, default=Path("local/hard"), help="folder of the rendered set")
    parser.add_argument("--cache", type=Path, default=None, help="cache of decoded frames")
    parser.add_argument("--out", type=Path, default=Path(out), help=f"result file (default: {out})")
    parser.add_argument("--join", type=Path, nargs="*", default=[], help="result files to add to --out")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object")


def print_table(rows: dict[str, Any]) -> None:
    """Print the summary for people."""
    found = columns(*SCORED)
    print(f"{'':34}" + "".join(f"{column.title:>26}" for column in found))
    for name, row in rows.items():
        print(f"{name:30}({row['seeds']})" + "".join(f"{column.text(row):>26}" for column in found))


def main() -> None:
    """Train and score the rows that are not in the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("overrides", nargs="*", help="settings for every row, as section.key=value")
    parser.add_argument("--rows", default=",".join(ROWS), help="separated by commas")
    parser.add_argument("--bases", default="pretrained", help="pretrained, scratch (default: pretrained)")
    add_options(parser, seeds="0,1,2", out="results/ablation.json")
    arguments = parser.parse_args()
    dataset = hard_set(arguments.data)
    result = read_results(arguments.out, arguments.join)
    runs = result["runs"]
    for seed in map(int, arguments.seeds.split(",")):
        for base in arguments.bases.split(","):
            for row in arguments.rows.split(","):
                key = f"{base}/{row}/{seed}"
                if key in runs or (row in SEEDLESS and seed > 0):
                    continue
                recipe = row_recipe(row, BASES[base], [*PAPER, *arguments.overrides], seed)
                scores = measure(row, dataset, recipe, parts=["val"], cache=arguments.cache)
                runs[key] = scores | provenance()
                write(arguments.out, result)
    write(arguments.out, result)
    if arguments.json:
        print(json.dumps(result["rows"]))
    else:
        print_table(result["rows"])


if __name__ == "__main__":
    main()
