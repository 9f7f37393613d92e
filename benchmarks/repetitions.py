"""How well `cycleback repetitions` counts and cuts, and how often it finds repetitions where there are none.

counts        real videos of repeated actions (QUVA Repetition), by part: settings were chosen on `choose`;
              `report` has other actions. One setting is not blind to `report`: MIN_DIP was lowered from
              0.15 to 0.12 by loops and single takes, but after `report` had been scored (OBO 0.65).
              Mean absolute error of the count (MAE), the same as a share of the
              count, share of counts that are off by at most one (OBO), and the mean distance of a labelled
              boundary from the phase at which boundaries usually are, as a share of a repetition.
              Beside it are single streams and two baselines: the first peak of the autocorrelation of how
              much moves, and the median period of the part `choose`.
loops         golf swings cut from their clip, shown 2 to 6 times at 0.7 to 1.4 times their speed, written as
              videos; every second one is preceded by a still picture
false_alarms  videos of an action that is done once, with the streams that `repetitions` uses
notes         the same with the streams that `align` and others use: videos for which they print a note. For
              the repeated actions a note is right.

    python benchmarks/repetitions.py --out results/repetitions.json
"""

import argparse
import csv
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy when it is imported

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment.distances import spread_items
from cycleback.applications import find_repetitions
from cycleback.applications.repetitions import EQUAL_STREAMS
from cycleback.applications.verdict import MIN_REPETITIONS, MIN_SURE
from cycleback.embeddings import EmbeddingSet
from cycleback.files import write_text
from cycleback.provenance import provenance
from cycleback.runs import embed_videos
from cycleback.synth import write_dataset
from cycleback.video import frame_times, iter_frames, probe, read_frames, write_video
from result_file import format_json

