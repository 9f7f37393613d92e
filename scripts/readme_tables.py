"""Print the README's table of results from the reports of finished demos.

Usage: python scripts/readme_tables.py demo/report.json demo1/report.json
"""

import json
import sys
from pathlib import Path

COLUMNS = {
    "event_error_frames": ("event error, frames", "{:.1f}"),
    "event_error_ms": ("ms", "{:.0f}"),
    "event_error_frames_dtw": ("by DTW, frames", "{:.1f}"),
    "pce1": ("within 1", "{:.0%}"),
    "pce3": ("within 3", "{:.0%}"),
    "phase_accuracy": ("phase accuracy", "{:.0%}"),
    "cycle_rate": ("cycle rate", "{:.0%}"),
    "tau": ("tau", "{:.3f}"),
}


def main() -> None:
    """One table a row of which shows all demos, separated by slashes."""
    reports = [json.loads(Path(path).read_text("utf-8")) for path in sys.argv[1:]]
    print("| | " + " | ".join(title for title, _ in COLUMNS.values()) + " |")
    print("|---|" + "---|" * len(COLUMNS))
    for row in reports[0]["rows"]:
        cells = (
            " / ".join(pattern.format(report["rows"][row][key]) for report in reports)
            for key, (_, pattern) in COLUMNS.items()
        )
        print(f"| {row} | " + " | ".join(cells) + " |")
    print("\n" + " / ".join(f"{report['seconds']:.0f}" for report in reports) + " s in all")


if __name__ == "__main__":
    main()
