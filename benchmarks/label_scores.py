"""How far labels land from the truth when one video, or five, are labelled by hand and the rest by transfer.

An encoder learns without labels. Of the videos it has not seen, one or five are drawn and their key events
carried over to all others. The distances from the true events are pooled over the draws.

    label_transfer_error_ms          hard rendered pouring, one labelled video: median over events and draws
    label_transfer_error_ms_5        five labelled videos
    ..._time_only, ..._pretrained    the same from time alone, and from untrained features
    label_transfer_within_100ms      share of events within 100 ms (with _5 and the rest)
    label_transfer_golf_error_ms     the same on real golf swings; null where these are missing

    python benchmarks/label_scores.py --cache /tmp/labels
"""

import argparse
import csv
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch and numpy when they are imported

import numpy as np

from cycleback.applications import label_transfer_error
from cycleback.data import Dataset, VideoRecord, read_dataset
from cycleback.embeddings import EmbeddingSet
from cycleback.evaluation import time_only_embeddings
from cycleback.prepare.golfdb import EVENTS
from cycleback.recipe import load_recipe
from cycleback.runs import embed_videos, train
from cycleback.synth import write_dataset

SEED = 23
TRAINED_ON, MEASURED = 60, 24
GOLF_TRAINED_ON, GOLF_MEASURED = 100, 40
DRAWS = {1: 20, 5: 20}  # labelled videos -> draws


def score(cache: Path) -> dict[str, Any]:
    """Measure all figures; those of golf are None where the real videos are missing."""
    return pouring_scores(cache) | golf_scores(cache)


def pouring_scores(cache: Path) -> dict[str, Any]:
    """Measure hard rendered pouring."""
    folder = cache / "label-pouring"
    if not (folder / "labels.csv").exists():
        write_dataset(folder, videos=TRAINED_ON + MEASURED, seed=SEED, level="hard")
    dataset = read_dataset(folder)
    seen, held_out = dataset.names[:TRAINED_ON], dataset.names[TRAINED_ON:]
    views = _embed_views(dataset.subset(seen), dataset.subset(held_out), cache / "label-pouring-run", cache)
    return measure(views, prefix="label_transfer")


def golf_scores(cache: Path) -> dict[str, Any]:
    """Measure real golf swings."""
    records = list(_read_golf())
    if not records:
        print("no golf swings: set CYCLEBACK_DATA to a folder that holds golf/labels.csv", file=sys.stderr)
        return {"label_transfer_golf_error_ms": None, "label_transfer_golf_error_ms_5": None}
    parts = {
        role: Dataset(Path(), tuple(r for r in records if r.split == role)[:count], EVENTS)
        for role, count in (("train", GOLF_TRAINED_ON), ("val", GOLF_MEASURED))
    }
    views = _embed_views(parts["train"], parts["val"], cache / "label-golf-run", cache)
    return measure(views, prefix="label_transfer_golf")


def measure(views: dict[str, EmbeddingSet], *, prefix: str) -> dict[str, Any]:
    """Measure the errors of each view for each number of labelled videos, over the same seeded draws."""
    result: dict[str, Any] = {}
    for view, found in views.items():
        for count, draws in DRAWS.items():
            generator = np.random.default_rng(count)
            chosen = [generator.choice(found.names, count, replace=False).tolist() for _ in range(draws)]
            errors = np.concatenate([label_transfer_error(found, names) for names in chosen])
            suffix = ("" if count == 1 else f"_{count}") + view
            result[f"{prefix}_error_ms{suffix}"] = round(float(np.median(errors)), 1)
            result[f"{prefix}_within_100ms{suffix}"] = round(float((errors <= 100.0 + 1e-6).mean()), 3)
    return result


def _embed_views(seen: Dataset, held_out: Dataset, run: Path, cache: Path) -> dict[str, EmbeddingSet]:
    """Embed the held-out videos by a run trained on `seen`, by time alone, and by untrained features."""
    if not (run / "encoder.safetensors").exists():
        recipe = load_recipe("demo", ["data.held_out=0.0"])
        state = train(seen, run, recipe=recipe, cache=cache)
        print(f"{run.name}: {state.seconds:.0f} s of training on {len(seen)} videos", file=sys.stderr)
    found = embed_videos(run, held_out, cache=cache)
    plain = embed_videos("pretrained", held_out, cache=cache)
    return {"": found, "_time_only": time_only_embeddings(found), "_pretrained": plain}


def _read_golf() -> Iterator[VideoRecord]:
    """Read real-time golf swings with their eight key events and their split."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CYCLEBACK_DATA", beside)) / "golf"
    table = folder / "labels.csv"
    for row in csv.DictReader(table.open(encoding="utf-8")) if table.exists() else ():
        events = {event: float(row[event]) for event in EVENTS}
        path = folder / "videos" / f"{row['id']}.mp4"
        yield VideoRecord(row["id"], path, events=events, split=row["role"])


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path, required=True, help="keep videos, runs and frames here")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    args = parser.parse_args()
    print(json.dumps(score(args.cache), indent=None if args.json else 1))


if __name__ == "__main__":
    main()
