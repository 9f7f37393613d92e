"""Write RESULTS.md from the committed result files, and draw its figures.

Example:
    python benchmarks/results_page.py
"""

import argparse
import json
import shlex
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cycleback.evaluation.scores import Column, columns, known_columns, markdown_table
from cycleback.files import write_bytes, write_text
from result_file import group_seeds, parts_of
from results_figures import BASES, FIGURES, of_base
from rows import ROWS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "RESULTS.md"
PICTURES = "docs/images"  # beside the page
WIDTH = 100  # of a line of text


def exact_columns(*keys: str, under: str = "", group: str = "") -> list[Column]:
    """Return columns of scores with three decimals of tau: seeds differ by more."""
    found = columns(*keys, under=under, group=group)
    return [replace(c, pattern="{:.3f}") if c.pattern == "{:.4f}" else c for c in found]


MINUTES, SEEDS = Column("minutes", "minutes", "{:.1f}", ""), Column("seeds", "seeds", "{}", "")
PHASES = {  # share of the labels -> column
    share: replace(
        columns(f"phase_accuracy_by_fraction/{key}")[0], title=f"phase accuracy, {share} % of labels"
    )
    for share, key in ((10, "0.1"), (50, "0.5"), (100, "1.0"))
}
EVENTS = ("event_error_ms", "event_error_ms_dtw", "pce3", "pce3_dtw")
GOLF = {  # summary of the fold -> columns; the first columns are not folded
    "": [*exact_columns(*EVENTS), PHASES[10], *exact_columns("progression", "tau")],
    "{part}: more labels, within 1 frame, precision, minutes, seeds": [
        *(PHASES[50], PHASES[100], *exact_columns("pce1", "pce1_dtw", "precision5")),
        *(MINUTES, SEEDS),
    ],
}
SEARCH = {
    "": [
        *exact_columns(*EVENTS, under="val"),
        replace(PHASES[10], key=f"val/{PHASES[10].key}"),
        *exact_columns("event_error_ms", "event_error_ms_dtw", under="val_slow", group="val_slow"),
    ],
    "The search: all labels, progression, tau, minutes": [
        replace(PHASES[100], key=f"val/{PHASES[100].key}"),
        *exact_columns("progression", "tau", under="val"),
        MINUTES,
    ],
}
TRANSFER = {
    "median_ms": ("median error in ms, by labelled videos", "{:.0f}"),
    "pce1": ("within 1 frame", "{:.3f}"),
    "pce3": ("within 3 frames", "{:.3f}"),
    "within_span": ("within 1/30 of the span", "{:.3f}"),
}
HEAD = """# Results

For readers who want the measured figures, and for those who want to measure them again. What they
mean is on the page [Reading the results](docs/results/results.md). This page is written from
`results/*.json` by

    python benchmarks/results_page.py

and the commands that made those files are beside the tables. A table that compares methods has the
row *time-only*, which embeds a frame as its position in the video and sees no pixels. A cell with a
dagger (†) is not better than that row, so it shows no sign of learning. ± is the standard deviation
over seeds, where a row has several.
"""
GOLF_HEAD = """\
379 training videos, 191 held-out videos at full speed (*val*) and 50 held-out videos in slow motion
(*val_slow*), with 8 key events each. The videos are prepared by

    cycleback data prepare golfdb downloads/golfdb golf

- **Event error** is the median distance from the truth of a key event that is mapped to another
  held-out video, by nearest neighbour or by dynamic time warping (DTW). **Within k frames** is the
  share of key events that land at most that far off (PCE@k).
- **Phase accuracy** is that of a logistic regression trained on 10, 50 or 100 % of the labelled
  training videos.
- **Precision@5** is the share of the 5 nearest frames of other videos that are in the same phase.
- **Minutes** are those of training, on a GPU.
- *untrained* is the encoder before training. *frozen* is its base alone, averaged over nine parts
  of the picture. *supervised* was trained with the phase labels of all training videos. The other
  rows are sums of losses and were trained without labels.
"""
RESTARTS_HEAD = """`cycleback train` looks at up to 16 held-out videos at the end. If more
than 5 % of their pairs are matched backwards (tau-b of nearest neighbours below -0.5), it trains
again once and keeps the better training. On pose sequences of the paper's 13 actions
(`{recipe}`, {updates} updates):
"""

