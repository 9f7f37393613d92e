"""Write RESULTS.md from the committed result files.

Example:
    python benchmarks/results_page.py
"""

import argparse
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "RESULTS.md"
COLUMNS = {
    "event_error_frames": ("event error, frames", "{:.1f}"),
    "event_error_ms": ("ms", "{:.0f}"),
    "event_error_frames_dtw": ("by DTW, frames", "{:.1f}"),
    "pce1": ("PCE@1", "{:.3f}"),
    "pce3": ("PCE@3", "{:.3f}"),
    "progression": ("progression", "{:.3f}"),
    "tau": ("tau", "{:.3f}"),
    "cycle_rate": ("cycle rate", "{:.3f}"),
}
FRACTIONS = ("0.1", "0.5", "1.0")
POSES = "penn_poses"
POSES_HEAD = """The paper's 13 actions on the official split, 2-D poses instead of pictures
(`benchmarks/penn_poses.py`). *joint* is one model of all actions, *own* one an action. There are no phase
labels, so nothing here says that a match is right."""
HEAD = """# Results

Made by `python benchmarks/results_page.py` from `results/*.json`, which
`benchmarks/reproduce.py` writes. Every table has the row *time-only* (embedding = frame / length, no
pixels): a method below it in a column has learned nothing there. Event error is the median distance at
which a key event lands when it is carried to another held-out video by its nearest neighbour; phase
accuracy is that of a logistic regression trained on 10 / 50 / 100 % of the labelled training videos.
"""


def table(rows: dict[str, Any], part: str) -> list[str]:
    """One held-out part as Markdown."""
    titles = [title for title, _ in COLUMNS.values()]
    lines = [f"| {part} | " + " | ".join([*titles, "phase accuracy", "minutes", "device"]) + " |"]
    lines.append("|---|" + "---|" * (len(titles) + 3))
    for name, row in rows.items():
        scores = row[part]
        cells = [pattern.format(scores[key]) for key, (_, pattern) in COLUMNS.items()]
        shares = scores["phase_accuracy_by_fraction"]
        cells.append(" / ".join(f"{shares[share]:.3f}" for share in FRACTIONS if share in shares) or "–")
        timed = row["minutes"] > 0 and "CPU" not in row["device"]  # shared processors tell no time
        cells += [f"{row['minutes']:.1f}" if timed else "–", row["device"]]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


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
    lines = [HEAD]
    for path in paths:
        result = json.loads(path.read_text("utf-8"))
        if path.stem == POSES:
            lines += ["## Penn Action poses", "", POSES_HEAD, "", *poses_table(result["rows"]), ""]
        if "recipe" not in result:  # the others have pages of their own
            continue
        rows = result["rows"]
        parts = [key for key, value in next(iter(rows.values())).items() if isinstance(value, dict)]
        lines += [f"## {path.stem}", "", f"Recipe: `{' '.join(result['recipe'])}`", ""]
        for part in parts:
            lines += [*table(rows, part), ""]
    return "\n".join(lines)


def result_files() -> list[Path]:
    """The committed results."""
    return sorted((ROOT / "results").glob("*.json"))


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    PAGE.write_text(page(result_files()), "utf-8")


if __name__ == "__main__":
    main()
