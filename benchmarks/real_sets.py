"""The sets of videos on which confidence and verdicts are measured, with what an untrained encoder sees.

Evenly spread videos of each set, so that a set takes minutes of pose estimation at most, and only once: what
is measured of a video is kept in the user's cache. Rendered pouring videos are written to a folder.

Shapes: N frames of a video, D embedding size.
"""

import csv
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy when it is imported

import numpy as np
from numpy.typing import NDArray

from cycleback.data import FrameCache
from cycleback.data.folder import read_dataset, select_records
from cycleback.embeddings.features import FusedFeatures
from cycleback.embeddings.stream_choice import find_mirrored, weigh_streams
from cycleback.models.streams import VECTORS, mirror, stream_vectors
from cycleback.prepare.golfdb import EVENTS
from cycleback.runs import embed_videos
from cycleback.runs.folder import build_pretrained, open_caches
from cycleback.synth import write_dataset

DATA = Path(os.environ.get("CYCLEBACK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SIDES = ("appearance", "motion", "pose")
Floats = NDArray[np.floating]
Vectors = Mapping[str, Floats]  # of each stream (N, V)
Listed = list[tuple[Path, Mapping[str, int]]]  # videos, and the frames of their key events


@dataclass(frozen=True, eq=False)
class Film:
    """A video: the embedding (N, D) it has in its set, its key events, and its streams in four directions."""

    path: Path
    embedding: Floats
    times: Floats
    events: Mapping[str, int]
    plain: Vectors
    mirrored: Vectors
    backwards: Vectors
    mirrored_backwards: Vectors

    @property
    def reversed(self) -> "Film":
        """The same video played backwards; its embedding in the set is left out."""
        last = len(self.times) - 1
        return Film(
            self.path,
            self.embedding[:0],
            self.times,
            {name: last - frame for name, frame in self.events.items()},
            self.backwards,
            self.mirrored_backwards,
            self.plain,
            self.mirrored,
        )


def spread(items: list[Any], count: int) -> list[Any]:
    """At most so many of the items, evenly spread."""
    step = max(len(items) / count, 1)
    return [items[int(i * step)] for i in range(min(count, len(items)))]


def list_golf(role: str, count: int) -> Listed:
    """Golf swings of one role."""
    with (DATA / "golf" / "labels.csv").open(encoding="utf-8") as stream:
        rows = spread([row for row in csv.DictReader(stream) if row["role"] == role], count)
    folder = DATA / "golf" / "videos"
    return [(folder / f"{row['id']}.mp4", {event: int(row[event]) for event in EVENTS}) for row in rows]


def list_folder(folder: Path, count: int, split: str | None = None) -> Listed:
    """Videos of a data set folder, sorted by name."""
    dataset = read_dataset(folder)
    records = sorted(dataset if split is None else dataset.split(split), key=lambda record: record.name)
    return [
        (record.path, {name: round(frame) for name, frame in (record.events or {}).items()})
        for record in spread(records, count)
    ]


def list_files(folder: Path, count: int) -> Listed:
    """Videos without labels."""
    return [(path, {}) for path in spread(sorted(folder.glob("*.mp4")), count)]


def list_rendered(level: str, count: int, folder: Path) -> Listed:
    """Rendered pouring videos, written once."""
    if not (folder / level).exists():
        write_dataset(folder / level, videos=count, seed=101, level=level)
    return list_folder(folder / level, count)


def list_sets(rendered: Path) -> dict[str, Callable[[], Listed]]:
    """All sets; what stands before the dash is the action."""
    return {
        "golf-train": partial(list_golf, "train", 24),
        "golf-val": partial(list_golf, "val", 30),
        "golf-slow": partial(list_golf, "val_slow", 10),
        "robot-train": partial(list_folder, DATA / "robot", 18, "train"),
        "robot-val": partial(list_folder, DATA / "robot", 20, "val"),
        "square": partial(list_folder, DATA / "gesture_square", 21),
        "tick": partial(list_folder, DATA / "gesture_tick", 19),
        "pouring-easy": partial(list_rendered, "easy", 14, rendered),
        "pouring-hard": partial(list_rendered, "hard", 14, rendered),
        "pitch": partial(list_files, DATA / "pitch_audio" / "videos", 12),
        "repetitions": partial(list_files, DATA / "repetitions", 16),
    }


def read_set(listed: Listed) -> list[Film]:
    """Look at the videos of a set by an encoder that needs no training."""
    paths = [path for path, _ in listed]
    embedded = embed_videos("pretrained", paths)
    frames, features = open_caches(build_pretrained(), None)
    if not isinstance(features, FusedFeatures):
        raise TypeError("the untrained encoder has streams")
    records, _ = select_records(paths)
    found = []
    for record, name, (path, events) in zip(records, embedded.names, listed, strict=True):
        plain, times = _read_raw(frames, features, record)
        back = turn_round(plain)
        sides = [stream_vectors(raw, times) for raw in (plain, mirror(plain), back, mirror(back))]
        found.append(Film(path, embedded[name].astype(np.float64), times, events, *sides))
    return found


def _read_raw(frames: FrameCache, features: FusedFeatures, record: Any) -> tuple[dict[str, Any], Floats]:
    raw = features.load_raw(record)
    return {stream: raw[stream] for stream in VECTORS if stream in raw}, frames.load(record).times


def turn_round(raw: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The raw measurements of the video played backwards: motion goes the other way, one frame later."""
    turned = {stream: np.asarray(values)[::-1] for stream, values in raw.items()}
    turned["motion"] = np.roll(turned["motion"], 1, axis=0)[:, [2, 3, 0, 1]]
    return turned


def embed_two(a: Film, b: Film) -> tuple[Floats, Floats, dict[str, float]]:
    """Embed two videos as a command does that is given these two files; also the weights of the streams."""
    weights = weigh_streams([a.plain, b.plain])
    sides = {**weights, "appearance": 0.0}
    turned = [False, False]
    if sides["motion"] or sides["pose"]:
        turned = find_mirrored([(join(f.plain, sides), join(f.mirrored, sides)) for f in (a, b)])
    both = [f.mirrored if is_turned else f.plain for f, is_turned in zip((a, b), turned, strict=True)]
    return join(both[0], weights), join(both[1], weights), weights


def join(vectors: Vectors, weights: Mapping[str, float]) -> Floats:
    """The streams (N, D) side by side, weighted."""
    return np.concatenate([weights.get(stream, 0.0) * vectors[stream] for stream in SIDES], axis=1)


def draw_pairs(count: int, others: int, most: int, *, is_same: bool) -> list[tuple[int, int]]:
    """At most so many pairs of videos of two sets, or ordered pairs of one, drawn with a fixed seed."""
    pairs = [(i, j) for i in range(count) for j in range(others) if not (is_same and i == j)]
    return [pairs[k] for k in np.random.default_rng(0).permutation(len(pairs))[:most]]
