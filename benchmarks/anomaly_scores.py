r"""How well takes that go wrong are found: rendered pours that spill, miss the glass, or never happen.

Good takes define what is normal. The rest is scored: unseen good takes, and takes with a labelled mishap.
Settings were chosen on other seeds. Nothing is trained, except for the rows "run", whose encoder learns from
further good takes.

    anomaly_auroc            frames inside mishaps against all other frames judged
    auroc_good               frames inside mishaps against frames of unseen good takes: after a mishap, its
                             puddle stays in the picture
    anomaly_recall_at_5pct   share of mishap frames above the score that 5 % of the good frames judged exceed
    spans_found, ...         with the threshold that the good takes gave, and what it costs
    named                    share of mishaps called odd with a right name at the right place, see NAMES

    python benchmarks/anomaly_scores.py --cache /tmp/anomalies
    python benchmarks/anomaly_scores.py --cache /tmp/anomalies --seeds 7 31 --good 24 8 \
        --no-run -o results/anomaly_scores.json
"""

import argparse
import csv
import json
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch and numpy when they are imported

import numpy as np
from sklearn.metrics import roc_auc_score

from cycleback.applications.anomalies import AnomalyScores, fit_anomaly_model, score_take
from cycleback.data import read_dataset
from cycleback.embeddings import EmbeddingSet
from cycleback.files import write_json
from cycleback.recipe import load_recipe
from cycleback.runs import embed_videos, train
from cycleback.runs.cells import embed_cells
from cycleback.runs.folder import build_pretrained
from cycleback.synth import write_dataset

SEED = 7  # of the printed figures; 101 and 102 were used to choose the settings
TRAINED_ON, GOOD, UNSEEN, MISHAPS = 36, 24, 24, 36
NAMES = {
    "spill": {"different look"},
    "missed glass": {"different look", "different path"},
    "hand withdraws": {"missing", "extra", "slow"},
}
Ranges = dict[str, tuple[str, int, int]]
Sets = dict[str, EmbeddingSet]


def score(
    cache: Path | str | None = None, *, seed: int = SEED, good: int = GOOD, with_run: bool = True
) -> dict[str, Any]:
    """Render, train and score, reusing `cache`; return the figures of all streams, all rows, and the time."""
    folder = Path(cache or Path.home() / ".cache" / "cycleback" / "anomaly_scores") / str(seed)
    started = time.monotonic()
    fused = load_or_embed(folder, seed, "pretrained")
    cells, ranges = load_cells(folder, fused), mishaps(folder / "videos")
    rows = {"embedding": judge([fused], ranges, good=good)[0]}
    if with_run:
        run = load_or_embed(folder, seed, "run")
        rows["run"] = judge([run], ranges, good=good)[0]
        rows["run and streams"] = judge([run], ranges, good=good, cells=cells)[0]
    whole, streams = judge([fused], ranges, good=good, cells=cells)
    rows |= {stream: own for stream, own in streams.items() if stream != "embedding"}
    rows["all streams"] = whole
    keys = ("anomaly_auroc", "anomaly_recall_at_5pct")
    seconds = round(time.monotonic() - started, 1)
    return {key: whole[key] for key in keys} | {"rows": rows, "seconds": seconds}


def load_or_embed(folder: Path, seed: int, encoder: str) -> EmbeddingSet:
    """Embed the judged videos by the trained run or by the streams; results are kept in `folder`."""
    saved, videos = folder / f"{encoder}-judged.emb", folder / "videos"
    if saved.exists():
        return EmbeddingSet.load(saved)
    if not videos.exists():
        count = TRAINED_ON + GOOD + UNSEEN + MISHAPS
        write_dataset(videos, videos=count, seed=seed, anomalies=MISHAPS)
    dataset, run = read_dataset(videos), folder / "run"
    if encoder == "run" and not (run / "encoder.safetensors").exists():
        recipe = load_recipe("fast", ["data.held_out=0.0", "optimizer.num_updates=500"])
        train(dataset.subset(dataset.names[:TRAINED_ON]), run, recipe=recipe, cache=folder / "frames")
    judged = dataset.subset(dataset.names[TRAINED_ON:])
    streams = build_pretrained(("appearance", "motion"))  # no person is rendered
    found = embed_videos(run if encoder == "run" else streams, judged, cache=folder / "frames")
    found.save(saved)
    return found


def load_cells(folder: Path, videos: EmbeddingSet) -> Sets:
    """Describe the cells of the frames of all videos; results are kept in `folder`."""
    saved = sorted(folder.glob("*.cells"))
    if not saved:
        for stream, own in embed_cells(videos, cache=folder / "frames").items():
            own.save(folder / f"{stream}.cells")
    return {path.stem: EmbeddingSet.load(path) for path in sorted(folder.glob("*.cells"))}