DATA = Path(os.environ.get("CYCLEBACK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
STREAMS: Mapping[str, Mapping[str, float]] = {
    "repetitions": EQUAL_STREAMS,
    "appearance alone": {"appearance": 1.0},
    "motion alone": {"motion": 1.0},
    "pose alone": {"pose": 1.0},
}
NUM_LOOPS, MAX_VIDEOS = 20, 60
SETS = ("gesture_square", "gesture_tick", "golf", "golf_audio", "pitch_audio", "pouring_audio", "robot")
Floats = NDArray[np.float64]
Labels = dict[str, list[tuple[int, int]]]  # video -> frames of each repetition
Guess = tuple[float, Floats | None]  # count, and the phase of each frame where known


def read_labels() -> tuple[Labels, dict[str, str]]:
    """Return the labelled repetitions of each video, and its part: every second action is for choosing."""
    labels: Labels = {}
    actions = {}
    with (DATA / "repetitions" / "repetitions.csv").open() as file:
        for row in csv.DictReader(file):
            labels.setdefault(row["video"], []).append((int(row["start_frame"]), int(row["end_frame"])))
            actions[row["video"]] = row["action"]
    order = sorted(set(actions.values()))
    parts = {name: ("report", "choose")[order.index(action) % 2] for name, action in actions.items()}
    return labels, parts


def score_counts(labels: Labels, parts: Mapping[str, str]) -> dict[str, Any]:
    """Score every method on both parts."""
    paths = {name: DATA / "repetitions" / f"{name}.mp4" for name in labels}
    times = {name: frame_times(path) for name, path in paths.items()}
    methods: dict[str, Callable[[str], Guess]] = {}
    for method, weights in STREAMS.items():
        videos = embed_videos("pretrained", list(paths.values()), streams=weights)
        methods[method] = lambda name, videos=videos: guess(videos, name)
    methods["autocorrelation of motion"] = lambda name: (correlate_motion(paths[name]), None)
    usual = np.median([usual_period(labels[n], times[n]) for n in labels if parts[n] == "choose"])
    methods["median period"] = lambda name: (int(times[name][-1] / usual), None)
    result: dict[str, Any] = {}
    for part in ("choose", "report"):
        chosen = {name: spans for name, spans in labels.items() if parts[name] == part}
        result[part] = {method: score(chosen, guesses, times) for method, guesses in methods.items()}
        result[part]["videos"] = len(chosen)
    ours = methods["repetitions"]
    result["by_video"] = {name: [len(labels[name]), int(ours(name)[0])] for name in sorted(labels)}
    return result


def guess(videos: EmbeddingSet, name: str) -> Guess:
    """Return the count and the phases that our method finds."""
    found = find_repetitions(videos[name], videos.times(name))
    return found.count, found.phases


def usual_period(spans: Sequence[tuple[int, int]], times: Floats) -> float:
    """Return the median length in seconds of the labelled repetitions."""
    return float(np.median([stop - start for start, stop in spans[1:]]) * times[-1] / (len(times) - 1))


def correlate_motion(path: Path) -> int:
    """Count by the autocorrelation of how much moves: its first peak at least half as high as the highest."""
    frames = np.concatenate([chunk.frames.mean(axis=3) for chunk in iter_frames(path, size=(60, 60))])
    energy = np.abs(np.diff(frames, axis=0)).mean(axis=(1, 2))
    energy = energy - energy.mean()
    num_lags = len(energy) // 2
    curve = np.array([np.mean(energy[lag:] * energy[: len(energy) - lag]) for lag in range(num_lags)])
    peaks = [k for k in range(4, num_lags - 1) if curve[k - 1] < curve[k] >= curve[k + 1] and curve[k] > 0]
    if not peaks:
        return 0
    highest = max(curve[peak] for peak in peaks)
    return int(len(frames) / next(peak for peak in peaks if curve[peak] >= highest / 2))


def score(
    labels: Labels, guesses: Callable[[str], Guess], times: Mapping[str, Floats]
) -> dict[str, float | None]:
    """Score the counts, and the boundaries where phases are known."""
    errors, shares, boundaries, seconds = [], [], [], []
    for name, spans in labels.items():
        count, phases = guesses(name)
        errors.append(abs(count - len(spans)))
        shares.append(errors[-1] / len(spans))
        ends = np.array([stop for _, stop in spans if stop < len(times[name])])
        known = np.empty(0) if phases is None else phases[ends][np.isfinite(phases[ends])]
        if len(known) > 2:
            boundaries.append(float(spread(known).mean()))
            seconds.append(boundaries[-1] * usual_period(spans, times[name]))
    return {
        "count_mae": round(float(np.mean(errors)), 3),
        "count_mae_share": round(float(np.mean(shares)), 3),
        "off_by_one": round(float(np.mean(np.array(errors) <= 1)), 3),
        "boundary_error_share": round(float(np.mean(boundaries)), 4) if boundaries else None,
        "boundary_error_s": round(float(np.mean(seconds)), 4) if seconds else None,
    }


def spread(phases: Floats) -> Floats:
    """Return how far phases are from their mean on the circle, in repetitions."""
    turns = np.exp(2j * np.pi * phases)
    return np.abs(np.angle(turns / turns.mean())) / (2 * np.pi)


def write_loops(folder: Path) -> Iterator[tuple[Path, int, list[int]]]:
    """Write videos of repeated golf swings; yield file, repetitions and the frames where they begin."""
    rng = np.random.default_rng(0)
    with (DATA / "golf" / "labels.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["role"] == "train"]
    for number, row in enumerate(rows[i] for i in rng.permutation(len(rows))[:NUM_LOOPS]):
        path = next((DATA / "golf").rglob(f"{row['id']}.mp4"))
        first, last = int(row["address"]), int(row["finish"])
        count = int(rng.integers(2, 7))
        takes = [np.arange(first, last, speed).round().astype(int) for speed in rng.uniform(0.7, 1.4, count)]
        lead = [first] * int(rng.integers(30, 90)) if number % 2 else []
        starts = len(lead) + np.cumsum([0, *map(len, takes)])
        frames = read_frames(path, np.concatenate([np.array(lead, dtype=int), *takes]))
        target = folder / f"loop_{number:02d}.mp4"
        yield write_video(target, frames, fps=probe(path).fps), count, starts.tolist()


def score_loops() -> dict[str, Any]:
    """Score the counts and boundaries of repeated golf swings."""
    with tempfile.TemporaryDirectory() as name:
        loops = list(write_loops(Path(name)))
        videos = embed_videos(
            "pretrained", [path for path, *_ in loops], streams=EQUAL_STREAMS, cache=Path(name) / "cache"
        )
        found = [find_repetitions(videos[path.stem], videos.times(path.stem)) for path, *_ in loops]
    errors = np.array([abs(each.count - count) for each, (_, count, _) in zip(found, loops, strict=True)])
    inner = [each.phases[starts[1:-1]] for each, (*_, starts) in zip(found, loops, strict=True)]
    inner = [phases[np.isfinite(phases)] for phases in inner]
    boundaries = [float(spread(phases).mean()) for phases in inner if len(phases) > 1]
    return {
        "videos": len(loops),
        "exact": round(float(np.mean(errors == 0)), 3),
        "off_by_one": round(float(np.mean(errors <= 1)), 3),
        "count_mae": round(float(errors.mean()), 3),
        "boundary_error_share": round(float(np.mean(boundaries)), 4),
    }


def find_videos(name: str) -> list[Path]:
    """Return some videos of a set, spread over it."""
    return spread_items(sorted((DATA / name).rglob("*.mp4")), MAX_VIDEOS)


def is_noted(videos: EmbeddingSet, name: str) -> bool:
    """Tell whether `align` and others would print a note for a video."""
    found = find_repetitions(videos[name], videos.times(name))
    return found.count >= MIN_REPETITIONS and found.confidence >= MIN_SURE


def count_alarms() -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Count videos with repetitions, and videos with a note, of each set: [videos found, videos in all]."""
    alarms, notes = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        write_dataset(Path(folder) / "pours", videos=20, seed=0, size=128, jobs=1)
        sets = {name: find_videos(name) for name in SETS}
        sets["rendered pours"] = sorted((Path(folder) / "pours").glob("*.mp4"))
        for name, paths in sets.items():
            cache = Path(folder) / "cache" if name == "rendered pours" else None
            equal = embed_videos("pretrained", paths, streams=EQUAL_STREAMS, cache=cache)
            alarms[name] = [sum(guess(equal, video)[0] > 0 for video in equal), len(paths)]
            usual = embed_videos("pretrained", paths, cache=cache)
            notes[name] = [sum(is_noted(usual, video) for video in usual), len(paths)]
            print(name, alarms[name], notes[name], flush=True)
    trained = embed_videos("golf-lite", find_videos("golf"))
    notes["golf, by golf-lite"] = [sum(is_noted(trained, video) for video in trained), len(trained)]
    repeated = [embed_videos("pretrained", [path]) for path in find_videos("repetitions")]
    notes["repetitions"] = [sum(is_noted(each, each.names[0]) for each in repeated), len(repeated)]
    return alarms, notes


def main() -> None:
    """Score everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    result: dict[str, Any] = {"counts": score_counts(*read_labels())}
    print(format_json(result["counts"]), flush=True)
    result["loops"] = score_loops()
    print(result["loops"], flush=True)
    result["false_alarms"], result["notes"] = count_alarms()
    print(result["notes"])
    if arguments.out:
        write_text(arguments.out, format_json({"provenance": provenance(), **result}), overwrite=True)


if __name__ == "__main__":
    main()
