"""How well videos align by motion alone, without a network and without training.

Each row is one way to turn a video into numbers per frame. Frames are reduced to a small grey image; the
motion of a pixel is its change over time, split by the direction of the image gradient; motion is averaged
over the cells of several grids, compressed by a logarithm, smoothed over time and standardised per video.
Key events are carried between all pairs of videos by nearest neighbours and by dynamic time warping.

Choose by the sets `golf-train` and `robot-train`; the others are for reporting.

    python benchmarks/motion_features.py --out results/motion_features.json
"""

import argparse
import csv
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy when it is imported

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from cycleback.data import read_dataset
from cycleback.evaluation import event_error
from cycleback.files import write_text
from cycleback.prepare.golfdb import EVENTS
from cycleback.provenance import provenance
from cycleback.video import iter_frames
from result_file import format_json

Floats = NDArray[np.floating]
GREY = np.array([0.299, 0.587, 0.114], dtype=np.float32)
DATA = Path(os.environ.get("CYCLEBACK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SEED = 0


@dataclass(frozen=True)
class Motion:
    """Settings of the features.

    Attributes:
        pixels: side of the grey image.
        directions: 4 for motion to the right, down, left and up; 1 for the absolute change of a pixel.
        grids: cells per side of each grid.
        gain: factor before the logarithm.
        smoothing: standard deviation of the Gaussian over time, in frames.
        context: frames before and after each frame that are appended, at weight 0.7.
        is_standardised: divide each number by its standard deviation in the video.
    """

    pixels: int = 40
    directions: int = 4
    grids: tuple[int, ...] = (1, 2, 4, 8)
    gain: float = 20.0
    smoothing: float = 1.0
    context: tuple[int, ...] = (4,)
    is_standardised: bool = True


CHOSEN = Motion()
ROWS: Mapping[str, Motion] = {
    "absolute 4x4": Motion(directions=1, grids=(4,), context=()),
    "absolute, pyramid": replace(CHOSEN, directions=1, context=()),
    "directions": replace(CHOSEN, context=()),
    "directions, context 4": CHOSEN,
    "context 2": replace(CHOSEN, context=(2,)),
    "context 4 and 8": replace(CHOSEN, context=(4, 8)),
    "8 directions": replace(CHOSEN, directions=8),
    "grids 2 and 4": replace(CHOSEN, grids=(2, 4)),
    "grids 2 to 16": replace(CHOSEN, grids=(2, 4, 8, 16)),
    "20 pixels": replace(CHOSEN, pixels=20),
    "80 pixels": replace(CHOSEN, pixels=80),
    "gain 5": replace(CHOSEN, gain=5.0),
    "gain 80": replace(CHOSEN, gain=80.0),
    "smoothing 0.5": replace(CHOSEN, smoothing=0.5),
    "smoothing 2": replace(CHOSEN, smoothing=2.0),
    "not standardised": replace(CHOSEN, is_standardised=False),
}


@dataclass(frozen=True)
class Clips:
    """The videos of a set: paths, and the frame of each key event."""

    paths: Sequence[Path]
    events: Sequence[Mapping[str, int]]


def read_golf(role: str, count: int) -> Clips:
    """Golf swings of one role, drawn with a fixed seed."""
    with (DATA / "golf" / "labels.csv").open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["role"] == role]
    chosen = sorted(np.random.default_rng(SEED).permutation(len(rows))[:count])
    return Clips(
        [DATA / "golf" / "videos" / f"{rows[i]['id']}.mp4" for i in chosen],
        [{event: int(rows[i][event]) for event in EVENTS} for i in chosen],
    )


def read_folder(name: str, split: str | None = None, count: int | None = None) -> Clips:
    """The labelled videos of a data set folder."""
    dataset = read_dataset(DATA / name)
    records = [r for r in (dataset if split is None else dataset.split(split)) if r.events][:count]
    return Clips([r.path for r in records], [{k: round(v) for k, v in r.events.items()} for r in records])


SETS: Mapping[str, Callable[[], Clips]] = {
    "golf-train": lambda: read_golf("train", 100),
    "robot-train": lambda: read_folder("robot", "train", 40),
    "golf-val": lambda: read_golf("val", 191),
    "golf-slow": lambda: read_golf("val_slow", 50),
    "robot-val": lambda: read_folder("robot", "val"),
    "square": lambda: read_folder("gesture_square"),
    "tick": lambda: read_folder("gesture_tick"),
}


def read_grey(path: Path, pixels: int) -> Floats:
    """The video as small grey images (N, P, P) in [0, 1]."""
    chunks = [chunk.frames @ GREY / 255 for chunk in iter_frames(path, size=(pixels, pixels))]
    return np.concatenate(chunks).astype(np.float32)


def motion_maps(images: Floats, directions: int) -> list[Floats]:
    """Motion of each pixel, one map (N, P, P) per direction; the first frame repeats the second."""
    change = np.diff(images, axis=0)
    if directions == 1:
        maps = [np.abs(change)]
    else:
        y, x = np.gradient((images[1:] + images[:-1]) / 2, axis=(1, 2))
        strength = np.sqrt(x**2 + y**2) + 0.02  # flat regions have no direction
        angles = 2 * np.pi * np.arange(directions) / directions
        maps = [np.maximum(-change * (np.cos(a) * x + np.sin(a) * y) / strength, 0) for a in angles]
    return [np.concatenate([each[:1], each]) for each in maps]


def average_cells(maps: Floats, cells: int) -> Floats:
    """Means (N, cells * cells) over a grid of cells."""
    edges = np.linspace(0, maps.shape[1], cells + 1).astype(int)[:-1]
    sums = np.add.reduceat(np.add.reduceat(maps, edges, axis=1), edges, axis=2)
    return sums.reshape(len(maps), -1) * (cells / maps.shape[1]) ** 2


def motion_features(images: Floats, settings: Motion) -> Floats:
    """Features (N, D) of a video."""
    return map_features(motion_maps(images, settings.directions), settings)


def map_features(maps: Sequence[Floats], settings: Motion) -> Floats:
    """Features (N, D) of the motion of a video, one map (N, P, P) per direction; grids have equal weights."""
    grids = []
    for cells in settings.grids:
        means = np.concatenate([average_cells(each, cells) for each in maps], axis=1)
        grid = gaussian_filter1d(np.log1p(settings.gain * means), settings.smoothing, axis=0)
        grid -= grid.mean(axis=0)
        scale = grid.std(axis=0) if settings.is_standardised else grid.std()
        grids.append(grid / (scale + 1e-6) / np.sqrt(grid.shape[1]))
    features, frames = np.concatenate(grids, axis=1), np.arange(len(maps[0]))
    offsets = [sign * step for step in settings.context for sign in (-1, 1)]
    shifted = [0.7 * features[np.clip(frames + offset, 0, len(frames) - 1)] for offset in offsets]
    return np.concatenate([features, *shifted], axis=1)


def score(features: Sequence[Floats], events: Sequence[Mapping[str, int]]) -> dict[str, float | None]:
    """Median error in frames by nearest neighbours and by DTW, and the share of events within 1 and 3."""
    nearest = event_error(features, events, method="nearest")
    warped = event_error(features, events, method="dtw")
    return {
        "event_error_frames": nearest.median_frames,
        "event_error_frames_dtw": warped.median_frames,
        "pce1_dtw": round(warped.within[1], 4),
        "pce3_dtw": round(warped.within[3], 4),
    }


def main() -> None:
    """Score every row on every set that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--rows", default=";".join(ROWS), help="rows to score, separated by semicolons")
    arguments = parser.parse_args()
    result: dict[str, dict[str, object]] = {}
    for name, read in SETS.items():
        clips = read()
        sizes = {ROWS[row].pixels for row in arguments.rows.split(";")}
        images = {pixels: [read_grey(path, pixels) for path in clips.paths] for pixels in sizes}
        clock = [np.arange(len(video))[:, None] / len(video) for video in images[min(sizes)]]
        rows = {"time-only": score(clock, clips.events)}
        for row in arguments.rows.split(";"):
            features = [motion_features(video, ROWS[row]) for video in images[ROWS[row].pixels]]
            rows[row] = score(features, clips.events)
            print(f"{name:<12}{row:<24}", *(f"{value:8.3f}" for value in rows[row].values()), flush=True)
        result[name] = {"videos": len(clips.paths), "rows": rows}
    if arguments.out:
        settings = {row: asdict(motion) for row, motion in ROWS.items()}
        content = {"provenance": provenance(), "settings": settings, "sets": result}
        write_text(arguments.out, format_json(content), overwrite=True)


if __name__ == "__main__":
    main()
