"""Fit the built-in calibration of the confidence of a match, and check it on videos it has not seen.

Renders easy and hard pouring videos, embeds them, and matches every ordered pair by DTW and by nearest
neighbour. A match is right within 5 % of the video or 3 frames of a frame at the same point of the action.
For DTW every fourth pair is also made to fail: b runs backwards, as if it were another action, and no match
is right; so the confidence also warns users who align the wrong videos. Half of the videos fit the curves,
the other half measure the error: the expected calibration error (ECE) is the mean difference between
confidence and share of right matches over ten equal groups.

    cycleback demo --out demo
    python benchmarks/confidence.py --run pretrained --run demo/run      # the built-in constants
"""

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from itertools import permutations
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy's linear algebra when it is imported

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import ConfidenceCurve, dtw_path, match_frames, score_matches, squared_distances
from cycleback.alignment.confidence import tolerance
from cycleback.synth import plan_take, video_seed, write_dataset
from cycleback.synth.motion import MOVING_PHASES, Timeline

Floats = NDArray[np.float64]
Video = tuple[Floats, Floats]  # embeddings (N, D) and progress (N,)
Scored = dict[str, list[tuple[Floats, NDArray[np.bool_]]]]  # method -> (score, right) of each pair


def progress(timeline: Timeline) -> Floats:
    """Point of the action (N,) of each frame: 0 before it, 1 a phase, at the pace of each phase."""
    frames = np.arange(timeline.num_frames, dtype=np.float64)
    starts = [timeline.lead_in, timeline.touch, timeline.start, timeline.complete, timeline.back]
    ends = [*starts[1:], timeline.back + timeline.withdraw]
    parts = [
        timeline.paces[phase].warp(np.clip((frames - start) / (end - start), 0, 1))
        for phase, start, end in zip(MOVING_PHASES, starts, ends, strict=True)
    ]
    total: Floats = np.sum(parts, axis=0)
    return total


def is_right(indices: NDArray[np.int64], a: Floats, b: Floats) -> NDArray[np.bool_]:
    """Whether each match is within the tolerance of a frame of b at the progress of the frame of a."""
    first = np.minimum(np.searchsorted(b, a - 1e-9, side="left"), len(b) - 1)
    last = np.maximum(np.searchsorted(b, a + 1e-9, side="right") - 1, first)
    right: NDArray[np.bool_] = np.maximum(first - indices, indices - last) <= tolerance(len(b))
    return right


def score_pairs(videos: Sequence[Video]) -> Scored:
    """Score and truth of all matches of all ordered pairs; every fourth also warped with b backwards."""
    found: Scored = {"nearest": [], "warped": [], "backwards": []}
    for number, ((a, progress_a), (b, progress_b)) in enumerate(permutations(videos, 2)):
        distances = squared_distances(a, b)
        nearest = distances.argmin(axis=1)
        found["nearest"].append(
            (score_matches(distances, nearest), is_right(nearest, progress_a, progress_b))
        )
        warped = match_frames(dtw_path(distances))
        found["warped"].append((score_matches(distances, warped), is_right(warped, progress_a, progress_b)))
        if number % 4 == 0:
            reverse = distances[:, ::-1]
            wrong = score_matches(reverse, match_frames(dtw_path(reverse)))
            found["backwards"].append((wrong, np.zeros(len(a), dtype=bool)))
    return found


def render(folder: Path, *, videos: int, level: str, runs: Sequence[str]) -> list[list[Video]]:
    """One list of videos for each run: the same frames, embedded by each."""
    from cycleback.runs import embed_videos

    if not (folder / level).exists():
        write_dataset(folder / level, videos=videos, seed=101, level=level)
    found = []
    for run in runs:
        embeddings = embed_videos(run, folder / level, cache=folder / "cache")
        names = sorted(embeddings.names)
        takes = [plan_take(video_seed(101, number), level=level) for number in range(len(names))]
        clocks = [progress(take.timeline) for take in takes]
        arrays = [embeddings[name].astype(np.float64) for name in names]
        found.append(list(zip(arrays, clocks, strict=True)))
    return found


def calibration_error(confidence: Floats, right: NDArray[np.bool_], *, groups: int = 10) -> float:
    """ECE over groups of equal size."""
    parts = np.array_split(np.argsort(confidence, kind="stable"), groups)
    return float(np.mean([abs(confidence[part].mean() - right[part].mean()) for part in parts]))


def pool(sets: Sequence[Scored], *kinds: str) -> tuple[Floats, NDArray[np.bool_]]:
    """All scores and truths of some kinds of matches."""
    scores, right = zip(*(pair for one in sets for kind in kinds for pair in one[kind]), strict=True)
    return np.concatenate(scores), np.concatenate(right)


def collect(runs: Sequence[str], *, videos: int, folder: Path) -> tuple[list[Scored], dict[str, Scored]]:
    """Matches to fit the curves to, and others to test them, by run and level."""
    fitting, testing = [], {}
    for level in ("easy", "hard"):
        for run, found in zip(runs, render(folder, videos=videos, level=level, runs=runs), strict=True):
            fitting.append(score_pairs(found[: len(found) // 2]))
            testing[f"{Path(run).name}, {level}"] = score_pairs(found[len(found) // 2 :])
    return fitting, testing


def errors(curve: ConfidenceCurve, sets: Sequence[Scored], *kinds: str) -> dict[str, float]:
    """Share of right matches, mean confidence and ECE."""
    scores, right = pool(sets, *kinds)
    confidence = curve.apply(scores)
    found = {"right": right.mean(), "said": confidence.mean(), "ece": calibration_error(confidence, right)}
    return {name: round(float(value), 3) for name, value in found.items()}


def main() -> None:
    """Render, embed, match, fit on one half and test on the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--run", action="append", help="run folder or 'pretrained'; may be repeated")
    parser.add_argument("--videos", type=int, default=24, help="videos of each level")
    parser.add_argument("--folder", type=Path, help="keep the videos here, for another time")
    parser.add_argument("--json", action="store_true", help="print only one line of JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        fitting, testing = collect(args.run or ["pretrained"], videos=args.videos, folder=folder)
    result: dict[str, Any] = {}
    for kinds in (("warped", "backwards"), ("nearest",)):
        curve = ConfidenceCurve.fit(*pool(fitting, *kinds), bins=12)
        result[kinds[0]] = {name: [round(x, 3) for x in axis] for name, axis in asdict(curve).items()}
        result[f"{kinds[0]}_ece"] = errors(curve, list(testing.values()), *kinds)["ece"]
        for name, one in testing.items():
            for part in dict.fromkeys([kinds, kinds[:1]]):
                if not args.json:
                    print(f"{' and '.join(part):22s} {name:18s}", errors(curve, [one], *part))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
