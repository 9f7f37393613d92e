"""How often good takes are said to differ, and whether what is odd gets its right name, on real clips.

Some clips of a set are the good takes. The others are judged as they are, and after edits whose oddity is
known by construction:

    missing          a quarter of the frames is cut out of the middle
    extra            a quarter of the clip, from another moment of another clip, is put into the middle
    slow             a quarter in the middle is played at a third of its pace
    different look   a disc appears in the middle third of the clip and stays where it is
    another action   clips of another set

A name counts if the oddity overlaps the edit; if several do, the longest counts. Poses are looked for in
golf swings only: the other sets show no whole person.

    CYCLEBACK_DATA=DIR python benchmarks/anomaly_kinds.py --sets golf tick -o results/anomaly_kinds.json
"""

import argparse
import csv
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch and numpy when they are imported

import numpy as np

from cycleback.applications.anomalies import AnomalyScores, fit_anomaly_model, score_take
from cycleback.files import write_json
from cycleback.runs import embed_videos, load_encoder
from cycleback.runs.cells import embed_cells
from cycleback.runs.folder import build_pretrained
from cycleback.video import iter_frames, probe, write_video

DATA = Path(os.environ.get("CYCLEBACK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SETS = {
    "golf": "robot",
    "golf-val": "robot",
    "robot": "tick",
    "tick": "robot",
    "square": "robot",
}  # and the other
GOOD, UNSEEN, EDITED = 12, 10, 4
EDITS = ("missing", "extra", "slow", "different look")
SLACK = 5  # frames that an oddity may be away from the edit
Frames = np.ndarray


def list_clips(name: str) -> list[Path]:
    """Return the clips of a set, in a fixed random order."""
    if name.startswith("golf"):
        with (DATA / "golf" / "labels.csv").open(encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["view"] == "down-the-line"]
        role = "val" if name == "golf-val" else "train"
        paths = [DATA / "golf" / "videos" / f"{row['id']}.mp4" for row in rows if row["role"] == role]
    elif name == "robot":
        paths = sorted((DATA / "robot").rglob("*.mp4"))
    else:
        paths = sorted((DATA / f"gesture_{name}").glob("*.mp4"))
    return [paths[place] for place in np.random.default_rng(0).permutation(len(paths))]


def edit(kind: str, frames: Frames, other: Frames) -> tuple[Frames, tuple[int, int]]:
    """Return edited frames, and the first and the last frame of the edit."""
    count = len(frames)
    quarter, start = max(count // 4, 4), 3 * count // 8
    end = start + quarter
    if kind == "missing":
        return np.concatenate([frames[:start], frames[end:]]), (start - 1, start)
    if kind == "slow":
        slowed = np.repeat(frames[start:end], 3, axis=0)
        return np.concatenate([frames[:start], slowed, frames[end:]]), (start, start + 3 * quarter - 1)
    if kind == "extra":
        late = other[-len(other) // 4 :][::-1]  # the end of another clip, backwards
        part = late[np.linspace(0, len(late) - 1, quarter).astype(int)]
        return np.concatenate([frames[: start + 1], part, frames[start + 1 :]]), (start + 1, start + quarter)
    changed = frames.copy()
    height, width = frames.shape[1:3]
    rows, columns = np.ogrid[:height, :width]
    disc = (rows - 0.25 * height) ** 2 + (columns - 0.75 * width) ** 2 < (0.1 * min(height, width)) ** 2
    changed[count // 3 : 2 * count // 3, disc] = (200, 40, 160)
    return changed, (count // 3, 2 * count // 3 - 1)


def read_clip(path: Path) -> Frames:
    """Read all frames of a clip (N, H, W, 3)."""
    return np.concatenate([chunk.frames for chunk in iter_frames(path)])


def write_edits(folder: Path, clips: list[Path]) -> dict[str, tuple[str, tuple[int, int]]]:
    """Write each clip after each edit; return name -> (kind, first and last frame)."""
    folder.mkdir(parents=True, exist_ok=True)
    edits = {}
    for number, path in enumerate(clips):
        frames, other = read_clip(path), read_clip(clips[(number + 1) % len(clips)])
        size = frames.shape[1:3]
        if other.shape[1:3] != size:
            other = np.repeat(frames[:1], len(other), axis=0) if len(clips) == 1 else resize(other, size)
        for kind in EDITS:
            changed, place = edit(kind, frames, other)
            target = folder / f"{kind.replace(' ', '-')}_{path.stem}.mp4"
            edits[target.stem] = kind, place
            if not target.exists():
                write_video(target, list(changed), fps=probe(path).fps)
    return edits


def resize(frames: Frames, size: tuple[int, int]) -> Frames:
    """Resize frames (N, H, W, 3) by nearest pixels."""
    rows = np.linspace(0, frames.shape[1] - 1, size[0]).round().astype(int)
    columns = np.linspace(0, frames.shape[2] - 1, size[1]).round().astype(int)
    return frames[:, rows][:, :, columns]


def judge(name: str, cache: Path) -> dict[str, Any]:
    """Measure one set."""
    started = time.monotonic()
    clips = list_clips(name)
    good_count = min(GOOD, len(clips) // 2)
    good, unseen = clips[:good_count], clips[good_count : good_count + UNSEEN]
    edits = write_edits(cache / name, unseen[:EDITED])
    changed = [cache / name / f"{stem}.mp4" for stem in edits]
    foreign = list_clips(SETS[name])[:EDITED]
    encoder = load_encoder() if name.startswith("golf") else build_pretrained(("appearance", "motion"))
    known = embed_videos(encoder, good, cache=cache / "frames")
    judged = embed_videos(encoder, [*unseen, *changed, *foreign], cache=cache / "frames", alike=known)
    with_pose = known.streams.get("pose", 0) > 0
    theirs, own = (embed_cells(each, cache=cache / "frames", with_pose=with_pose) for each in (known, judged))
    model = fit_anomaly_model(known, cells=theirs)
    left_out = [model.score_own(each) for each in model.names]
    found = {each: score_take(model, each, [judged], own) for each in judged}
    table: dict[str, Counter[str]] = {}
    for path in unseen:
        told = found[path.stem]
        table.setdefault("good", Counter())[name_verdict(told, (0, len(told.scores)))] += 1
    for stem, (kind, place) in edits.items():
        table.setdefault(kind, Counter())[name_verdict(found[stem], place)] += 1
    for path in foreign:
        table.setdefault("another action", Counter())[name_verdict(found[path.stem], None)] += 1
    fine = [found[path.stem] for path in unseen]
    return {
        "streams": known.streams,
        "good_takes": len(good),
        "left_out_called_odd": share(each.verdict != "typical" for each in left_out),
        "unseen_called_odd": share(each.verdict != "typical" for each in fine),
        "unseen_frames_flagged": round(float(np.concatenate([each.flagged for each in fine]).mean()), 3),
        "confusion": {kind: dict(counts) for kind, counts in table.items()},
        "seconds": round(time.monotonic() - started, 1),
    }


def name_verdict(found: AnomalyScores, place: tuple[int, int] | None) -> str:
    """Return the name that a take gets: of the longest oddity at `place`."""
    if found.verdict != "something differs":
        return "another action" if found.verdict != "typical" else "typical"
    if place is None:
        return "something differs"
    near = [o for o in found.oddities if o.first <= place[1] + SLACK and o.last >= place[0] - SLACK]
    return max(near, key=lambda o: o.last - o.first).kind if near else "elsewhere"


def share(flags: Any) -> float:
    """Return the share of true values."""
    return round(float(np.mean([*flags])), 3)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "cycleback" / "anomaly_kinds")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this file, too")
    args = parser.parse_args()
    results = {}
    for name in args.sets:
        results[name] = judge(name, args.cache)
        print(name, json.dumps(results[name]), flush=True)
    if args.output:
        write_json(args.output, results, overwrite=True)


if __name__ == "__main__":
    main()
