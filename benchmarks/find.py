"""How well `cycleback find` finds an action in long recordings, and what it costs.

Recordings are written as videos: clips of one set, in which the action is labelled, among clips of all other
sets and still stretches, in random order. `cuts` joins them hard; `dissolves` lets each fade into the next
over half a second, so that no cut helps; `none` holds no clip of the set. The examples are cut out of other
clips by their labels.

sets     by set and part: settings and the confidence curve were chosen on `choose` (for golf and robot the
         clips of the role `train`), `report` has other clips: of golf and robot those of the role `val`, of
         the gestures every second one.
         precision, recall, median and 90 % quantile of the error of both ends in frames, false finds per hour
         where there is none, and precision and recall of shot changes, told within a frame.
         The baseline slides windows of three lengths over the recording and takes the mean distance of the
         same vectors, stretched evenly; its threshold is the best one for `choose`, of each set by itself.
speed    seconds of processor time, as a ratio to decoding alone; largest memory for 2 and for 60
         minutes (--minutes sets another length)

    python benchmarks/find.py --set golf --out results/find.json     (each set of SETS in turn)
    python benchmarks/find.py --fit
    python benchmarks/find.py --speed --out results/find.json
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy when it is imported

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment.occurrences import Part, keep_apart
from cycleback.applications.find import (
    LOUDNESS_FREE,
    LOUDNESS_PRICE,
    MAX_OVERLAP,
    describe_action,
    find_occurrences,
    iter_motion,
    measure_loudness,
    read_motion,
)
from cycleback.files import write_text
from cycleback.models.streams import motion_vectors
from cycleback.provenance import provenance
from cycleback.video import frame_times, iter_frames, write_video
from result_file import format_json

DATA = Path(os.environ.get("CYCLEBACK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SETS = ("golf", "robot", "gesture_square", "gesture_tick")
OTHERS = ("repetitions", "pitch_audio", "pouring_audio")
RATES = {"golf": 30.0, "robot": 7.5, "gesture_square": 30.0, "gesture_tick": 30.0}
SIZE = (120, 160)
CLIPS, DISTRACTORS, STILLS = 12, 20, 3
STILL_S, DISSOLVE_S = 6.0, 0.5
EXAMPLES = (1, 3)
MARGIN = 0.05  # of an example, kept before and after what is labelled
LENGTHS = (0.7, 1.0, 1.4)  # of the windows of the baseline
FIT_DISTRACTORS, FIT_STRANGE = 18, 4  # clips among those of a set, and other clips that are looked for
FIT_FRAMES, RIDGE = 25, 1e-3  # of an action, at least; of the fit
STEPS = 16  # frames of a window that the baseline compares
Frames = NDArray[np.uint8]
Span = tuple[int, int]


@dataclass(frozen=True)
class Clip:
    """A clip, and the first and the last frame of the action in it where labelled."""

    path: Path
    set: str
    span: Span | None = None


@dataclass(frozen=True)
class Recording:
    """A long video, and what is true of it."""

    path: Path
    spans: list[Span]
    cuts: list[int]


def read_clips(name: str) -> tuple[list[Clip], list[Clip]]:
    """Return the labelled clips of a set: of `choose` and of `report`."""
    if name == "golf":
        with (DATA / "golf" / "labels.csv").open() as file:
            rows = [row for row in csv.DictReader(file) if row["role"] in ("train", "val")]
        found = {row["id"]: (row["role"], (int(row["address"]), int(row["finish"]))) for row in rows}
    else:
        events: dict[str, list[int]] = {}
        with (DATA / name / "labels.csv").open() as file:
            for row in csv.DictReader(file):
                events.setdefault(row["video"], []).append(int(float(row["frame"])))
        if name == "robot":
            with (DATA / name / "splits.csv").open() as file:
                roles = {row["video"]: row["split"] for row in csv.DictReader(file)}
        else:
            roles = {video: ("train", "val")[k % 2] for k, video in enumerate(sorted(events))}
        found = {video: (roles[video], (min(each), max(each))) for video, each in events.items()}
    paths = {path.stem: path for path in (DATA / name).rglob("*.mp4")}
    parts: dict[str, list[Clip]] = {"train": [], "val": []}
    for video in sorted(found):
        role, span = found[video]
        parts[role].append(Clip(paths[video], name, span))
    return parts["train"], parts["val"]


def read_others(name: str, part: int) -> list[Clip]:
    """Return clips of all other sets: every second one, so that the parts share none."""
    clips = [clip for each in SETS if each != name for clip in read_clips(each)[part][:25]]
    paths = [path for each in OTHERS for path in sorted((DATA / each).rglob("*.mp4"))]
    return clips + [Clip(path, path.parent.name) for path in paths[part::2]]


def read_images(clip: Clip, fps: float) -> tuple[Frames, Span | None]:
    """Return the frames of a clip at another rate, each the nearest one, and where the action is in them."""
    frames = np.concatenate([chunk.frames for chunk in iter_frames(clip.path, size=SIZE)])
    times = frame_times(clip.path)[: len(frames)]
    wanted = np.arange(0, times[-1] + 1e-9, 1 / fps)
    chosen = np.abs(times[:, None] - wanted).argmin(axis=0)
    if clip.span is None:
        return frames[chosen], None
    first, last = (int(np.abs(wanted - times[frame]).argmin()) for frame in clip.span)
    return frames[chosen], (first, last)


def write_recording(
    path: Path, clips: Sequence[Clip], *, name: str, rng: np.random.Generator, dissolve: bool
) -> Recording:
    """Write clips and still stretches in random order as one video."""
    fps, spans, cuts = RATES[name], list[Span](), list[int]()
    items: list[Clip | None] = [*clips, *[None] * STILLS]
    order = [items[k] for k in rng.permutation(len(items))]
    overlap = round(DISSOLVE_S * fps) if dissolve else 0

    def join() -> Iterator[Frames]:
        total, held = 0, np.empty((0, *SIZE, 3), dtype=np.uint8)
        for clip in order:
            if clip is None:  # a still picture with the noise of a camera
                still = (held[-1:] if len(held) else np.full((1, *SIZE, 3), 128, np.uint8)).astype(np.float32)
                noise = rng.normal(0, 2, (round(STILL_S * fps), *SIZE, 1))
                images, span = np.clip(still + noise, 0, 255).astype(np.uint8), None
            else:
                images, span = read_images(clip, fps)
            fade = min(overlap, len(held), len(images) // 3)
            start = total + len(held) - fade
            share = np.linspace(0, 1, fade + 2)[1:-1, None, None, None]
            mixed = (held[len(held) - fade :] * (1 - share) + images[:fade] * share).astype(np.uint8)
            yield from held[: len(held) - fade]
            total += len(held) - fade
            if start and not fade and clip is not None:
                cuts.append(start)
            if span is not None and clip is not None and clip.set == name:
                spans.append((start + span[0], start + span[1]))
            held = np.concatenate([mixed, images[fade:]])
        yield from held

    write_video(path, join(), fps=fps)
    return Recording(path, spans, cuts)


def read_example(clip: Clip) -> tuple[Any, Any]:
    """Return the motion and the seconds of the action in a clip."""
    assert clip.span is not None
    first, last = clip.span
    margin = round(MARGIN * (last - first))
    motion, times = read_motion(clip.path)
    part = slice(max(0, first - margin), last + margin + 1)
    return motion[part], times[part]


def match_spans(found: Sequence[Span], true: Sequence[Span]) -> list[int | None]:
    """Return for each part found (start, stop) the true one it shares half of all frames with."""
    left, matches = dict(enumerate(true)), list[int | None]()
    for start, stop in found:
        share = {
            k: max(0, min(stop, b + 1) - max(start, a)) / (max(stop, b + 1) - min(start, a))
            for k, (a, b) in left.items()
        }
        best = max(share, key=lambda k: share[k], default=None)
        matches.append(best if best is not None and share[best] >= 0.5 else None)
        if matches[-1] is not None:
            del left[matches[-1]]
    return matches


def score_spans(found: Sequence[Span], recording: Recording) -> dict[str, float | None]:
    """Return precision, recall and the errors of the ends."""
    matches = match_spans(found, recording.spans)
    right = [
        (span, recording.spans[match])
        for span, match in zip(found, matches, strict=True)
        if match is not None
    ]
    errors = [abs(error) for (a, b), (c, d) in right for error in (a - c, b - 1 - d)]
    return {
        "true": len(recording.spans),
        "precision": round(len(right) / len(found), 3) if found else None,
        "recall": round(len(right) / len(recording.spans), 3),
        "end_error_frames": round(float(np.median(errors)), 1) if errors else None,
        "end_error_frames_90": round(float(np.quantile(errors, 0.9)), 1) if errors else None,
    }


def score_cuts(found: Sequence[int], true: Sequence[int]) -> dict[str, float | None]:
    """Return precision and recall of cuts, right within a frame."""
    right = sum(any(abs(cut - each) <= 1 for each in true) for cut in found)
    hit = sum(any(abs(cut - each) <= 1 for cut in found) for each in true)
    return {
        "true": len(true),
        "precision": round(right / len(found), 3) if found else None,
        "recall": round(hit / len(true), 3) if true else None,
    }


def slide(examples: Sequence[tuple[Any, Any]], motion: Any, times: Any) -> list[Part]:
    """Return what the baseline finds, with the likeness of each part."""
    action = describe_action(examples).action
    frame_s = float(times[-1] - times[0]) / (len(times) - 1)
    parts = []
    for length in LENGTHS:
        count = round(length * action.seconds / frame_s)
        for start in range(0, len(motion) - count, max(1, round(action.seconds / frame_s / 4))):
            window = slice(start, start + count)
            rows = motion_vectors(motion[window], times[window])
            even = rows[np.linspace(0, count - 1, STEPS).round().astype(int)]
            same = action.rows[:, np.linspace(0, action.rows.shape[1] - 1, STEPS).round().astype(int)]
            likeness = 1 - float(np.square(same - even).sum(axis=2).mean()) / 2
            parts.append(Part(start, start + count, likeness))
    return keep_apart(parts, max_overlap=MAX_OVERLAP)


def best_threshold(parts: Sequence[Part], recording: Recording) -> float:
    """Return the likeness from which on parts count, so that F1 is greatest."""
    scores = {}
    for part in parts:
        chosen = [(each.start, each.stop) for each in parts if each.likeness >= part.likeness]
        right = sum(match is not None for match in match_spans(chosen, recording.spans))
        scores[part.likeness] = 2 * right / (len(chosen) + len(recording.spans))
    return max(scores, key=lambda key: scores[key])


def measure_set(name: str, folder: Path, *, seed: int = 0) -> dict[str, Any]:
    """Score one set on both parts."""
    result: dict[str, Any] = {"choose": {}, "report": {}}
    thresholds: dict[int, float] = {}
    for place, part in enumerate(("choose", "report")):
        rng = np.random.default_rng(seed + place)
        own = [read_clips(name)[place][k] for k in rng.permutation(len(read_clips(name)[place]))]
        teach, hidden = own[: max(EXAMPLES)], own[max(EXAMPLES) :][:CLIPS]
        pool = read_others(name, place)
        others = [pool[k] for k in rng.permutation(len(pool))[:DISTRACTORS]]
        examples = [read_example(clip) for clip in teach]
        for kind in ("cuts",) if part == "choose" else ("cuts", "dissolves", "none"):
            clips = others if kind == "none" else [*hidden, *others]
            path = folder / f"{name}-{part}-{kind}.mp4"
            recording = write_recording(path, clips, name=name, rng=rng, dissolve=kind == "dissolves")
            pieces = list(iter_motion(path))
            motion = np.concatenate([piece[0] for piece in pieces]).astype(np.float32)
            times = np.concatenate([piece[1] for piece in pieces])
            cuts = [cut for piece in pieces for cut in piece[2]]
            row: dict[str, Any] = {"minutes": round(float(times[-1]) / 60, 2)}
            if kind == "cuts":
                row["shots"] = score_cuts(cuts, recording.cuts)
            if kind == "dissolves":
                row["false_shots"] = len(cuts)
            for count in EXAMPLES:
                found = find_occurrences(examples[:count], motion, times, cuts=cuts)
                spans = [(each.start, each.stop) for each in found.found]
                slid = slide(examples[:count], motion, times)
                if kind == "none":
                    per_hour = 3600 / float(times[-1])
                    row[f"{count} examples"] = {"false_per_hour": round(len(spans) * per_hour, 1)}
                    false = sum(each.likeness >= thresholds[count] for each in slid)
                    row[f"{count} examples"]["baseline_false_per_hour"] = round(false * per_hour, 1)
                    continue
                if part == "choose" and kind == "cuts":
                    thresholds[count] = best_threshold(slid, recording)
                chosen = [(each.start, each.stop) for each in slid if each.likeness >= thresholds[count]]
                row[f"{count} examples"] = score_spans(spans, recording)
                row[f"{count} examples"]["baseline"] = score_spans(chosen, recording)
            result[part][kind] = row
            print(name, part, kind, json.dumps(row), flush=True)
            path.unlink()
    return result


def fit(folder: Path) -> None:
    """Fit the curve from likeness to confidence to recordings of `choose` of all sets, and print it.

    Parts of clips of other sets, which are in no recording, are looked for, too: all that is found of them is
    wrong.
    """
    values, truth = list[tuple[float, ...]](), list[bool]()
    for place, name in enumerate(SETS):
        rng = np.random.default_rng(10 + place)
        own = [read_clips(name)[0][k] for k in rng.permutation(len(read_clips(name)[0]))]
        pool = read_others(name, 0)
        order = [pool[k] for k in rng.permutation(len(pool))]
        others, strange = order[:FIT_DISTRACTORS], order[FIT_DISTRACTORS : FIT_DISTRACTORS + FIT_STRANGE]
        clips = [*own[max(EXAMPLES) :][:CLIPS], *others]
        path = folder / "fit.mp4"
        recording = write_recording(path, clips, name=name, rng=rng, dissolve=place % 2 == 0)
        pieces = list(iter_motion(path))
        motion = np.concatenate([piece[0] for piece in pieces]).astype(np.float32)
        times = np.concatenate([piece[1] for piece in pieces])
        cuts = [cut for piece in pieces for cut in piece[2]]
        sought = [([read_example(clip) for clip in own[:count]], recording.spans) for count in EXAMPLES]
        for clip in strange:
            part, clock = read_motion(clip.path)
            length = min(len(clock), int(rng.choice([30, 45, 60, 100, 150, 240])))
            start = int(rng.integers(0, len(clock) - length + 1))
            sought.append(([(part[start : start + length], clock[start : start + length])], []))
        for examples, spans in sought:
            action = describe_action(examples)
            frames = action.action.seconds * min(RATES[name], 30)
            if frames < FIT_FRAMES:
                continue
            found = find_occurrences(examples, motion, times, cuts=cuts, min_confidence=0).found
            matches = match_spans([(each.start, each.stop) for each in found], spans)
            for each, match in zip(found, matches, strict=True):
                louder = abs(measure_loudness(motion[each.start : each.stop]) - action.loudness)
                price = LOUDNESS_PRICE * max(0.0, louder - LOUDNESS_FREE)
                values.append((each.likeness - price, frames**-0.5))
                truth.append(match is not None)
            right = sum(match is not None for match in matches)
            print(
                f"{name}: {right} of {len(spans)} found, {len(found) - right} others, {frames:.0f} frames",
                flush=True,
            )
        path.unlink()
    centre, short, width = fit_curve(np.array(values), np.array(truth, dtype=np.float64))
    print(f"CENTRE {centre:.3f} SHORT {short:.2f} WIDTH {width:.4f}")


def fit_curve(values: NDArray[np.float64], truth: NDArray[np.float64]) -> tuple[float, float, float]:
    """Fit a logistic curve of likeness and frames^(-1/2) (M, 2) by Newton's method."""
    rows = np.column_stack([values, np.ones(len(values))])
    weights = np.zeros(3)
    for _ in range(200):
        share = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        hessian = rows.T @ (rows * (share * (1 - share))[:, None]) + RIDGE * np.eye(3)
        weights += 0.5 * np.linalg.solve(hessian, rows.T @ (truth - share) - RIDGE * weights)
    return -weights[2] / weights[0], -weights[1] / weights[0], 1 / weights[0]


