"""How exactly two cameras of one event are lined up, by pictures, by sound and by both.

Real clips, each as two cameras see and hear it (`two_cameras.py`), so that the truth is known to a fraction
of a frame. Settings were chosen on one half of the clips (`--half 0`); figures are of the other (`--half 1`).

pictures, sound, both   `find_offset(method="affine")`; sound only where the clip has one
xcorr                   baseline for sound: the highest correlation of the two waveforms
dtw                     baseline for pictures: the median offset of the matches of `align`

error       mean over the part that both show, of |seconds of b found - true|, in ms: median and 95th
            percentile over the pairs
one_frame   share of pairs whose error is at most one frame of the slower camera
sure        share of pairs with a confidence of 0.5 or more; and of these, how many are off by more than one
            frame (`sure_but_wrong`)
unrelated   pairs of two different clips, of one set (`same_action`) or of two (`other`): share with a
            confidence of 0.5 or more, though there is no offset to find

    python benchmarks/offsets.py --data DATA --films FOLDER --out results/offsets.json
"""

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy when it is imported

import numpy as np
from numpy.typing import NDArray
from scipy.signal import correlate

from cycleback.alignment import align
from cycleback.alignment.sound_offset import RATE
from cycleback.applications.offsets import SURE, find_offset
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import UserError
from cycleback.files import write_text
from cycleback.provenance import provenance
from cycleback.runs import embed_videos
from cycleback.video import read_audio
from result_file import format_json
from two_cameras import Pair, draw_pair, halve, write_pair

Floats = NDArray[np.float64]
SETS = {  # folder, and which of its clips
    "pitch": ("pitch_audio/videos", slice(None)),
    "pouring": ("pouring_audio", slice(None)),
    "golf_sound": ("golf_audio", slice(None)),
    "golf": ("golf/videos", slice(0, 400, 25)),
    "robot": ("robot", slice(0, 96, 8)),
    "repetitions": ("repetitions", slice(None)),
}
DRAWS = {"pitch": 2, "pouring": 4, "golf_sound": 4}  # pairs per clip
MOST = 10  # clips of a set
FOREIGN = 4  # clips of a set that are paired with others


def choose_clips(data: Path, half: int) -> dict[str, list[Path]]:
    """Return the clips of one half of each set; the one golf swing with sound is in both."""
    chosen = {}
    for name, (folder, which) in SETS.items():
        clips = sorted((data / folder).rglob("*.mp4"))[which]
        if name == "pouring":  # too few to be left to chance
            chosen[name] = clips[half::2]
        else:
            chosen[name] = clips if len(clips) == 1 else halve(clips)[half]
        chosen[name] = chosen[name][: MOST if name == "repetitions" else None]
    return chosen


def draw_pairs(clips: Mapping[str, Sequence[Path]], half: int) -> list[tuple[str, Pair]]:
    """Return the name of the set and the pair, of one clip each; then pairs of two clips."""
    pairs = []
    rng = np.random.default_rng(half)
    some = {name: own[:FOREIGN] for name, own in clips.items() if len(own) > 1}
    for name, own in clips.items():
        pairs += [(name, draw_pair(clip, k + 10 * half)) for clip in own for k in range(DRAWS.get(name, 1))]
        for clip in own[:FOREIGN]:
            same = [other for other in own if other != clip]
            has_sound = draw_pair(clip, 0).has_sound
            others = [o for key, each in some.items() if key != name for o in each]
            others = [other for other in others if draw_pair(other, 0).has_sound == has_sound]
            if same:
                pairs.append((name, draw_pair(clip, 50, other=same[rng.integers(len(same))])))
            if others:
                pairs.append((name, draw_pair(clip, 60, other=others[rng.integers(len(others))])))
    return pairs


def score_pair(pair: Pair, files: tuple[Path, Path]) -> dict[str, dict[str, Any]]:
    """Return the error in ms, the confidence and more of each way to find the offset of a pair."""
    videos = embed_videos("pretrained", files, one_event=True)
    a, b = videos.names
    found: dict[str, dict[str, Any]] = {}
    for source in ("pictures", "sound", "both"):
        if source == "sound" and not pair.has_sound:
            continue
        try:
            report = find_offset(videos, a, b, source=source)  # type: ignore[arg-type]
        except UserError as error:
            found[source] = {"failed": str(error), "confidence": 0.0}
            continue
        found[source] = {
            "confidence": round(report.confidence, 4),
            "is_linear": report.offset.is_linear,
            "evidence": [round(float(value), 4) for value in report.offset.evidence],
            "from": report.source,
            "drift_ppm": round(report.offset.drift_ppm, 1),
            "residual_ms": round(min(1e3 * report.offset.residual_s, 1e6), 2),
        }
        if pair.offset_s is not None:
            found[source]["error_ms"] = round(measure_error(pair, videos, report.offset.to_b), 3)
    if pair.offset_s is None:
        return found
    if pair.has_sound:
        shift = correlate_waves(files)
        found["xcorr"] = {"error_ms": round(measure_error(pair, videos, lambda s: s - shift), 3)}
    match = align(videos[a], videos[b])
    gaps = videos.times(a) - np.interp(match.positions, np.arange(len(videos[b])), videos.times(b))
    shift = float(np.median(gaps[match.matched]))
    found["dtw"] = {"error_ms": round(measure_error(pair, videos, lambda s: s - shift), 3)}
    return found


