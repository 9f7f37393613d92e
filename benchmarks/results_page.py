"""Write RESULTS.md from the committed result files, and draw its figure.

Example:
    python benchmarks/results_page.py
"""

import argparse
import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from results_figures import BASES, FIGURES, of_base

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "RESULTS.md"
PICTURES = "docs/images"  # beside the page
COLUMNS = {
    "phase_accuracy_by_fraction/0.1": ("phase accuracy, 10 %", 3),
    "phase_accuracy_by_fraction/0.5": ("50 %", 3),
    "phase_accuracy_by_fraction/1.0": ("100 %", 3),
    "progression": ("progression", 3),
    "tau": ("tau", 3),
    "event_error_ms": ("event error, ms", 0),
    "event_error_ms_dtw": ("by DTW", 0),
    "pce1": ("PCE@1", 3),
    "pce3": ("PCE@3", 3),
    "pce1_dtw": ("PCE@1 by DTW", 3),
    "pce3_dtw": ("PCE@3 by DTW", 3),
    "precision5": ("precision@5", 3),
}
ORDER = (
    *("time-only", "random", "frozen", "supervised", "sal", "tcn", "tcc", "tcc-classification", "tcc-mse"),
    *("tcc-stochastic", "tcc+sal", "tcc+tcn", "tcc+order", "tcc+tcn+order"),
)
HEAD = """# Results

Made by `python benchmarks/results_page.py` from `results/*.json`; the commands that made those stand with the
tables. Every table has the row *time-only* (embedding = frame / length, no pixels): a method below it in a
column has learned nothing there. ± is the standard deviation over seeds, where a row has several.
"""
GOLF_HEAD = """379 training videos, 191 held-out ones at full speed (*val*) and 50 in slow motion
(*val_slow*), with 8 key events each. Phase accuracy is that of a logistic regression trained on 10 / 50 /
100 % of the labelled training videos. Event error is the median distance at which a key event lands when it
is carried to another held-out video, by nearest neighbour or by dynamic time warping; PCE@k is the share of
them that land within k frames. Precision@5 is the share of the 5 nearest frames of other videos that are in
the same phase. *random* is the encoder before training; *frozen* is its base alone, averaged over nine
parts of the picture; *supervised* was trained with the phase labels of all training videos, the others
without any. Minutes are of training. The videos are prepared by

    cycleback data prepare golfdb downloads/golfdb golf
"""
BACKWARDS_HEAD = """![pairs matched backwards](docs/images/golf-backwards.svg)

A walk to another video and back lands where it started just as well if the other video is
matched from its end to its beginning: cycles have no direction of time. Where videos look different from each
other, the first updates decide, and swings are filmed from the front and from behind.
`benchmarks/backwards.py` trains `{recipe}` for {updates} updates and matches {videos} held-out videos with
each other: the mean of Kendall's tau, and the share of pairs where it is negative. The loss *order* costs
something only where matches run backwards.
"""
FIGURE_TEXT = """![phase accuracy against the number of labelled videos](docs/images/golf-few-shot.svg)

Phase accuracy on *val* with the labels of a few training videos: up to 10 videos the mean of 50 draws, then
one draw of 10 and of 50 % of all videos, then all. *supervised* has seen all labels before. Bands reach from
the lowest seed to the highest.
"""
SEARCH_HEAD = """What changes of a recipe give, each trained once (TCC + TCN, seed 0): differences of a frame,
or of 0.02, are within what another seed does. Settings are those that differ from the recipe as it is now."""
SEARCHED = {
    **{
        f"val/{key}": COLUMNS[key]
        for key in (
            *("phase_accuracy_by_fraction/0.1", "phase_accuracy_by_fraction/1.0", "progression", "tau"),
            *("event_error_ms", "event_error_ms_dtw", "pce3", "pce3_dtw"),
        )
    },
    "val_slow/event_error_ms": ("val_slow: event error, ms", 0),
    "val_slow/event_error_ms_dtw": ("by DTW", 0),
    "minutes": ("minutes", 1),
}
TRANSFER_HEAD = """Key events found in the held-out golf videos when so many training videos are labelled
(`benchmarks/label_transfer.py`): *transfer* carries the labels over by alignment, *supervised* is trained on
them. The other rows are described in that file."""
TRANSFER_COMMAND = """    python benchmarks/label_transfer.py golf --run {run}{recipe} --updates {updates} \\
      --out results/label_transfer.json"""
