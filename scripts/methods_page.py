"""Write the tables of docs/methods.md and all of docs/results/methods.md from results/methods.json.

Usage: python scripts/methods_page.py
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import Any

from cycleback.files import write_text
from cycleback.recipe import load_recipe

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "scripts")]

from small_folders_page import write_lines  # noqa: E402
from training_page import fill_places  # noqa: E402

from methods import BASELINES, CHOICES, ENCODERS, PENN, SETS, TIME_ONLY, TRAINED, UNTRAINED, summarize  # noqa: E402
from result_file import mean_and_spread  # noqa: E402

PAGE = ROOT / "docs" / "methods.md"
DETAILS = ROOT / "docs" / "results" / "methods.md"
RESULT = ROOT / "results" / "methods.json"
FIXED = (
    "data.context_scale=[1.0,1.0]"  # the setting of rows whose context frames are always equally far apart
)
DEFAULT = "match+tcc optimizer.num_updates=1000"  # the losses and the number of updates of the default recipe
DEFAULTS = {  # column -> encoder/row, in the table of the default recipe
    "neighbours": f"mlp/{DEFAULT}",
    "fixed stride": f"transformer/{DEFAULT} {FIXED}",
    "default": f"transformer/{DEFAULT}",
}
INPUTS = {"mlp": "transformer", "fused": "transformer", "finetuned": "frozen"}  # the same, untrained
MISSING = "–"
COUNTS = " ‡"  # after the name of a row that can count frames
ERROR, SHARE = "event_error_frames_dtw", "pce3_dtw"
OF_EVENTS = {ERROR: "event error ↓", "pce1_dtw": "within 1 ↑", SHARE: "within 3 ↑"}
OF_FRAMES = {
    "phase_accuracy": "phase accuracy ↑",
    "progression": "progression ↑",
    "tau": "tau ↑",
    "precision5": "retrieval ↑",
    "cycle_rate": "cycle rate ↑",
}
LINE = 100  # characters
HALF = 6  # columns of a table of sets
PERTURBED = ("cropped", "speed", "lead-in")
CHOSEN_BY = (SHARE, "phase_accuracy", "precision5", "cycle_rate")
STRIDE_SCORES = ("within 3", "other speed", "golf-slow")
ABOUT = {
    "golf": "60 swings of GolfDB to learn from, 32 others scored. Faces, clubs and views differ.",
    "golf-20": "The same 32 swings, 20 to learn from.",
    "golf-all": "The same 32 swings, all 379 to learn from.",
    "golf-slow": "60 swings in real time to learn from, 32 in slow motion scored.",
    "robot": "60 episodes of a robot arm to learn from, 32 others scored, at 7.5 frames per second.",
    "square": "A finger draws a square: 10 videos to learn from, 11 scored. They end where they begin.",
    "tick": "A finger draws a tick: 9 videos to learn from, 10 scored.",
    "pitches": "6 baseball pitches to learn from, 7 scored, by the moment of the catch or hit alone.",
    "pouring-easy": "Rendered: 16 videos to learn from, 8 scored.",
    "pouring-hard": "Rendered, with clutter, camera motion and reordered steps: 16 and 8 videos.",
    PENN: "Poses without pixels: 13 actions, 20 training and 12 test videos of each, one encoder for all. "
    "There are no key events: tau and cycle rate are all there is.",
}
TITLES = {
    "transformer": "streams, attention over the video",
    "mlp": "streams, neighbouring frames",
    "appearance": "frozen EfficientNet-Lite0 alone, neighbouring frames",
    "frozen": "frozen ResNet-50, the paper's embedder",
    "finetuned": "fine-tuned ResNet-50, the paper's embedder",
    "fused": "fine-tuned ResNet-50 beside motion and pose, attention over the video",
}
HEAD = """# Every method on every set

For those who want to see all cells behind [methods of the field](../methods.md), which explains the
rows and says what to use. *event error* is the median distance of a key event from the truth in
frames, *within 1* and *within 3* are the shares of key events at most so many frames off, both by
dynamic time warping. *cropped*, *speed* and *lead-in* are the share within 3 frames of the same
videos cut at both ends, played at another speed, and with a still picture in front: whatever
learned the clock loses there. *minutes* are those of the training: processor time on one core
without ResNet-50, wall time on an NVIDIA H200 with it. ‡: can count frames. ± is the standard
deviation over three seeds; rows without it have one. `results/methods.json` says of each cell on
which machine, with which versions and at which commit it was measured.

    python benchmarks/methods.py
    python benchmarks/methods.py --encoders frozen,finetuned,fused --device cuda
    python scripts/methods_page.py
