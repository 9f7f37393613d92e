"""Write the tables of docs/evaluation.md from the committed results.

Usage: python scripts/evaluation_page.py [COMPARISON/report.json]

With the report of a comparison on golf swings, keep what the page needs of it as a result first.
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "scripts"), str(ROOT / "benchmarks")]

from training_page import filled  # noqa: E402

from cycleback.comparison.rows import report_from_json  # noqa: E402
from cycleback.evaluation import to_markdown  # noqa: E402
from results_page import poses_table  # noqa: E402

PAGE = ROOT / "docs" / "evaluation.md"
GOLF = ROOT / "results" / "golf_compare.json"
POSES = ROOT / "results" / "penn_poses.json"
DETAILS = ("by_action", "event_errors", "event_error_by_event", "calibration", "progression_by_event")
ORDER = ("tcc+tcn", "tcn", "tcc", "sal", "supervised", "imagenet", "random", "time")
NAMES = {"imagenet": "frozen base", "random": "random encoder", "time": "time-only"}


def kept(report: dict[str, Any]) -> dict[str, Any]:
    """What the page needs of a comparison's report."""
    rows = {
        name: {
            "seconds": row["seconds"],
            "val": without_details(row["report"]),
            **{part: without_details(found) for part, found in row["parts"].items()},
        }
        for name, row in report["rows"].items()
    }
    return {"command": report["how"]["command"], "rows": rows}


def without_details(report: dict[str, Any]) -> dict[str, Any]:
    """The scores, without lists for plots."""
    return {key: value for key, value in report.items() if key not in DETAILS}


def golf_table(part: str) -> str:
    """All rows on one held-out part."""
    rows = json.loads(GOLF.read_text("utf-8"))["rows"]
    reports = {NAMES.get(name, name): report_from_json(rows[name][part]) for name in ORDER if name in rows}
    return to_markdown(reports).strip()


def tables() -> dict[str, str]:
    """Name of a place in the page -> what stands there."""
    poses = poses_table(json.loads(POSES.read_text("utf-8"))["rows"])
    return {"golf": golf_table("val"), "golf-slow": golf_table("val_slow"), "poses": "\n".join(poses)}


def main() -> None:
    """Make all."""
    if len(sys.argv) > 1:
        report = json.loads(Path(sys.argv[1]).read_text("utf-8"))
        GOLF.write_text(json.dumps(kept(report), indent=1) + "\n", "utf-8")
    PAGE.write_text(filled(PAGE.read_text("utf-8"), tables().items()), "utf-8")


if __name__ == "__main__":
    main()