BACKWARDS_HEAD = """![pairs with negative tau](docs/images/golf-backwards.svg)

A cycle to another video and back ends where it started even if the other video is matched from its
end to its beginning: cycles have no direction of time. The first updates decide which way two
videos that look different are matched, and swings are filmed from the front and from behind.
`benchmarks/backwards.py` trains `{recipe}` for {updates} updates and matches {videos} held-out
videos with each other. The table shows the mean of Kendall's tau and the share of pairs with a
negative tau. The *order* loss is zero unless matches run backwards.
"""
FIGURE_TEXT = """![phase accuracy against the number of labelled videos](docs/images/golf-few-shot.svg)

Phase accuracy on *val* with the labels of a few training videos: the mean of 50 draws for up to 10
videos, one draw for 10 and for 50 % of all videos, then all videos. *supervised* was trained with
all labels. Bands reach from the lowest seed to the highest.
"""
SEARCH_HEAD = """\
The effect of changes to a recipe, on *val* and *val_slow*. Each was trained once (TCC + TCN, seed
0), and another seed changes a figure by up to one frame or 0.02. A row lists the settings that
differ from the recipe.
"""
TRANSFER_HEAD = """\
Key events found in the held-out golf videos, by the number of labelled training videos. *transfer*
maps the labels by alignment, *supervised* is trained on them, and `benchmarks/label_transfer.py`
describes the other rows.
"""
SETS_HEAD = """\
The same on other data sets, by the number of labelled videos. *transfer* has an encoder that
`cycleback train DIR -o runs/DIR` trained on the set by default settings; where these keep the
untrained streams, both rows are the same. Events are found in the part *val* of *robot*; the
gestures have no parts, so there they are found in all videos that are not labelled.
"""
POSES_HEAD = """\
The paper's 13 actions on the official split, with 2-D poses instead of pictures. *joint* is one
model of all actions, *own* is one model per action. The poses have no phase labels, so the table
shows only whether matches are in order, not whether they are right.

    cycleback data prepare penn-poses downloads/penn_action_poses penn
    python benchmarks/penn_poses.py penn --out results/penn_poses.json
"""


def split_table(
    parts: Mapping[str, Sequence[Column]],
    rows: Mapping[str, Mapping[str, Any]],
    *,
    corner: str,
    titles: Mapping[str, str] | None = None,
) -> str:
    """Return one table per part, with the same rows; a part with a summary is folded below it."""
    tables = []
    for summary, found in parts.items():
        if not known_columns(found, rows):
            continue
        table = markdown_table(found, rows, corner=corner, titles=titles)
        fold = f'<details markdown="1">\n<summary>{summary}</summary>\n\n{table}\n\n</details>'
        tables.append(fold if summary else table)
    return "\n\n".join(tables)


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
    parts = {summary.format(part=part): shown for summary, shown in GOLF.items()}
    return split_table(parts, found, corner=part)


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


def wrap_command(command: str) -> str:
    """Return a command as an indented block, continued with backslashes between its words."""
    lines = ["   "]
    for word in shlex.split(command):
        quoted = shlex.quote(word)
        if len(lines[-1]) + len(quoted) + 3 > WIDTH:
            lines.append("     ")
        lines[-1] += f" {quoted}"
    return " \\\n".join(lines)


def made_on(runs: Iterable[Mapping[str, Any]], *, more: str = "") -> str:
    """Say where runs were made, and `more`."""
    found = list(runs)
    devices, versions, commits = (
        joint.join(dict.fromkeys(str(run[key]) for run in found if key in run))
        for key, joint in (("device", " and "), ("torch", " and "), ("commit", ", "))
    )
    return textwrap.fill(f"Made on {devices} with torch {versions} at commit {commits}.{more}", WIDTH)


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
        lines += [f"### {title}", "", *map(wrap_command, commands(runs, base)), ""]
        for part in parts_of(next(iter(rows.values()))):
            lines += [golf_table(rows, part, untimed), ""]
        lines += [made_on(runs.values(), more=_projection(runs.values())), ""]
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
    table = split_table(SEARCH, rows, corner="recipe, change", titles=titles)
    return ["### The search", "", SEARCH_HEAD, table, "", made_on(runs), ""]


def backwards_section(result: Mapping[str, Any]) -> list[str]:
    """Return how many pairs of videos are matched backwards, which shows as a negative tau."""
    runs = result["runs"]
    seeds = ",".join(sorted({key.rpartition("/")[2] for key in runs}, key=int))
    command = f"    python benchmarks/backwards.py golf --seeds {seeds} --out results/backwards.json"
    lines = ["## Forwards or backwards", "", BACKWARDS_HEAD.format(**result), command, ""]
    lines += [*backwards_table(runs), "", made_on(runs.values()), ""]
    return lines + (restarts_section(result["restarts"]) if "restarts" in result else [])


