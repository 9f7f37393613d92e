"""Write RESULTS.md from the committed result files, and draw its figures.

Example:
    python benchmarks/results_page.py
"""

import argparse
import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cycleback.evaluation.scores import Column, columns, markdown_table
from cycleback.files import write_bytes, write_text
from result_file import group_seeds, parts_of
from results_figures import BASES, FIGURES, of_base
from rows import ROWS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "RESULTS.md"
PICTURES = "docs/images"  # beside the page


def exact_columns(*keys: str, under: str = "", group: str = "") -> list[Column]:
    """Return columns of scores with three decimals of tau: seeds differ by more."""
    found = columns(*keys, under=under, group=group)
    return [replace(c, pattern="{:.3f}") if c.pattern == "{:.4f}" else c for c in found]


MINUTES, SEEDS = Column("minutes", "minutes", "{:.1f}", ""), Column("seeds", "seeds", "{}", "")
SHARES = [f"phase_accuracy_by_fraction/{share}" for share in ("0.1", "0.5", "1.0")]
GOLF = [
    *exact_columns(*SHARES, "progression", "tau", "event_error_ms", "event_error_ms_dtw"),
    *exact_columns("pce1", "pce3", "pce1_dtw", "pce3_dtw", "precision5"),
    MINUTES,
    SEEDS,
]
SEARCH = [
    *exact_columns(SHARES[0], SHARES[2], "progression", "tau", under="val"),
    *exact_columns("event_error_ms", "event_error_ms_dtw", "pce3", "pce3_dtw", under="val"),
    *exact_columns("event_error_ms", "event_error_ms_dtw", under="val_slow", group="val_slow"),
    MINUTES,
]
TRANSFER = {
    "median_ms": ("median error in ms, by labelled videos", "{:.0f}"),
    "pce1": ("within 1 frame", "{:.3f}"),
    "pce3": ("within 3 frames", "{:.3f}"),
}
HEAD = """# Results

Written by `python benchmarks/results_page.py` from `results/*.json`; the commands that made those files are
beside the tables. Every table has the row *time-only* (embedding = frame / length, no pixels): a cell with a
dagger (†) is not better than it and shows no sign of learning. ± is the standard deviation over seeds, where
a row has several.
"""
GOLF_HEAD = """379 training videos, 191 held-out ones at full speed (*val*) and 50 in slow motion
(*val_slow*), with 8 key events each. Phase accuracy is that of a logistic regression trained on 10 / 50 /
100 % of the labelled training videos. Event error is the median distance from the truth of a key event that
is mapped to another held-out video, by nearest neighbour or by dynamic time warping (DTW); *within k frames*
is the share of key events no further off than that (PCE@k). Precision@5 is the share of the 5 nearest frames
of other videos that are in the same phase. *untrained* is the encoder before training; *frozen* is its base
alone, averaged over nine parts of the picture; *supervised* was trained with the phase labels of all training
videos, the others without any. Minutes are those of training. The videos are prepared by

    cycleback data prepare golfdb downloads/golfdb golf
"""
BACKWARDS_HEAD = """![pairs matched backwards](docs/images/golf-backwards.svg)

A cycle to another video and back ends where it started just as well if the other video is matched from its
end to its beginning: cycles have no direction of time. Where videos look different from each other, the first
updates decide, and swings are filmed from the front and from behind. `benchmarks/backwards.py` trains
`{recipe}` for {updates} updates and matches {videos} held-out videos with each other: the mean of Kendall's
tau, and the share of pairs where it is negative. The loss *order* costs something only where matches run
backwards.
"""
FIGURE_TEXT = """![phase accuracy against the number of labelled videos](docs/images/golf-few-shot.svg)

Phase accuracy on *val* with the labels of a few training videos: up to 10 videos the mean of 50 draws, then
one draw of 10 and of 50 % of all videos, then all. *supervised* was trained with all labels. Bands reach from
the lowest seed to the highest.
"""
SEARCH_HEAD = """The effect of changes of a recipe, each trained once (TCC + TCN, seed 0): differences of one
frame, or of 0.02, are within what another seed does. Settings are those that differ from the current recipe.
"""
TRANSFER_HEAD = """Key events found in the held-out golf videos, by the number of labelled training videos
(`benchmarks/label_transfer.py`): *transfer* maps the labels by alignment, *supervised* is trained on them.
That file describes the other rows.
"""
TRANSFER_COMMAND = """    python benchmarks/label_transfer.py golf --run {run}{recipe} --updates {updates} \\
      --out results/label_transfer.json"""
