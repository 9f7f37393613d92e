"""How well matching copes with ends that only one video shows, and what fractions and a time prior add.

Untrained motion features (`motion_features.py`), pairs of videos drawn with a fixed seed.

ends        key events carried from a to b, by the methods dtw (fixed ends), overlap and auto, on

    filmed      the videos as they are
    cropped     one of the two lacks a part of its beginning or of its end
    still       one has still frames before and after: a fifth to a half of its length each
    before      one has what another video of the set shows before its action, before and after
    foreign     one has frames of another set before and after

            Errors in frames: median, share within 1 and 3. Precision and recall of the frames of a left out:
            b shows nothing like them (recall), or they lie within the action that both show (precision).
fractions   every third frame of a video from 0 on, matched with every third from 1 on: the truth lies a
            third of a frame ahead. Mean error in frames of `Alignment.indices` and `positions`.
time_prior  share of events within 3 frames as filmed, by nearest neighbours and by dtw, for several weights

Choose by the sets `golf-train` and `robot-train`. Takes about ten minutes.

    python benchmarks/ends.py --out results/ends.json
"""

import argparse
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy when it is imported

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import align
from cycleback.files import write_text
from cycleback.provenance import provenance
from motion_features import CHOSEN, Clips, map_features, motion_maps, read_folder, read_golf, read_grey
from result_file import format_json

Floats = NDArray[np.floating]
Frames = NDArray[np.int64]
Mask = NDArray[np.bool_]
SETS = {
    "golf-train": (lambda: read_golf("train", 60), 200),
    "robot-train": (lambda: read_folder("robot", "train", 40), 60),
    "square": (lambda: read_folder("gesture_square"), 120),
    "tick": (lambda: read_folder("gesture_tick"), 150),
}
METHODS = ("dtw", "overlap", "auto")
WEIGHTS = (0.0, 0.1, 0.3, 1.0, 3.0)
SLACK = 3  # frames around a cut where a frame may be matched or not


@dataclass(frozen=True)
class Film:
    """The motion (C, N, P, P) of a video, and the frames (E,) of its key events."""

    maps: Floats
    events: Frames

    def crop(self, start: int, stop: int) -> "Film":
        """The frames from `start` to `stop`, with the events among them."""
        inside = (self.events >= start) & (self.events < stop)
        return Film(self.maps[:, start:stop], self.events[inside] - start)

    def extend(self, before: Floats, after: Floats) -> "Film":
        """The same with other motion before and after it."""
        return Film(np.concatenate([before, self.maps, after], axis=1), self.events + before.shape[1])

    @property
    def features(self) -> Floats:
        """The features (N, D), standardised over these frames."""
        return map_features(self.maps, CHOSEN)

    def __len__(self) -> int:
        return self.maps.shape[1]


@dataclass(frozen=True)
class Case:
    """A pair to match: events of the two (E,), and which frames of a are to be left out, and to be kept."""

    a: Film
    b: Film
    outside: Mask
    inside: Mask


def read_films(clips: Clips) -> list[Film]:
    """The videos of a set that have all key events."""
    full = max(len(events) for events in clips.events)
    chosen = [i for i, events in enumerate(clips.events) if len(events) == full]
    films = []
    for i in chosen:
        maps = motion_maps(read_grey(clips.paths[i], CHOSEN.pixels), CHOSEN.directions)
        events = np.array(sorted(clips.events[i].values()))
        films.append(Film(np.stack(maps), events))
    return films


def draw_pairs(count: int, most: int) -> list[tuple[int, int]]:
    """At most so many ordered pairs of `count` videos."""
    pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
    return [pairs[k] for k in np.random.default_rng(0).permutation(len(pairs))[:most]]


def make_cases(films: Sequence[Film], foreign: Sequence[Film], most: int) -> Iterator[tuple[str, Case]]:
    """Name and case of every variant of every pair."""
    rng = np.random.default_rng(1)
    for i, j in draw_pairs(len(films), most):
        a, b = films[i], films[j]
        yield "filmed", _keep_all(a, b)
        for is_start in (True, False):
            yield "cropped", _crop(a, b, rng, is_start=is_start)
        for kind in ("still", "before", "foreign"):
            first, last = (_draw_lead(kind, a, films, foreign, rng) for _ in range(2))
            if rng.random() < 0.5:
                yield kind, _keep_all(a, b.extend(first, last))
            else:
                longer = a.extend(first, last)
                outside = np.ones(len(longer), dtype=bool)
                outside[first.shape[1] : first.shape[1] + len(a)] = False
                yield kind, Case(longer, b, outside, _action(longer))


def _keep_all(a: Film, b: Film) -> Case:
    return Case(a, b, np.zeros(len(a), dtype=bool), _action(a))


def _action(film: Film) -> Mask:
    frames = np.arange(len(film))
    return (frames >= film.events[0]) & (frames <= film.events[-1])


