"""How well videos align by motion when they are disturbed: camera movement, noise, compression, frame rate.

Golf clips of the training role are disturbed, all of them or every second one, and their motion is measured
by `MotionMeter`. Where the frame rate changes, the motion is read back at the times of the original frames,
so that all errors count the same frames. Rows with a correction try to remove the disturbance from the
motion. In rows with "camera kept" the meter does not remove the motion of the camera.

    python benchmarks/motion_robustness.py --out results/motion_robustness.json
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy when it is imported

import av
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d, shift

from cycleback.files import write_text
from cycleback.provenance import provenance
from cycleback.video import iter_frames
from cycleback.video import motion as motion_module
from cycleback.video.motion import MotionMeter
from motion_features import read_golf, score
from result_file import format_json

Floats = NDArray[np.floating]
Frames = NDArray[np.uint8]  # (N, H, W, 3)
FPS = 30
SIZE = 112  # pixels of a frame


def keep(frames: Frames, number: int) -> Frames:
    """Return the frames unchanged."""
    return frames


def shake(frames: Frames, number: int) -> Frames:
    """Move the window over the frames as a hand-held camera does: slowly, up to 6 pixels from the middle."""
    generator = np.random.default_rng(number)
    path = gaussian_filter1d(generator.normal(size=(len(frames) + 60, 2)), 6, axis=0)[30:-30]
    return move_window(frames, 6 * path / np.abs(path).max())


def pan(frames: Frames, number: int) -> Frames:
    """Move the window over the frames at constant speed, by 20 pixels in the whole clip."""
    return move_window(frames, np.linspace(-10, 10, len(frames))[:, None] * ((0, 1), (0, -1))[number % 2])


def move_window(frames: Frames, path: Floats) -> Frames:
    """Shift each frame by its offset (N, 2) in pixels."""
    moved = [shift(f, (*offset, 0), order=1, mode="nearest") for f, offset in zip(frames, path, strict=True)]
    return np.stack(moved)


def add_noise(frames: Frames, number: int) -> Frames:
    """Add Gaussian noise with a standard deviation of 8 of 255."""
    noise = np.random.default_rng(number).normal(0, 8, frames.shape)
    return np.clip(np.rint(frames + noise), 0, 255).astype(np.uint8)


def compress(frames: Frames, number: int) -> Frames:
    """Encode the frames as H.264 at a constant rate factor of 38, and decode them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.mp4"
        with av.open(str(path), "w") as container:
            stream = container.add_stream("libx264", rate=FPS, options={"crf": "38"})
            stream.height, stream.width, stream.pix_fmt = *frames.shape[1:3], "yuv420p"
            for frame in frames:
                container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
            container.mux(stream.encode())
        return np.concatenate([chunk.frames for chunk in iter_frames(path)])


DISTURBANCES: Mapping[str, Callable[[Frames, int], Frames]] = {
    "none": keep,
    "shaken": shake,
    "panned": pan,
    "noise": add_noise,
    "crf 38": compress,
}
RATES = {"every second frame": Fraction(1, 2), "120 fps": Fraction(4)}


def change_rate(frames: Frames, rate: Fraction) -> Frames:
    """Drop frames, or blend linearly between them, to `rate` times the frame rate."""
    places = np.arange(0, len(frames) - 1 + 1e-9, float(1 / rate))
    before = np.floor(places).astype(int)
    after = np.minimum(before + 1, len(frames) - 1)
    share = (places - before)[:, None, None, None].astype(np.float32)
    return np.rint(frames[before] * (1 - share) + frames[after] * share).astype(np.uint8)


def measure(frames: Frames, rate: Fraction = Fraction(1)) -> Floats:
    """Return the motion (N, 4, 8, 8) at the times of the original frames."""
    changed = frames if rate == 1 else change_rate(frames, rate)
    motion = MotionMeter().push(changed, np.arange(len(changed)) / float(FPS * rate)).astype(np.float32)
    motion[0] = motion[1]
    nearest = np.rint(np.arange(len(frames)) * float(rate) - 1e-6).astype(int)
    return motion[np.minimum(nearest, len(motion) - 1)]


@contextmanager
def without_removal() -> Iterator[None]:
    """Measure motion that includes the motion of the camera."""
    remove = motion_module.remove_shift
    motion_module.remove_shift = lambda change, x, y: change
    try:
        yield
    finally:
        motion_module.remove_shift = remove


def subtract_median(motion: Floats) -> Floats:
    """Subtract the median over the cells from each direction of each frame."""
    return np.maximum(motion - np.median(motion, axis=(2, 3), keepdims=True), 0)


def subtract_floor(motion: Floats) -> Floats:
    """Subtract from each cell what it has in nine of ten frames."""
    return np.maximum(motion - np.quantile(motion, 0.1, axis=0), 0)


CORRECTIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "": lambda motion: motion,
    "less the median of the cells": subtract_median,
    "less the floor of each cell": subtract_floor,
}


def features(motion: Floats) -> Floats:
    """Turn motion (N, 4, 8, 8) into the features of the row `CHOSEN` of motion_features.py."""
    grids, numbers = [], np.arange(len(motion))
    for cells in (1, 2, 4, 8):
        side = 8 // cells
        means = motion.reshape(len(motion), 4, cells, side, cells, side).mean(axis=(3, 5))
        grid = gaussian_filter1d(np.log1p(20 * means.reshape(len(motion), -1)), 1.0, axis=0)
        grid -= grid.mean(axis=0)
        grids.append(grid / (grid.std(axis=0) + 1e-6) / np.sqrt(grid.shape[1]))
    joined = np.concatenate(grids, axis=1)
    shifted = [0.7 * joined[np.clip(numbers + step, 0, len(motion) - 1)] for step in (-4, 4)]
    return np.concatenate([joined, *shifted], axis=1)


def read_clip(path: Path) -> Frames:
    """Read all frames of a clip."""
    return np.concatenate([chunk.frames for chunk in iter_frames(path, size=(SIZE, SIZE))])


def main() -> None:
    """Score every disturbance with every correction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--clips", type=int, default=30, help="golf clips (default: 30)")
    arguments = parser.parse_args()
    clips = read_golf("train", arguments.clips)
    videos = [read_clip(path) for path in clips.paths]
    motions = {
        name: [measure(disturb(video, number)) for number, video in enumerate(videos)]
        for name, disturb in DISTURBANCES.items()
    }
    with without_removal():
        motions["shaken, camera kept"] = [measure(shake(video, i)) for i, video in enumerate(videos)]
        motions["none, camera kept"] = [measure(video) for video in videos]
    motions |= {name: [measure(video, rate) for video in videos] for name, rate in RATES.items()}
    rows: dict[str, dict[str, object]] = {}
    for name, disturbed in motions.items():
        for label, correct in CORRECTIONS.items():
            vectors = [features(correct(motion)) for motion in disturbed]
            plain = [features(correct(motion)) for motion in motions["none"]]
            mixed = [(vectors, plain)[i % 2][i] for i in range(len(videos))]
            row = f"{name}, {label}" if label else name
            rows[row] = {"all": score(vectors, clips.events), "half": score(mixed, clips.events)}
            print(f"{row:<44}", rows[row], flush=True)
    if arguments.out:
        content = {"provenance": provenance(), "clips": len(videos), "rows": rows}
        write_text(arguments.out, format_json(content), overwrite=True)


if __name__ == "__main__":
    main()