POSES_HEAD = """The paper's 13 actions on the official split, with 2-D poses instead of pictures. *joint* is
one model of all actions, *own* one per action. There are no phase labels: nothing here shows that a match is
right.

    cycleback data prepare penn-poses downloads/penn_action_poses penn
    python benchmarks/penn_poses.py penn --out results/penn_poses.json
"""


def golf_table(rows: Mapping[str, Any], part: str, untimed: set[str]) -> str:
    """Return the rows of one base on one held-out part, without the minutes of `untimed` rows."""
    found = {
        name: {
            **rows[name][part],
            "minutes": None if name in untimed else rows[name]["minutes"],
            "seeds": rows[name]["seeds"],
        }
        for name in sorted(rows, key=ROWS.index)
    }
    return markdown_table(GOLF, found, corner=part)


def commands(runs: Mapping[str, Any], base: str) -> list[str]:
    """Return the commands that make the runs of a base: one for all rows that share settings and seeds."""
    seeds: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for key, run in runs.items():
        row, _, seed = key.rpartition("/")
        seeds.setdefault((tuple(run["recipe"]), row), []).append(seed)
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (settings, row), found in seeds.items():
        groups.setdefault((settings, tuple(sorted(found, key=int))), []).append(row)
    lines = []
    for ((recipe, *overrides), numbers), rows in groups.items():
        command = ["python", "benchmarks/reproduce.py", "golf", "--bases", base]
        command += ["--base", f"{base}={recipe}", *overrides, "--rows", ",".join(rows)]
        lines.append(shlex.join([*command, "--seeds", ",".join(numbers), "--out", "results/golf.json"]))
    return lines


def made_on(runs: Iterable[Mapping[str, Any]]) -> str:
    """Say where runs were made."""
    found = list(runs)
    devices, versions, commits = (
        " and ".join(dict.fromkeys(str(run[key]) for run in found if key in run))
        for key in ("device", "torch", "commit")
    )
    return f"Made on {devices} with torch {versions} at commit {commits}."


def golf_section(result: Mapping[str, Any]) -> list[str]:
    """Return the tables of each base and part, and the commands that made them."""
    lines = ["## GolfDB", "", GOLF_HEAD]
    if any("few_shot" in run["val"] for run in result["runs"].values()):
        lines.append(FIGURE_TEXT)
    for base, title in BASES.items():
        rows, runs = of_base(result["rows"], base), of_base(result["runs"], base)
        if not rows:
            continue
        slow = {key.rpartition("/")[0] for key, run in runs.items() if "CPU" in run["device"]}
        untimed = {name for name in rows if name in slow or not any(rows[name]["minutes"])}
        lines += [f"### {title}", "", *(f"    {line}" for line in commands(runs, base)), ""]
        for part in parts_of(next(iter(rows.values()))):
            lines += [golf_table(rows, part, untimed), ""]
        lines += [made_on(runs.values()) + _projection(runs.values()), ""]
    return lines


def _projection(runs: Iterable[Mapping[str, Any]]) -> str:
    kept = [run["variance_kept"] for run in runs if "variance_kept" in run]
    text = " Frozen features are projected on the 512 main directions of the training frames: {:.0%} of the "
    return (text + "variance.").format(kept[0]) if kept else ""


def search_section(result: Mapping[str, Any]) -> list[str]:
    """Return one row per change of a recipe that was tried."""
    runs = sorted(result["runs"].values(), key=lambda run: (run["recipe"][0], len(run["recipe"])))
    rows, titles = {}, {}
    for number, run in enumerate(runs):
        titles[str(number)] = ", ".join(f"`{setting}`" for setting in run["recipe"])
        rows[str(number)] = {**run, "minutes": run["minutes"] if "CPU" not in run["device"] else None}
    table = markdown_table(SEARCH, rows, corner="recipe, change", titles=titles)
    return ["### The search", "", SEARCH_HEAD, table, "", made_on(runs), ""]