def _crop(a: Film, b: Film, rng: np.random.Generator, *, is_start: bool) -> Case:
    """Crop one of the two within its first or its second half, at the same moment of the action."""
    half = len(a.events) // 2
    k = int(rng.integers(1, half + 1) if is_start else rng.integers(half, len(a.events) - 1))
    share, (before, after) = rng.random(), ((k - 1, k) if is_start else (k, k + 1))
    cuts = [round(f.events[before] + share * (f.events[after] - f.events[before])) for f in (a, b)]
    cuts = [min(max(cut, f.events[before] + 1), f.events[after]) for cut, f in zip(cuts, (a, b), strict=True)]
    spans = [(cut, len(f)) if is_start else (0, cut) for cut, f in zip(cuts, (a, b), strict=True)]
    short_a, short_b = a.crop(*spans[0]), b.crop(*spans[1])
    if rng.random() < 0.5:
        return _keep_all(short_a, Film(b.maps, b.events[k:] if is_start else b.events[: k + 1]))
    frames, known = np.arange(len(a)), Film(a.maps, a.events[k:] if is_start else a.events[: k + 1])
    outside = frames < cuts[0] - SLACK if is_start else frames >= cuts[0] + SLACK
    near = frames >= cuts[0] + SLACK if is_start else frames < cuts[0] - SLACK
    return Case(known, short_b, outside, near & _action(a))


def _draw_lead(
    kind: str, film: Film, films: Sequence[Film], foreign: Sequence[Film], rng: np.random.Generator
) -> Floats:
    """Motion of a fifth to a half of the length of `film`, or less where a video has less to give."""
    count = int(rng.integers(len(film) // 5, len(film) // 2))
    if kind == "still":
        noise = np.quantile(film.maps, 0.1, axis=(1, 2, 3))[:, None, None, None]
        return noise * rng.random((film.maps.shape[0], count, *film.maps.shape[2:]))
    source = (films if kind == "before" else foreign)[
        rng.integers(len(films if kind == "before" else foreign))
    ]
    end = source.events[0] if kind == "before" else len(source)
    return source.maps[:, max(0, end - count) : max(end, 1)]


def score_ends(cases: Iterator[tuple[str, Case]]) -> dict[str, dict[str, Any]]:
    """Errors, precision and recall of every method on every variant."""
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    counts: dict[tuple[str, str], Frames] = defaultdict(lambda: np.zeros(3, dtype=np.int64))
    for name, case in cases:
        a, b = case.a.features, case.b.features
        for method in METHODS:
            found = align(a, b, method=method)  # type: ignore[arg-type]
            errors[name, method] += np.abs(found.indices[case.a.events] - case.b.events).tolist()
            left = ~found.matched
            counts[name, method] += [
                (left & case.outside).sum(),
                (left & case.inside).sum(),
                case.outside.sum(),
            ]
    result: dict[str, dict[str, Any]] = defaultdict(dict)
    for (name, method), values in errors.items():
        right, wrong, wanted = counts[name, method].tolist()
        result[name][method] = {
            "event_error_frames": float(np.median(values)),
            "within_1": round(float(np.mean(np.array(values) <= 1)), 4),
            "within_3": round(float(np.mean(np.array(values) <= 3)), 4),
            "left_out_precision": round(right / (right + wrong), 3) if wanted and right + wrong else None,
            "left_out_recall": round(right / wanted, 3) if wanted else None,
        }
    return result


def score_fractions(paths: Sequence[Path]) -> dict[str, float]:
    """Mean error in frames of whole matches and of positions, within the moving half of each video."""
    whole, fractions = [], []
    for path in paths:
        images = read_grey(path, CHOSEN.pixels)
        length = (len(images) - 1) // 3
        a, b = (map_features(motion_maps(images[k::3], CHOSEN.directions), CHOSEN) for k in (1, 0))
        found = align(a[:length], b, method="dtw")
        motion = np.square(np.diff(images[0::3], axis=0)).mean(axis=(1, 2))[:length]
        moving = motion > np.median(motion)
        truth = np.arange(length) + 1 / 3
        whole += np.abs(found.indices - truth)[moving].tolist()
        fractions += np.abs(found.positions - truth)[moving].tolist()
    return {
        "indices_error_frames": round(float(np.mean(whole)), 3),
        "positions_error_frames": round(float(np.mean(fractions)), 3),
    }


def score_prior(films: Sequence[Film], most: int) -> dict[str, dict[str, float]]:
    """Share of events within 3 frames, by method and weight."""
    features = [film.features for film in films]
    result: dict[str, dict[str, float]] = {}
    for method in ("nearest", "dtw"):
        result[method] = {}
        for weight in WEIGHTS:
            errors = [
                np.abs(found.indices[films[i].events] - films[j].events)
                for i, j in draw_pairs(len(films), most)
                for found in [align(features[i], features[j], method=method, time_prior=weight)]  # type: ignore[arg-type]
            ]
            result[method][f"{weight:g}"] = round(float(np.mean(np.concatenate(errors) <= 3)), 4)
    return result


def main() -> None:
    """Score every set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    clips = {name: read() for name, (read, _) in SETS.items()}
    films = {name: read_films(each) for name, each in clips.items()}
    result: dict[str, Mapping[str, Any]] = {}
    for name, (_, most) in SETS.items():
        foreign = films["robot-train" if name == "golf-train" else "golf-train"]
        result[name] = {
            "videos": len(films[name]),
            "ends": score_ends(make_cases(films[name], foreign, most)),
            "fractions": score_fractions(clips[name].paths),
            "time_prior": score_prior(films[name], most),
        }
        print(name, format_json(result[name]), flush=True)
    if arguments.out:
        write_text(arguments.out, format_json({"provenance": provenance(), "sets": result}), overwrite=True)


if __name__ == "__main__":
    main()