def mishaps(videos: Path) -> Ranges:
    """Read video -> kind of mishap, its first and its last frame."""
    with (videos / "anomalies.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {r["video"]: (r["anomaly"], int(r["start_frame"]), int(r["end_frame"])) for r in rows}


def judge(
    views: list[EmbeddingSet], ranges: Ranges, *, good: int, cells: Sets | None = None
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Measure one encoder, or several together, with all streams and stream by stream."""
    names = [name for name in views[0].names if name not in ranges]
    known, unseen = names[:good], names[GOOD:]
    model = fit_anomaly_model(
        *(view.subset(known) for view in views),
        cells={stream: own.subset(known) for stream, own in (cells or {}).items()},
    )
    found = {name: score_take(model, name, views, cells or {}) for name in (*unseen, *ranges)}
    streams = {
        stream: judge_frames({name: each.streams[stream] for name, each in found.items()}, ranges, unseen)
        for stream in next(iter(found.values())).streams
    }
    figures = judge_frames({name: each.scores for name, each in found.items()}, ranges, unseen)
    inside = {name: is_inside(len(each.scores), ranges.get(name)) for name, each in found.items()}
    spotted = {name: bool(found[name].flagged[inside[name]].any()) for name in ranges}
    odd = [name for name in ranges if found[name].verdict != "typical"]
    figures |= {
        "spans_found": np.mean([*spotted.values()]),
        "good_frames_flagged": np.concatenate([found[name].flagged for name in unseen]).mean(),
        "bad_takes_called_odd": len(odd) / len(ranges),
        "good_takes_called_odd": np.mean([found[name].verdict != "typical" for name in unseen]),
        "named": np.mean([is_named(found[name], ranges[name]) for name in odd]) if odd else 0.0,
    }
    return {key: round(float(value), 3) for key, value in figures.items()}, streams


def judge_frames(scores: dict[str, np.ndarray], ranges: Ranges, unseen: list[str]) -> dict[str, Any]:
    """Measure how well the scores (N,) of frames tell mishaps from the rest."""
    inside = {name: is_inside(len(own), ranges.get(name)) for name, own in scores.items()}
    truth, together = np.concatenate([*inside.values()]), np.concatenate([*scores.values()])
    fine = np.concatenate([scores[name] for name in unseen])
    bad, limit = together[truth], float(np.quantile(fine, 0.95))
    is_bad = np.repeat([True, False], [len(bad), len(fine)])
    figures = {
        "anomaly_auroc": roc_auc_score(truth, together),
        "auroc_good": roc_auc_score(is_bad, np.concatenate([bad, fine])),
        "anomaly_recall_at_5pct": (bad > limit).mean(),
    }
    for kind in sorted({kind for kind, _, _ in ranges.values()}):
        chosen = [scores[name][inside[name]] for name in ranges if ranges[name][0] == kind]
        figures[f"recall_{kind.replace(' ', '_')}"] = (np.concatenate(chosen) > limit).mean()
    return {key: round(float(value), 3) for key, value in figures.items()}


def is_named(found: AnomalyScores, mishap: tuple[str, int, int]) -> bool:
    """Whether an oddity that overlaps the mishap has a right name."""
    kind, first, last = mishap
    return any(o.kind in NAMES[kind] and o.first <= last and o.last >= first for o in found.oddities)


def is_inside(num_frames: int, mishap: tuple[str, int, int] | None) -> np.ndarray:
    """Whether each frame lies in the mishap."""
    frames = np.arange(num_frames)
    return (frames >= mishap[1]) & (frames <= mishap[2]) if mishap else np.zeros(num_frames, dtype=bool)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path, help="keep videos, run and embeddings in this folder")
    parser.add_argument("--seeds", type=int, nargs="+", default=[SEED])
    parser.add_argument("--good", type=int, nargs="+", default=[GOOD], help="numbers of good takes")
    parser.add_argument("--no-run", action="store_true", help="train nothing")
    parser.add_argument("--json", action="store_true", help="print only one line of JSON")
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this file, too")
    args = parser.parse_args()
    results = {}
    for seed in args.seeds:
        for good in args.good:
            found = score(args.cache, seed=seed, good=good, with_run=not args.no_run)
            results[f"seed {seed}, {good} good takes"] = found
            for name, row in found["rows"].items() if not args.json else ():
                print(f"{seed} {good} {name}", *(f"  {key}: {value}" for key, value in row.items()), sep="\n")
    if args.output:
        write_json(args.output, results, overwrite=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