TRANSFER = {
    "median_ms": ("median error in ms, by labelled videos", 0),
    "pce1": ("PCE@1", 3),
    "pce3": ("PCE@3", 3),
}
POSES_HEAD = """The paper's 13 actions on the official split, 2-D poses instead of pictures. *joint* is
one model of all actions, *own* one an action. No phase labels: nothing here says that a match is right.

    cycleback data prepare penn-poses downloads/penn_action_poses penn
    python benchmarks/penn_poses.py penn --out results/penn_poses.json"""


def cell(value: Any, digits: int, *, seeds: int = 1) -> str:
    """A number, or [mean, spread] over seeds, as text; a dash where there is none."""
    if value is None:
        return "–"
    mean, spread = value if isinstance(value, list) else (value, 0.0)
    return f"{mean:.{digits}f}" + (f" ± {spread:.{digits}f}" if seeds > 1 else "")


def looked_up(scores: Mapping[str, Any], path: str) -> Any:
    """The score at a/b in nested scores, or None."""
    found: Any = scores
    for key in path.split("/"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def markdown(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Lines of a table, numbers to the right."""
    titles = list(titles)
    head = ["| " + " | ".join(titles) + " |", "|---|" + "---:|" * (len(titles) - 1)]
    return [*head, *("| " + " | ".join(cells) + " |" for cells in rows)]


def golf_table(rows: Mapping[str, Any], part: str, untimed: set[str]) -> list[str]:
    """The rows of one base on one held-out part; minutes are not told of `untimed` rows."""
    titles = [part, *(title for title, _ in COLUMNS.values()), "minutes", "seeds"]
    lines = []
    for name in sorted(rows, key=ORDER.index):
        row, seeds = rows[name][part], rows[name]["seeds"]
        cells = [cell(looked_up(row, path), d, seeds=seeds) for path, (_, d) in COLUMNS.items()]
        minutes = None if name in untimed else rows[name]["minutes"]
        lines.append([name, *cells, cell(minutes, 1, seeds=seeds), str(seeds)])
    return markdown(titles, lines)


def commands(runs: Mapping[str, Any], base: str) -> list[str]:
    """The commands that make the runs of a base: one for all rows that share settings and seeds."""
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
    """Where runs were made, in words."""
    found = list(runs)
    devices, versions, commits = (
        " and ".join(dict.fromkeys(str(run[key]) for run in found if key in run))
        for key in ("device", "torch", "commit")
    )
    return f"Made on {devices} with torch {versions} at commit {commits}."


def golf_section(result: Mapping[str, Any]) -> list[str]:
    """Tables of each base and part, and the commands that made them."""
    lines = ["## GolfDB", "", GOLF_HEAD]
    if any("few_shot" in run["val"] for run in result["runs"].values()):
        lines.append(FIGURE_TEXT)
    for base, title in BASES.items():
        rows, runs = of_base(result["rows"], base), of_base(result["runs"], base)
        if not rows:
            continue
        slow = {key.rpartition("/")[0] for key, run in runs.items() if "CPU" in run["device"]}
        untimed = {name for name in rows if name in slow or not any(_listed(rows[name]["minutes"]))}
        lines += [f"### {title}", "", *(f"    {line}" for line in commands(runs, base)), ""]
        for part in [key for key, value in next(iter(rows.values())).items() if isinstance(value, dict)]:
            lines += [*golf_table(rows, part, untimed), ""]
        lines += [made_on(runs.values()) + _narrowed(runs.values()), ""]
    return lines


def search_section(result: Mapping[str, Any]) -> list[str]:
    """One row for each change of a recipe that was tried."""
    runs = sorted(result["runs"].values(), key=lambda run: (run["recipe"][0], len(run["recipe"])))
    rows = []
    for run in runs:
        recipe, *overrides = run["recipe"]
        name = ", ".join([f"`{recipe}`", *(f"`{override}`" for override in overrides)])
        shown = {**run, "minutes": run["minutes"] if "CPU" not in run["device"] else None}
        rows.append([name, *(cell(looked_up(shown, path), d) for path, (_, d) in SEARCHED.items())])
    titles = ["recipe, change", *(title for title, _ in SEARCHED.values())]
    return ["### The search", "", SEARCH_HEAD, "", *markdown(titles, rows), "", made_on(runs), ""]


def backwards_section(result: Mapping[str, Any]) -> list[str]:
    """How often videos are matched backwards."""
    seeds, text = seeds_of(result["runs"]), BACKWARDS_HEAD.format(**result)
    command = f"    python benchmarks/backwards.py golf --seeds {seeds} --out results/backwards.json"
    return [
        "## Forwards or backwards",
        "",
        text,
        "",
        command,
        "",
        *backwards_table(result["runs"]),
        "",
        made_on(result["runs"].values()),
        "",
    ]


def backwards_table(runs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One row for each setting and loss of the runs `setting/loss/seed`, with the values of all seeds."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for key, run in runs.items():
        groups.setdefault(key.rpartition("/")[0], []).append(run)
    rows = []
    for name, found in groups.items():
        setting, _, loss = name.rpartition("/")
        taus, shares = (", ".join(f"{run[key]:.2f}" for run in found) for key in ("tau", "backwards"))
        rows.append([setting, loss, taus, shares])
    return markdown(["a batch", "loss", "tau, each seed", "pairs matched backwards, each seed"], rows)


def seeds_of(runs: Mapping[str, Any]) -> str:
    """The seeds at the end of the keys, separated by commas."""
    return ",".join(sorted({key.rpartition("/")[2] for key in runs}, key=int))


def _narrowed(runs: Iterable[Mapping[str, Any]]) -> str:
    shares = [run["variance_kept"] for run in runs if "variance_kept" in run]
    text = " Of the frozen base, the 512 main directions of the training frames: {:.0%} of the variance."
    return text.format(shares[0]) if shares else ""


def _listed(value: Any) -> list[float]:
    return value if isinstance(value, list) else [value]


def transfer_section(result: Mapping[str, Any]) -> list[str]:
    """Key events by label transfer beside those of other ways to use the same labels."""
    counts = sorted(result["labelled"], key=int)
    ways = dict.fromkeys(way for count in counts for way in result["labelled"][count])
    lines = ["## Label transfer", "", TRANSFER_HEAD, ""]
    if "run" in result:
        recipe = f" --recipe {result['recipe']}" if "recipe" in result else ""
        lines += [TRANSFER_COMMAND.format(**{**result, "recipe": recipe}), ""]
    for key, (title, digits) in TRANSFER.items():
        rows = [
            [way, *(cell(looked_up(result["labelled"], f"{n}/{way}/{key}"), digits) for n in counts)]
            for way in ways
        ]
        lines += [*markdown([title, *counts], rows), ""]
    return [*lines, made_on([result]), ""]


def poses_table(rows: dict[str, Any]) -> list[str]:
    """Tau of each row, by action, and its mean; the mean cycle rate."""
    actions = list(next(iter(rows.values()))["by_action"])
    lines = ["| tau | " + " | ".join(rows) + " |", "|---|" + "---:|" * len(rows)]
    for action in actions:
        cells = (f"{row['by_action'][action]['tau']:.3f}" for row in rows.values())
        lines.append(f"| {action} | " + " | ".join(cells) + " |")
    for title, key in (("**mean tau**", "tau"), ("mean cycle rate", "cycle_rate")):
        lines.append(f"| {title} | " + " | ".join(f"{row[key]:.3f}" for row in rows.values()) + " |")
    return lines


def page(paths: list[Path]) -> str:
    """All result files as one page."""
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
        lines += ["## Penn Action poses", "", POSES_HEAD, "", *poses_table(results["penn_poses"]["rows"]), ""]
    return "\n".join(lines)


def result_files() -> list[Path]:
    """The committed results."""
    return sorted((ROOT / "results").glob("*.json"))


def main() -> None:
    """Write the page and draw the figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, nargs="*", help="result files (default: the committed ones)")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page (default: RESULTS.md)")
    arguments = parser.parse_args()
    paths = arguments.results or result_files()
    arguments.out.write_text(page(paths), "utf-8")
    results = {path.stem: json.loads(path.read_text("utf-8")) for path in paths}
    for name, (draw, result) in FIGURES.items():
        if result in results and (picture := draw(results[result]["runs"])) is not None:
            target = arguments.out.parent / PICTURES / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(picture)


if __name__ == "__main__":
    main()
