"""Every loss on the hard synthetic set, several seeds: held-out figures as mean and spread.

Renders 84 videos (70 to learn from, 14 held out), trains each row with each seed, and keeps the figures of
every run in the result file; a stopped run goes on where it was.

Example:
    python benchmarks/ablation.py --rows tcc,tcn,tcc+tcn --seeds 0,1,2 --out results/ablation.json
"""

import argparse
import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from cycleback.data import Dataset, read_dataset
from cycleback.synth import write_dataset
from reproduce import BASELINES, KINDS, LOSSES, circumstances, measure, recipe_of
from result_file import tidy_json

VIDEOS, HELD_OUT = 84, 14
FIGURES = (
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
    """The rendered set, its last videos held out."""
    if not (folder / "splits.csv").exists():
        write_dataset(folder, videos=VIDEOS, seed=0, level="hard", overwrite=True)
        names = read_dataset(folder).names
        rows = [f"{name},{'train' if i < VIDEOS - HELD_OUT else 'val'}" for i, name in enumerate(names)]
        (folder / "splits.csv").write_text("\n".join(["video,split", *rows, ""]), "utf-8")
    return read_dataset(folder)


def summary(runs: dict[str, Any]) -> dict[str, Any]:
    """`base/row` -> each figure as [mean, spread over seeds], and how many seeds there were."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for key, run in runs.items():
        groups.setdefault(key.rpartition("/")[0], []).append({**run["val"], "minutes": run["minutes"]})
    return {name: _figures(group) for name, group in groups.items()}


def _figures(group: list[dict[str, Any]]) -> dict[str, Any]:
    values = {figure: [run[figure] for run in group] for figure in (*FIGURES, "minutes")}
    spread = {figure: stdev(found) if len(found) > 1 else 0.0 for figure, found in values.items()}
    figures = {figure: [round(mean(found), 4), round(spread[figure], 4)] for figure, found in values.items()}
    return {"seeds": len(group), **figures}


def write(path: Path, result: dict[str, Any]) -> None:
    """Keep all runs and their summary."""
    result["rows"] = summary(result["runs"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tidy_json(result), "utf-8")


def add_options(parser: argparse.ArgumentParser, *, seeds: str, out: str) -> None:
    """What every set of runs on these videos is asked for."""
    parser.add_argument("--seeds", default=seeds, help=f"separated by commas (default: {seeds})")
    parser.add_argument("--data", type=Path, default=Path("local/hard"), help="where the set is rendered to")
    parser.add_argument("--cache", type=Path, default=None, help="where decoded frames are kept")
    parser.add_argument("--out", type=Path, default=Path(out), help=f"result file (default: {out})")
    parser.add_argument("--join", type=Path, nargs="*", default=[], help="result files to add to --out")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object")


def opened(path: Path, others: list[Path]) -> dict[str, Any]:
    """The result file with its runs so far, and those of other files."""
    result: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    runs = result.setdefault("runs", {})
    for other in others:
        runs |= json.loads(other.read_text("utf-8"))["runs"]
    return result


def print_table(rows: dict[str, Any]) -> None:
    """The summary for people."""
    print(f"{'':34}" + "".join(f"{figure:>24}" for figure in FIGURES))
    for name, figures in rows.items():
        cells = (f"{figures[figure][0]:.3f} ± {figures[figure][1]:.3f}" for figure in FIGURES)
        print(f"{name:30}({figures['seeds']})" + "".join(f"{cell:>24}" for cell in cells))


def main() -> None:
    """Train and measure what is not yet in the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("overrides", nargs="*", help="settings for every row, as section.key=value")
    parser.add_argument("--rows", default=",".join((*BASELINES, *LOSSES, *KINDS)), help="separated by commas")
    parser.add_argument("--bases", default="pretrained", help="pretrained, scratch (default: pretrained)")
    add_options(parser, seeds="0,1,2", out="results/ablation.json")
    arguments = parser.parse_args()
    dataset = hard_set(arguments.data)
    result = opened(arguments.out, arguments.join)
    runs = result["runs"]
    for seed in map(int, arguments.seeds.split(",")):
        for base in arguments.bases.split(","):
            for row in arguments.rows.split(","):
                key = f"{base}/{row}/{seed}"
                if key in runs or (row in BASELINES and seed > 0 and row != "untrained"):
                    continue
                loss = "tcc" if row in BASELINES else row
                recipe = recipe_of(loss, BASES[base], [*PAPER, *arguments.overrides], seed)
                runs[key] = (
                    measure(row, dataset, recipe, parts=["val"], cache=arguments.cache) | circumstances()
                )
                write(arguments.out, result)
    write(arguments.out, result)
    if arguments.json:
        print(json.dumps(result["rows"]))
    else:
        print_table(result["rows"])


if __name__ == "__main__":
    main()