"""

Cell = Mapping[str, Any]
Cells = Mapping[str, Cell]  # set/encoder/row -> scores, as [mean, spread] over seeds
Runs = Mapping[str, Any]  # set/encoder/row/seed -> scores


def write_value(value: Sequence[float] | None, seeds: int, digits: int = 3) -> str:
    """Return mean and spread over seeds, or a dash."""
    if value is None:
        return MISSING
    spread = f" ± {value[1]:.{digits}f}" if seeds > 1 else ""
    return f"{value[0]:.{digits}f}{spread}"


def find_key(name: str, encoder: str, row: str) -> str:
    """Return the key of a row of a set; baselines are measured once for all encoders of the same input."""
    sources = {TIME_ONLY: next(iter(ENCODERS)), UNTRAINED: INPUTS.get(encoder, encoder)}
    return f"{name}/{sources.get(row, encoder)}/{row}"


def of_set(cells: Cells, name: str, encoder: str) -> dict[str, Cell]:
    """Return the rows of a set, in the order of the benchmark, or none if nothing was trained."""
    found = {row: cells.get(find_key(name, encoder, row)) for row in (*BASELINES, *TRAINED)}
    known = {row: cell for row, cell in found.items() if cell is not None}
    return known if any(row in TRAINED for row in known) else {}


def write_title(row: str, cell: Cell) -> str:
    """Return the name of a row, marked if its embedder can count frames."""
    return row + (COUNTS if cell["can_count_frames"] else "")


def score_table(cells: Cells, name: str, encoder: str) -> str:
    """Return every score of every row of one set: those of key events, then those of single frames."""
    rows = of_set(cells, name, encoder)
    titles = [write_title(row, cell) for row, cell in rows.items()]
    perturbed = [kind for kind in PERTURBED if any(kind in cell["robust"] for cell in rows.values())]
    found = []
    for group, kinds in ((OF_EVENTS, perturbed), (OF_FRAMES, [])):
        scores = {s: title for s, title in group.items() if any(s in cell for cell in rows.values())}
        lines = []
        for title, cell in zip(titles, rows.values(), strict=True):
            texts = [write_value(cell.get(s), cell["seeds"], 1 if s == ERROR else 3) for s in scores]
            texts += [write_value(find_score(cell, kind), cell["seeds"]) for kind in kinds]
            minutes = [] if kinds else [write_value(cell["minutes"], 1, 2)]
            lines.append([title, *texts, *minutes])
        if scores:
            found.append(
                write_lines(lines, ["row", *scores.values(), *kinds, *([] if kinds else ["minutes"])])
            )
    return "\n\n".join(found)


def sets_table(cells: Cells, runs: Runs, encoder: str) -> str:
    """Return the share within 3 frames of every row on every set, and its mean."""
    names = [name for name in SETS if name not in CHOICES and of_set(cells, name, encoder)]
    lines = []
    for row in (*BASELINES, *TRAINED):
        found = [of_set(cells, name, encoder).get(row) for name in names]
        known = [cell for cell in found if cell is not None]
        if not known:
            continue
        texts = [MISSING if c is None else write_value(c[SHARE], c["seeds"]) for c in found]
        mean = mean_over_sets(runs, [find_key(name, encoder, row) for name in names])
        lines.append([write_title(row, known[0]), *texts, mean])
    columns = [*names, "mean"]
    halves = [range(len(columns))[:HALF], range(len(columns))[HALF:]]
    tables = [([[line[0], *(line[1 + i] for i in half)] for line in lines], half) for half in halves if half]
    return "\n\n".join(write_lines(found, ["row", *(columns[i] for i in half)]) for found, half in tables)


def find_score(scores: Mapping[str, Any], name: str) -> Any:
    """Return a score; one of a perturbation is its share within 3 frames."""
    return scores["robust"][name][SHARE] if name in PERTURBED else scores.get(name)


def mean_over_sets(runs: Runs, keys: Sequence[str], score: str = SHARE) -> str:
    """Return the mean of a score over sets, and its spread over the seeds that all sets have."""
    seeds = [seed for seed in range(10) if keys and all(f"{key}/{seed}" in runs for key in keys)]
    means = [fmean(find_score(runs[f"{key}/{seed}"], score) for key in keys) for seed in seeds]
    return write_value(mean_and_spread(means), len(means)) if means else MISSING


def networks_table(cells: Cells, name: str) -> str:
    """Return event error and share within 3 frames of every loss on every encoder."""
    encoders = [encoder for encoder in ENCODERS if of_set(cells, name, encoder)]
    lines = []
    for row in TRAINED:
        found = [cells.get(f"{name}/{encoder}/{row}") for encoder in encoders]
        if sum(cell is not None for cell in found) > 1:
            texts = [
                MISSING if c is None else f"{c[ERROR][0]:.1f}, {write_value(c[SHARE], c['seeds'])}"
                for c in found
            ]
            lines.append([row, *texts])
    return write_lines(lines, ["row", *encoders])


def default_table(cells: Cells, runs: Runs, scores: Mapping[str, str]) -> str:
    """Return scores of the default recipe and of what it was before; the mean is of the reported sets."""
    reported = [name for name in SETS if name not in CHOICES]
    names = [n for n in (*CHOICES, *reported) if all(f"{n}/{row}" in cells for row in DEFAULTS.values())]
    lines = []
    for name in names:
        found = [cells[f"{name}/{row}"] for row in DEFAULTS.values()]
        lines.append(
            [name, *(write_value(find_score(c, score), c["seeds"]) for score in scores for c in found)]
        )
    keys = [[f"{name}/{row}" for name in reported] for row in DEFAULTS.values()]
    lines.append(["mean", *(mean_over_sets(runs, k, score) for score in scores for k in keys)])
    return write_lines(lines, ["set", *(f"{title} {row}" for title in scores.values() for row in DEFAULTS)])


def strides_table(cells: Cells, runs: Runs) -> str:
    """Return what a drawn stride between context frames adds to each row, over the sets with key events."""
    names = [name for name in SETS if name not in CHOICES]
    lines = []
    for row in TRAINED:
        pair = [f"transformer/{row} {FIXED}", f"transformer/{row}"]
        if all(f"{name}/{each}" in cells for name in names for each in pair):
            keys = [[f"{name}/{each}" for name in names] for each in pair]
            texts = [mean_over_sets(runs, k, score) for score in (SHARE, "speed") for k in keys]
            slow = [cells[f"golf-slow/{each}"] for each in pair]
            texts += [write_value(cell[SHARE], cell["seeds"]) for cell in slow]
            lines.append([write_title(row, slow[0]), *texts])
    titles = [f"{title} ↑ {kind}" for title in STRIDE_SCORES for kind in ("fixed", "drawn")]
    return write_lines(lines, ["row", *titles])


def ranges_table(cells: Cells) -> str:
    """Return what ranges of the stride are worth on training videos alone."""
    lines = []
    for key in sorted(cells):
        place, _, row = key.partition("/match+tcc")
        if place != f"{CHOICES[0]}/transformer" or "num_updates" in row:
            continue
        found = [cells[f"{choice}/transformer/match+tcc{row}"] for choice in CHOICES]
        texts = [write_value(find_score(c, score), c["seeds"]) for score in (SHARE, "speed") for c in found]
        low, high = json.loads(row.partition("=")[2] or json.dumps(load_recipe().data.context_scale))
        lines.append([f"{low:g} to {high:g}" + ("" if row else ", the default"), *texts])
    titles = [f"{title} ↑ {choice}" for title in STRIDE_SCORES[:2] for choice in CHOICES]
    return write_lines(lines, ["factor", *titles])


def choice_table(cells: Cells) -> str:
    """Return what the settings of the losses that were tried are worth, on training videos alone."""
    lines = []
    for key, cell in sorted(cells.items()):
        row = key.removeprefix("golf-choice/mlp/")
        if row != key and "optimizer.num_updates" not in row:
            lines.append([f"`{row}`", *(write_value(cell[score], cell["seeds"]) for score in CHOSEN_BY)])
    return write_lines(lines, ["row and settings", *((OF_EVENTS | OF_FRAMES)[score] for score in CHOSEN_BY)])


def tables(cells: Cells, runs: Runs) -> dict[str, str]:
    """Return place in docs/methods.md -> its table."""
    return {
        "golf": score_table(cells, "golf", "transformer"),
        "sets": sets_table(cells, runs, "transformer"),
        "appearance": sets_table(cells, runs, "appearance"),
        "networks": networks_table(cells, "golf"),
        "penn": score_table(cells, PENN, "transformer"),
        "default": "\n\n".join(
            default_table(cells, runs, scores)
            for scores in (
                {SHARE: "within 3 ↑", "speed": "other speed ↑"},
                {key: OF_FRAMES[key] for key in ("phase_accuracy", "progression")},
            )
        ),
        "strides": strides_table(cells, runs),
        "ranges": ranges_table(cells),
        "choice": choice_table(cells),
    }


def details(cells: Cells) -> str:
    """Return the text of docs/results/methods.md."""
    parts = [HEAD]
    for name in (*(name for name in SETS if name not in CHOICES), PENN):
        found = [encoder for encoder in ENCODERS if of_set(cells, name, encoder)]
        if found:
            parts.append(f"## {name}\n\n{fill(ABOUT[name], LINE)}\n")
        parts += [f"### {name}: {TITLES[e]}\n\n{score_table(cells, name, e)}\n" for e in found]
    return "\n".join(parts)


def read_result() -> tuple[Cells, Runs]:
    """Return the scores over seeds, and those of each seed."""
    runs: Runs = json.loads(RESULT.read_text("utf-8"))["runs"]
    return summarize(runs), runs


def main() -> None:
    """Write the pages."""
    cells, runs = read_result()
    write_text(PAGE, fill_places(PAGE.read_text("utf-8"), tables(cells, runs)), overwrite=True)
    write_text(DETAILS, details(cells), overwrite=True)


if __name__ == "__main__":
    main()
