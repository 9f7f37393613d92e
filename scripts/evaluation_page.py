"""Write the tables of docs/reference/evaluation.md from the committed results.

Usage: python scripts/evaluation_page.py [COMPARISON/report.json]

The report of a comparison on golf swings, if given, becomes the result file of the golf tables first.
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "scripts"), str(ROOT / "benchmarks")]

from training_page import fill_places  # noqa: E402

from cycleback.evaluation import Report  # noqa: E402
from cycleback.evaluation.scores import LEGEND, TIME_ONLY, columns, notes  # noqa: E402
from cycleback.files import write_json, write_text  # noqa: E402
from results_page import split_table  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "evaluation.md"
GOLF = ROOT / "results" / "golf_compare.json"
PERTURBED = ("cropped", "speed", "lead-in")
SHOWN = {  # summary of the fold -> columns; the first columns are not folded
    "": columns(
        *("event_error_frames", "event_error_frames_dtw", "pce3", "pce3_dtw"),
        *("phase_accuracy", "progression", "tau"),
    ),
    "Event errors: means, milliseconds, within 1 frame": columns(
        *("event_error_mean_frames", "event_error_mean_frames_dtw", "event_error_ms", "event_error_ms_dtw"),
        *("pce1", "pce1_dtw"),
    ),
    "Few-shot, retrieval, order, cycles, confidence": columns(
        *("few_shot1", "precision5", "tau_a", "cycle_rate", "cycle_rate_three", "confidence_auroc")
    ),
    "Event errors of perturbed videos": [
        column
        for kind in PERTURBED
        for column in columns(
            "event_error_frames", "event_error_frames_dtw", under=f"robust/{kind}", group=kind
        )
    ],
}
DETAILS = ("by_action", "event_errors", "event_error_by_event", "calibration", "progression_by_event")


def shorten(report: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a comparison's report that the page needs."""
    rows = {
        name: {
            "seconds": row["seconds"],
            "val": without_details(row["report"]),
            **{part: without_details(found) for part, found in row["splits"].items()},
        }
        for name, row in report["rows"].items()
    }
    return {"command": report["how"]["command"], "rows": rows}


def without_details(report: dict[str, Any]) -> dict[str, Any]:
    """Return the scores, without lists for plots."""
    return {key: value for key, value in report.items() if key not in DETAILS}


def golf_table(part: str) -> str:
    """Return all rows on one held-out part."""
    rows = json.loads(GOLF.read_text("utf-8"))["rows"]
    reports = {name: Report.from_json(row[part]) for name, row in rows.items()}
    table = split_table(SHOWN, {name: report.to_json() for name, report in reports.items()}, corner=part)
    return "\n\n".join([table, LEGEND.format(baseline=TIME_ONLY), *notes(reports)])


def tables() -> dict[str, str]:
    """Return place in the page -> its table."""
    return {"golf": golf_table("val"), "golf-slow": golf_table("val_slow")}


def main() -> None:
    """Write the page."""
    if len(sys.argv) > 1:
        report = json.loads(Path(sys.argv[1]).read_text("utf-8"))
        write_json(GOLF, shorten(report), overwrite=True)
    write_text(PAGE, fill_places(PAGE.read_text("utf-8"), tables()), overwrite=True)


if __name__ == "__main__":
    main()