def restarts_section(section: Mapping[str, Any]) -> list[str]:
    """Return how often training runs backwards, action by action, and what becomes of it."""
    runs = section["runs"]
    seeds = ",".join(sorted({key.rpartition("/")[2] for key in runs}))
    command = (
        f"    python benchmarks/backwards.py penn --restarts --seeds {seeds} --out results/backwards.json"
    )
    head = RESTARTS_HEAD.format(**{key: section[key] for key in ("recipe", "updates")})
    return [head, command, "", *restarts_table(runs), "", made_on(runs.values()), ""]


def restarts_table(runs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return one line per action of the runs `action/seed`, with the values of all seeds."""
    lines = [
        "| action | first training, each seed | kept, each seed | trained again |",
        "|---|---:|---:|---|",
    ]
    for action, found in group_seeds(runs).items():
        before, after = (", ".join(f"{run[key]:.2f}" for run in found) for key in ("before", "after"))
        settings = ", ".join(dict.fromkeys(f"`{run['setting']}`" for run in found if run["setting"]))
        lines.append(f"| {action} | {before} | {after} | {settings or '-'} |")
    return lines


def backwards_table(runs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return one line per setting and loss of the runs `setting/loss/seed`, with the values of all seeds."""
    lines = ["| batch | loss | tau, each seed | pairs with negative tau, each seed |", "|---|---|---:|---:|"]
    for name, found in group_seeds(runs).items():
        setting, _, loss = name.rpartition("/")
        taus, shares = (", ".join(f"{run[key]:.2f}" for run in found) for key in ("tau", "backwards"))
        lines.append(f"| {setting} | {loss} | {taus} | {shares} |")
    return lines


def transfer_section(result: Mapping[str, Any]) -> list[str]:
    """Return the errors of label transfer beside those of other ways to use the same labels."""
    counts = sorted(result["labelled"], key=int)
    rows = rows_by_count(result["labelled"])
    lines = ["## Label transfer", "", TRANSFER_HEAD]
    if "run" in result:
        lines += [wrap_command(transfer_command(result)), ""]
    for key, (title, pattern) in TRANSFER.items():
        found = [Column(f"{count}/{key}", count, pattern, "") for count in counts]
        if known_columns(found, rows):
            lines += [markdown_table(found, rows, corner=title), ""]
    if "sets" in result:
        lines += [SETS_HEAD, *sets_tables(result["sets"])]
    return [*lines, made_on([result]), ""]


def rows_by_count(labelled: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return row -> number of labelled videos -> scores, of number -> row -> scores."""
    counts = sorted(labelled, key=int)
    names = dict.fromkeys(name for count in counts for name in labelled[count])
    return {name: {count: labelled[count].get(name) for count in counts} for name in names}


def transfer_command(result: Mapping[str, Any]) -> str:
    """Return the command that makes the result file."""
    words = ["python", "benchmarks/label_transfer.py", "golf", "--run", result["run"]]
    words += [word for key in ("recipe", "span") if key in result for word in (f"--{key}", result[key])]
    words += ["--updates", str(result["updates"])]
    words += [word for name in result.get("sets", ()) for word in ("--set", f"{name}=runs/{name}")]
    return shlex.join([*words, "--out", "results/label_transfer.json"])


def sets_tables(sets: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[str]:
    """Return one table per data set: the shares within 1 and 3 frames, by the number of labelled videos."""
    lines = []
    for name, labelled in sets.items():
        found = [
            Column(f"{count}/{key}", TRANSFER[key][0], TRANSFER[key][1], "", group=count)
            for key in ("pce1", "pce3")
            for count in sorted(labelled, key=int)
        ]
        lines += [markdown_table(found, rows_by_count(labelled), corner=name), ""]
    return lines


def poses_table(rows: Mapping[str, Any]) -> str:
    """Return tau of each row by action, its mean, and the mean cycle rate."""
    actions = list(next(iter(rows.values()))["by_action"])
    lines = {
        action: {name: row["by_action"][action]["tau"] for name, row in rows.items()} for action in actions
    }
    for title, key in (("**mean tau**", "tau"), ("mean cycle rate", "cycle_rate")):
        lines[title] = {name: row[key] for name, row in rows.items()}
    own = [name for name in rows if name.startswith("own ")]
    parts = {
        "": [Column(name, name, better="") for name in rows if name not in own],
        "One model per action": [Column(name, name, better="") for name in own],
    }
    return split_table(parts, lines, corner="tau")


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
