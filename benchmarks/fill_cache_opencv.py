"""Fill a frame cache with OpenCV, for machines that have no PyAV.

`cycleback train` reads frames from the cache, so a data set whose frames are all cached trains without PyAV.
Only the stream "pose" reads the videos themselves: leave it out, or bring poses that were found on another
machine by `cycleback embed --poses`.

The entries are the same as those PyAV fills: same key, size, fit, times and motion. Pixels differ slightly,
because OpenCV converts colours in its own way.

    python benchmarks/fill_cache_opencv.py videos/ --recipe fast data.frame_size=128
    cycleback train videos/ --recipe fast data.frame_size=128 'encoder.streams=["appearance", "motion"]'
    python benchmarks/fill_cache_opencv.py videos/ --poses videos.poses
"""

import argparse
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.data import FrameCache, VideoRecord, read_dataset
from cycleback.embeddings.poses import PoseCache
from cycleback.errors import DamagedVideoWarning, VideoError
from cycleback.recipe import load_recipe
from cycleback.video import FrameChunk
from cycleback.video.scaling import Fit, Size, cover_size, crop_centre

CHUNK_FRAMES = 64
SLACK = 0.02  # share of frames by which a header may be wrong


def iter_frames(path: Path, *, size: Size, fit: Fit) -> Iterator[FrameChunk]:
    """Yield all frames of a video in chunks, like `cycleback.video.iter_frames`."""
    frames: list[NDArray[np.uint8]] = []
    times: list[float] = []
    start = 0
    for image, seconds in decode(path):
        frames.append(scale(image, size=size, fit=fit))
        times.append(seconds)
        if len(times) == CHUNK_FRAMES:
            yield FrameChunk(np.stack(frames), np.array(times), start)
            start, frames, times = start + CHUNK_FRAMES, [], []
    if frames:
        yield FrameChunk(np.stack(frames), np.array(times), start)


def decode(path: Path) -> Iterator[tuple[NDArray[np.uint8], float]]:
    """Yield each frame as RGB (H, W, 3) with its seconds since the first frame."""
    cv2: Any = import_module("cv2")
    capture = cv2.VideoCapture(str(path))
    if not capture.isOpened():
        raise VideoError(f"{path} is not a video, or its header is damaged; does it play in a player?")
    origin, count = 0.0, 0
    while True:
        is_read, image = capture.read()
        if not is_read:
            break
        seconds = capture.get(cv2.CAP_PROP_POS_MSEC) / 1000
        origin = seconds if count == 0 else origin
        count += 1
        yield cv2.cvtColor(image, cv2.COLOR_BGR2RGB), seconds - origin
    if count == 0:
        raise VideoError(f"no frame of {path} can be decoded; record or copy it again")
    promised = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
    if promised - count > max(3, SLACK * count):
        message = f"{path} is damaged or cut short: kept {count} of about {promised} frames"
        warnings.warn(message, DamagedVideoWarning, stacklevel=2)


def scale(image: NDArray[np.uint8], *, size: Size, fit: Fit) -> NDArray[np.uint8]:
    """Scale an image (H, W, 3) to `size`."""
    cv2: Any = import_module("cv2")
    height, width = cover_size((image.shape[0], image.shape[1]), size) if fit == "crop" else size
    return crop_centre(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), size)


def keep_poses(cache: FrameCache, record: VideoRecord, folder: Path) -> None:
    """Put the poses that `cycleback embed --poses` wrote for a video beside its cached frames."""
    with np.load(folder / f"{record.name}.npz") as found:
        key_points, scores = found["key_points"], found["scores"]  # (N, 17, 2) as x, y in pixels, (N, 17)
    height = next(decode(record.path))[0].shape[0]
    poses = np.concatenate([key_points[..., ::-1] / height, scores[..., None]], axis=-1)
    PoseCache(cache).keep(record, poses.astype(np.float32))


def main() -> None:
    """Parse the command line and fill the cache."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path, help="folder of videos")
    parser.add_argument("overrides", nargs="*", help="settings of the training, such as data.frame_size=128")
    parser.add_argument("--recipe", help="recipe of the training; it sets the frame size and fit")
    parser.add_argument("--cache", type=Path, help="folder of the cache (default: the one `train` uses)")
    parser.add_argument("--poses", type=Path, help="folder of poses found elsewhere, as NAME.npz")
    arguments = parser.parse_args()
    data = load_recipe(arguments.recipe, arguments.overrides).data
    size = (data.frame_size, data.frame_size)
    cache = FrameCache(arguments.cache, size=size, fit=data.fit, decode=iter_frames)
    records = read_dataset(arguments.directory).records
    cache.fill(records)
    for record in records if arguments.poses else ():
        keep_poses(cache, record, arguments.poses)
    print(f"{len(records)} videos are in {cache.root}")


if __name__ == "__main__":
    main()
