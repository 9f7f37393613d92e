"""Print the README's table of results from the reports of finished demos.

Usage: python scripts/readme_tables.py demo/report.json demo1/report.json
"""

import json
import sys
from pathlib import Path

from cycleback.evaluation.scores import columns

SCORES = (
    *("event_error_frames", "event_error_frames_dtw", "pce1", "pce3"),
    *("phase_accuracy", "tau", "cycle_rate"),
)


def headings() -> str:
    """Return the first line of the table."""
    return "| | " + " | ".join(column.heading for column in columns(*SCORES)) + " |"


def main() -> None:
    """Print one table; a cell shows the score of each demo, separated by slashes."""
    reports = [json.loads(Path(path).read_text("utf-8")) for path in sys.argv[1:]]
    shown = columns(*SCORES, brief=True)
    print(headings())
    print("|---|" + "---|" * len(shown))
    for row in reports[0]["rows"]:
        cells = (" / ".join(column.text(report["rows"][row]) for report in reports) for column in shown)
        print(f"| {row} | " + " | ".join(cells) + " |")
    print("\n" + " / ".join(f"{report['seconds']:.0f}" for report in reports) + " s in total")


if __name__ == "__main__":
    main()
