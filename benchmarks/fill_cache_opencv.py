"""Fill a frame cache with OpenCV, for machines that have no PyAV.

`cycleback train` reads frames from the cache, so a data set whose frames are all cached trains without PyAV.
The entries are the same as those PyAV fills: same key, size, fit and times. Pixels differ slightly, because
OpenCV converts colours in its own way.

    python benchmarks/fill_cache_opencv.py videos/ --recipe fast data.frame_size=128
    cycleback train videos/ --recipe fast data.frame_size=128
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
from cycleback.data.cache import open_entry, write_entry
from cycleback.errors import DamagedVideoWarning, VideoError
from cycleback.recipe import load_recipe
from cycleback.video import FrameChunk
from cycleback.video.scaling import cover_size, crop_centre

CHUNK_FRAMES = 64
SLACK = 0.02  # share of frames by which a header may be wrong


def fill_cache(records: list[VideoRecord], cache: FrameCache) -> int:
    """Decode the video files that are not in the cache yet; returns how many."""
    filled = 0
    for record in records:
        if record.kind != "video" or open_entry(cache.folder(record), cache.size) is not None:
            continue
        chunks = iter_frames(record.path, cache)
        write_entry(cache.folder(record), chunks, size=cache.size, source=str(record.path))
        filled += 1
    return filled


def iter_frames(path: Path, cache: FrameCache) -> Iterator[FrameChunk]:
    """Yield all frames of a video in chunks, at the size and fit of the cache."""
    frames: list[NDArray[np.uint8]] = []
    times: list[float] = []
    start = 0
    for image, seconds in decode(path):
        frames.append(scale(image, cache))
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


def scale(image: NDArray[np.uint8], cache: FrameCache) -> NDArray[np.uint8]:
    """Scale an image (H, W, 3) to the size of the cache."""
    cv2: Any = import_module("cv2")
    target = cache.size
    if cache.fit == "crop":
        target = cover_size((image.shape[0], image.shape[1]), cache.size)
    scaled = cv2.resize(image, target[::-1], interpolation=cv2.INTER_AREA)
    return crop_centre(scaled, cache.size)


def main() -> None:
    """Parse the command line and fill the cache."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path, help="folder of videos")
    parser.add_argument("overrides", nargs="*", help="settings of the training, such as data.frame_size=128")
    parser.add_argument("--recipe", help="recipe of the training; it sets the frame size and fit")
    parser.add_argument("--cache", type=Path, help="folder of the cache (default: the one `train` uses)")
    arguments = parser.parse_args()
    data = load_recipe(arguments.recipe, arguments.overrides).data
    cache = FrameCache(arguments.cache, size=(data.frame_size, data.frame_size), fit=data.fit)
    records = list(read_dataset(arguments.directory).records)
    print(f"{fill_cache(records, cache)} of {len(records)} videos decoded into {cache.root}")


if __name__ == "__main__":
    main()
