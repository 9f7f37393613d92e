"""The measured figure of every application, as one JSON object.

    part        keys begin with   measured on                                         see
    sound       sound_            rendered pouring; real pitches                      sound_scores.py
    labels      label_            rendered pouring, hard; real golf swings            label_scores.py
    anomalies   anomaly_          rendered pouring with mishaps                       anomaly_scores.py
    search      search_           a million frames on disk                            search_scores.py

Each figure has baselines: `_proportional` and `_time_only` ignore the pictures, `_pretrained` is not trained.
`_ratio` keys divide the figure by its baseline: below 1 is better for an error, above 1 for a speed. Figures
that need real videos are null where these are missing, with the reason on stderr. All parts take about ten
minutes on two cores; the cache is reused.

    python benchmarks/applications.py --json --cache /tmp/applications
    python benchmarks/applications.py --only search,sound --out results/applications.json
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch and numpy when they are imported

import anomaly_scores
import label_scores
import search_scores
import sound_scores
from cycleback.provenance import provenance

Scores = dict[str, Any]


def sound(cache: Path) -> Scores:
    """Transferred sound beside lengths alone."""
    found = sound_scores.score(cache)
    if found["sound_pop_error_ms"] is None:
        print("no pitches with sound: set CYCLEBACK_DATA to a folder that holds pitch_audio", file=sys.stderr)
    return found | ratios(found, "sound_pop_error_ms", "_proportional")


def labels(cache: Path) -> Scores:
    """Transferred labels beside time alone."""
    found = label_scores.score(cache)
    ours = ["label_transfer_error_ms", "label_transfer_golf_error_ms"]
    for key in [key + count for key in ours for count in ("", "_5")]:
        found |= ratios(found, key, "_time_only")
    return found


def anomalies(cache: Path) -> Scores:
    """Mishaps found by a run and untrained features together, and by each alone."""
    found = anomaly_scores.score(cache / "anomalies")
    best = found["rows"]["all streams"]
    flat = {key if key.startswith("anomaly_") else f"anomaly_{key}": value for key, value in best.items()}
    return flat | {"anomaly_rows": found["rows"]}


def search(cache: Path) -> Scores:
    """Time of a query, and how many times faster than sorting all distances."""
    found: Scores = dict(search_scores.score())
    return found


PARTS: dict[str, Callable[[Path], Scores]] = {
    "sound": sound,
    "labels": labels,
    "anomalies": anomalies,
    "search": search,
}


def ratios(found: Scores, key: str, baseline: str) -> Scores:
    """Divide `key` by the figure of its baseline; None where either is missing or the baseline is 0."""
    ours, theirs = found.get(key), found.get(key + baseline)
    return {f"{key}_ratio": None if ours is None or not theirs else round(ours / theirs, 3)}


def measure(names: list[str], cache: Path) -> Scores:
    """Measure the named parts one after another; the result names device and versions."""
    result: Scores = {}
    made_with: Scores = {}
    for name in names:
        print(f"measuring {name}", file=sys.stderr)
        result |= PARTS[name](cache)
        made_with[name] = provenance()
    return result | {"circumstances": made_with}


def merge(path: Path, found: Scores) -> Scores:
    """Update the figures in the file with those found."""
    before: Scores = json.loads(path.read_text("utf-8")) if path.exists() else {}
    made_with = before.pop("circumstances", {}) | found["circumstances"]
    return before | {**found, "circumstances": made_with}


def main() -> None:
    """Measure the parts that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(PARTS), help="measure these parts (default: all)")
    parser.add_argument("--cache", type=Path, help="keep videos and runs in this folder")
    parser.add_argument("--out", type=Path, help="update the figures in this file and keep the others")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    args = parser.parse_args()
    names = args.only.split(",")
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]!r}: expected {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory() as temporary:
        found = measure(names, args.cache or Path(temporary))
    if args.out is not None:
        found = merge(args.out, found)
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(json.dumps(found, indent=None if args.json else 1))


if __name__ == "__main__":
    main()
