"""How much one pin improves the other matches, and how much time pins save.

Untrained motion features (`motion_features.py`), pairs of videos drawn with a fixed seed.

pins        key events carried from a to b by the method auto, without pins and with one pin at the event
            whose match is furthest off, as a person would correct what looks worst. Errors in frames of all
            other events: median, share within 1 and 3. For all pairs, and for those with a match more than 5
            frames off, where a person would set a pin.
time        seconds of `align` with pins at nine places, as a share of the seconds without pins, for the
            longest videos that are aligned exactly

Takes about two minutes.

    python benchmarks/pins.py --out results/pins.json
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy when it is imported

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import align
from cycleback.files import write_text
from cycleback.provenance import provenance
from ends import Film, draw_pairs, read_films
from motion_features import read_folder, read_golf
from result_file import format_json

SETS = {
    "golf-val": (lambda: read_golf("val", 40), 120),
    "square": (lambda: read_folder("gesture_square"), 120),
    "tick": (lambda: read_folder("gesture_tick"), 120),
}
VISIBLE = 5  # frames: less is hardly seen
LONG_FRAMES, LONG_PINS = 4500, 9


def score_pins(films: Sequence[Film], max_pairs: int) -> dict[str, Any]:
    """Score the events that are not pinned, without and with the pin."""
    features = [film.features for film in films]
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    for i, j in draw_pairs(len(films), max_pairs):
        events = np.stack([films[i].events, films[j].events], axis=1)  # (E, 2)
        free = _measure_errors(features[i], features[j], events, pins=[])
        worst = int(free.argmax())
        pinned = _measure_errors(features[i], features[j], events, pins=[events[worst].tolist()])
        for name in ("all", "visible") if free[worst] > VISIBLE else ("all",):
            errors[name, "without"] += np.delete(free, worst).tolist()
            errors[name, "with"] += np.delete(pinned, worst).tolist()
    return {" ".join(key): _summarize(np.array(values)) for key, values in errors.items()}


def _measure_errors(
    a: NDArray[np.floating], b: NDArray[np.floating], events: NDArray[np.int64], pins: list[list[int]]
) -> NDArray[np.float64]:
    """Return by how many frames each event (E, 2) is carried over wrong."""
    return np.abs(align(a, b, pins=pins).indices[events[:, 0]] - events[:, 1]).astype(np.float64)


def _summarize(errors: NDArray[np.float64]) -> dict[str, float]:
    return {
        "events": len(errors),
        "event_error_frames": float(np.median(errors)),
        "within_1": round(float(np.mean(errors <= 1)), 4),
        "within_3": round(float(np.mean(errors <= 3)), 4),
    }


def measure_time(repeats: int = 3) -> float:
    """Return the time of `align` with pins as a share of the time without, the best of a few runs each."""
    walk = np.cumsum(np.random.default_rng(0).normal(size=(LONG_FRAMES, 32)), axis=0)
    at = np.linspace(0, LONG_FRAMES - 1, LONG_PINS + 2).astype(int)[1:-1]
    pins = np.stack([at, at], axis=1)
    best = {}
    for name, some in (("free", pins[:0]), ("pinned", pins)):
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            align(walk, walk + 0.1, method="dtw", pins=some)
            seconds.append(time.perf_counter() - start)
        best[name] = min(seconds)
    return round(best["pinned"] / best["free"], 3)


def main() -> None:
    """Score every set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    result: dict[str, Any] = {"time_share": measure_time(), "sets": {}}
    print("time", result["time_share"], flush=True)
    for name, (read, max_pairs) in SETS.items():
        films = read_films(read())
        result["sets"][name] = {"videos": len(films), "pins": score_pins(films, max_pairs)}
        print(name, format_json(result["sets"][name]), flush=True)
    if arguments.out:
        write_text(arguments.out, format_json({"provenance": provenance(), **result}), overwrite=True)


if __name__ == "__main__":
    main()