SPEED = """
import resource, sys, time
from cycleback.video import iter_frames
from cycleback.applications import find_action
started = time.process_time()
if sys.argv[1] == "decode":
    for chunk in iter_frames(sys.argv[3]):
        pass
else:
    find_action(sys.argv[2], sys.argv[3])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(time.process_time() - started, peak)
"""


def measure_speed(folder: Path, *, long: int) -> dict[str, Any]:
    """Measure time and memory for recordings of 2 and of `long` minutes, and of one minute in 720p."""
    own, result = read_clips("golf")[1], dict[str, Any]()
    for minutes, height in ((2, 120), (long, 120), (1, 720)):
        path = folder / f"{minutes}-{height}.mp4"
        frames = write_long(path, read_others("golf", 1)[::3], minutes=minutes, height=height)
        values = {}
        for what in ("decode", "find"):
            command = [sys.executable, "-c", SPEED, what, str(own[0].path), str(path)]
            seconds, peak = map(
                float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            )
            values[what] = {"cpu_s": round(seconds, 2), "peak_mib": round(peak)}
        ratio = values["find"]["cpu_s"] / values["decode"]["cpu_s"]
        result[f"{minutes} min, {height * 4 // 3}x{height}"] = {
            **values,
            "frames": frames,
            "ratio": round(ratio, 2),
        }
        print(minutes, height, values, f"{ratio:.2f}", flush=True)
        path.unlink()
    return result