def measure_error(pair: Pair, videos: EmbeddingSet, to_b: Any) -> float:
    """Return the mean error in ms over the seconds of a that b shows, too."""
    a, b = (videos.times(name) for name in videos.names)
    seconds = np.linspace(a[0], a[-1], 500)
    truth = pair.map_seconds(seconds)
    inside = (truth >= 0) & (truth <= b[-1])
    return float(1e3 * np.abs(to_b(seconds) - truth)[inside].mean())


def correlate_waves(files: tuple[Path, Path]) -> float:
    """Return the shift in seconds at which two waveforms correlate best."""
    a, b = (read_audio(path, rate=RATE, mono=True).samples[0].astype(np.float64) for path in files)
    return float(np.argmax(correlate(a, b, mode="full")) - (len(b) - 1)) / RATE


def summarize(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summarize the pairs of one or several sets."""
    result: dict[str, Any] = {}
    for source in ("pictures", "sound", "both", "xcorr", "dtw"):
        own = [row | row["found"][source] for row in rows if source in row["found"] and row["kind"] == "true"]
        if own:
            errors = np.array([each.get("error_ms", 1e6) for each in own])
            frames = np.array([each["frame_ms"] for each in own])
            result[source] = {
                "pairs": len(own),
                "error_ms": round(float(np.median(errors)), 3),
                "error_95_ms": round(float(np.quantile(errors, 0.95)), 2),
                "one_frame": round(float(np.mean(errors <= frames)), 3),
            }
            if "confidence" in own[0]:
                sure = np.array([each["confidence"] >= SURE for each in own])
                result[source]["sure"] = round(float(sure.mean()), 3)
                result[source]["sure_but_wrong"] = int((sure & (errors > frames)).sum())
                straight = [each.get("is_linear", True) for each in own]
                result[source]["called_linear"] = round(float(np.mean(straight)), 3)
        for kind in ("same_action", "other"):
            own = [row["found"][source] for row in rows if row["kind"] == kind and source in row["found"]]
            if own and "confidence" in own[0]:
                shares = [each["confidence"] >= SURE for each in own]
                straight = [each.get("is_linear", True) for each in own]
                result[source][kind] = {
                    "pairs": len(own),
                    "sure": round(float(np.mean(shares)), 3),
                    "sure_and_linear": round(float(np.mean(np.array(shares) & np.array(straight))), 3),
                }
    return result


def main() -> None:
    """Score every pair of one half."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the real clips")
    parser.add_argument("--films", type=Path, help="folder for the cameras' videos")
    parser.add_argument("--half", type=int, choices=(0, 1), default=1)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--pairs", type=Path, help="JSON file to write the results of every pair to")
    parser.add_argument("--merge", type=Path, nargs="+", help="summarize these files of --pairs instead")
    arguments = parser.parse_args()
    rows = read_rows(arguments.merge) if arguments.merge else score_sets(arguments)
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["set"]].append(row)
    result = {"all": summarize(rows), **{name: summarize(own) for name, own in groups.items()}}
    print(format_json(result))
    if arguments.pairs:
        write_text(arguments.pairs, format_json(rows), overwrite=True)
    if arguments.out:
        facts = {"provenance": provenance(), "half": arguments.half, "sets": result}
        write_text(arguments.out, format_json(facts), overwrite=True)


def read_rows(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Read the results of pairs that were scored before."""
    return [row for path in paths for row in json.loads(path.read_text("utf-8"))]


def score_sets(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Score every pair of the chosen sets."""
    clips = choose_clips(arguments.data, arguments.half)
    rows: list[dict[str, Any]] = []
    for name, pair in draw_pairs(clips, arguments.half):
        if name not in arguments.sets:
            continue
        is_same = pair.clips[0].parent == pair.clips[1].parent
        kind = "true" if pair.offset_s is not None else "same_action" if is_same else "other"
        found = score_pair(pair, write_pair(pair, arguments.films))
        frame_ms = 1e3 / min(camera.fps for camera in pair.cameras)
        rows.append({"set": name, "pair": pair.name, "kind": kind, "frame_ms": frame_ms, "found": found})
        print(name, kind, {key: each.get("error_ms") for key, each in found.items()}, flush=True)
    return rows


if __name__ == "__main__":
    main()