def backwards_section(result: Mapping[str, Any]) -> list[str]:
    """Return how often videos are matched backwards."""
    runs = result["runs"]
    seeds = ",".join(sorted({key.rpartition("/")[2] for key in runs}, key=int))
    command = f"    python benchmarks/backwards.py golf --seeds {seeds} --out results/backwards.json"
    lines = ["## Forwards or backwards", "", BACKWARDS_HEAD.format(**result), command, ""]
    return [*lines, *backwards_table(runs), "", made_on(runs.values()), ""]


def backwards_table(runs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return one line per setting and loss of the runs `setting/loss/seed`, with the values of all seeds."""
    lines = ["| batch | loss | tau, each seed | pairs matched backwards, each seed |", "|---|---|---:|---:|"]
    for name, found in group_seeds(runs).items():
        setting, _, loss = name.rpartition("/")
        taus, shares = (", ".join(f"{run[key]:.2f}" for run in found) for key in ("tau", "backwards"))
        lines.append(f"| {setting} | {loss} | {taus} | {shares} |")
    return lines


def transfer_section(result: Mapping[str, Any]) -> list[str]:
    """Return the errors of label transfer beside those of other ways to use the same labels."""
    counts = sorted(result["labelled"], key=int)
    names = dict.fromkeys(name for count in counts for name in result["labelled"][count])
    rows = {name: {count: result["labelled"][count].get(name) for count in counts} for name in names}
    lines = ["## Label transfer", "", TRANSFER_HEAD]
    if "run" in result:
        recipe = f" --recipe {result['recipe']}" if "recipe" in result else ""
        lines += [TRANSFER_COMMAND.format(**{**result, "recipe": recipe}), ""]
    for key, (title, pattern) in TRANSFER.items():
        found = [Column(f"{count}/{key}", count, pattern, "") for count in counts]
        lines += [markdown_table(found, rows, corner=title), ""]
    return [*lines, made_on([result]), ""]


def poses_table(rows: Mapping[str, Any]) -> str:
    """Return tau of each row by action, its mean, and the mean cycle rate."""
    actions = list(next(iter(rows.values()))["by_action"])
    lines = {
        action: {name: row["by_action"][action]["tau"] for name, row in rows.items()} for action in actions
    }
    for title, key in (("**mean tau**", "tau"), ("mean cycle rate", "cycle_rate")):
        lines[title] = {name: row[key] for name, row in rows.items()}
    return markdown_table([Column(name, name, better="") for name in rows], lines, corner="tau")


def page(paths: list[Path]) -> str:
    """Return all result files as one page."""
    results = {path.stem: json.loads(path.read_text("utf-8")) for path in paths}
    lines = [HEAD]
    if "golf" in results:
        lines += golf_section(results["golf"])
    if "golf_search" in results:
        lines += search_section(results["golf_search"])
    if "backwards" in results:
        lines += backwards_section(results["backwards"])
    if "label_transfer" in results:
        lines += transfer_section(results["label_transfer"])
    if "penn_poses" in results:
        lines += ["## Penn Action poses", "", POSES_HEAD, poses_table(results["penn_poses"]["rows"]), ""]
    return "\n".join(lines)


def result_files() -> list[Path]:
    """Return the committed result files."""
    return sorted((ROOT / "results").glob("*.json"))


def main() -> None:
    """Write the page and draw its figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, nargs="*", help="result files (default: the committed ones)")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page (default: RESULTS.md)")
    arguments = parser.parse_args()
    paths = arguments.results or result_files()
    write_text(arguments.out, page(paths), overwrite=True)
    results = {path.stem: json.loads(path.read_text("utf-8")) for path in paths}
    for name, (draw, result) in FIGURES.items():
        if result in results and (picture := draw(results[result]["runs"])) is not None:
            write_bytes(arguments.out.parent / PICTURES / name, picture, overwrite=True)


if __name__ == "__main__":
    main()