def write_long(path: Path, clips: Sequence[Clip], *, minutes: int, height: int) -> int:
    """Write clips again and again until a video is so long; return its frames."""
    from PIL import Image

    total, images = minutes * 60 * 30, list[Frames]()
    for clip in clips:
        images += list(read_images(clip, 30.0)[0])
        if len(images) >= 3600:
            break
    if height != SIZE[0]:
        images = [
            np.asarray(Image.fromarray(each).resize((height * 4 // 3, height))) for each in images[:900]
        ]
    write_video(path, (images[k % len(images)] for k in range(total)), fps=30.0)
    return total


def main() -> None:
    """Measure and write the result file; results of other sets in it stay."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", choices=SETS, action="append", default=[])
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--minutes", type=int, default=60, help="of the longest recording of --speed")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    known = json.loads(options.out.read_text()) if options.out and options.out.is_file() else {}
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        if options.fit:
            fit(Path(folder))
            return
        for name in options.set:
            known.setdefault("sets", {})[name] = measure_set(name, Path(folder))
        if options.speed:
            known["speed"] = measure_speed(Path(folder), long=options.minutes)
    known["provenance"] = provenance()
    print(f"{time.perf_counter() - started:.0f} s")
    if options.out is not None:
        write_text(options.out, format_json(known), overwrite=True)


if __name__ == "__main__":
    main()
