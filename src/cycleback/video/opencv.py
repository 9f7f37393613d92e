"""Read video by OpenCV where PyAV is not installed: every frame in order, no sound, nothing else.

Letters: T sampled frames, N frames of a whole video, H W pixels.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.errors import DamagedVideoWarning, VideoError
from cycleback.video.index import SLACK
from cycleback.video.info import FrameChunk, VideoInfo
from cycleback.video.scaling import Fit, Size, centre_crop, covering_size
from cycleback.video.source import check_range
from cycleback.video.timing import average_rate, is_variable


def probe(cv2: Any, file: Path) -> VideoInfo:
    """Facts about `file`; all frames are decoded to count them, and sound is not seen."""
    capture = _open(cv2, file)
    rate = capture.get(cv2.CAP_PROP_FPS) or 25.0
    codec = int(capture.get(cv2.CAP_PROP_FOURCC)).to_bytes(4, "little").decode("ascii", errors="replace")
    height, width = next(_images(cv2, capture, file))[0].shape[:2]
    times = frame_times(cv2, file)
    return VideoInfo(
        path=file,
        width=width,
        height=height,
        num_frames=len(times),
        fps=average_rate(times, 1 / rate, stated=rate),
        duration_s=float(times[-1]) + 1 / rate,
        codec=codec.strip("\0 ").lower(),
        pixel_format="",
        rotation=int(capture.get(cv2.CAP_PROP_ORIENTATION_META)) % 360,
        is_variable_rate=is_variable(times),
        has_audio=False,
        audio_rate=None,
        audio_channels=0,
    )


def frame_times(cv2: Any, file: Path) -> NDArray[np.float64]:
    """Seconds (N,) at which each frame is shown; the first is 0.0."""
    capture = _open(cv2, file)
    stamps = []
    while capture.grab():
        stamps.append(capture.get(cv2.CAP_PROP_POS_MSEC) / 1000)
    if not stamps:
        raise VideoError(f"no frame of {file} can be decoded; pip install av for a better reader")
    return np.array(stamps, dtype=np.float64) - float(stamps[0])


def iter_frames(
    cv2: Any, file: Path, *, size: Size | None, chunk_frames: int, fit: Fit
) -> Iterator[FrameChunk]:
    """All frames in order, `chunk_frames` at a time."""
    frames: list[NDArray[np.uint8]] = []
    times: list[float] = []
    start = 0
    for image, seconds in _images(cv2, _open(cv2, file), file):
        frames.append(_resized(cv2, image, size, fit))
        times.append(seconds)
        if len(times) == chunk_frames:
            yield FrameChunk(np.stack(frames), np.array(times), start)
            start, frames, times = start + chunk_frames, [], []
    if frames:
        yield FrameChunk(np.stack(frames), np.array(times), start)


def read_ascending(
    cv2: Any, file: Path, numbers: NDArray[np.int64], *, size: Size | None, fit: Fit
) -> NDArray[np.uint8]:
    """Frames (T, H, W, 3) at frame `numbers` (T >= 1,), which ascend."""
    wanted = set(numbers.tolist())
    frames = []
    count = 0
    for count, (image, _) in enumerate(_images(cv2, _open(cv2, file), file), start=1):
        if count - 1 in wanted:
            frames.append(_resized(cv2, image, size, fit))
    check_range(file, numbers, count)
    return np.stack(frames)


def _open(cv2: Any, file: Path) -> Any:
    """A cv2.VideoCapture of `file`."""
    capture = cv2.VideoCapture(str(file))
    if not capture.isOpened():
        raise VideoError(f"{file} is not a video, or its header is damaged; does it play in a player?")
    return capture


def _images(cv2: Any, capture: Any, file: Path) -> Iterator[tuple[NDArray[np.uint8], float]]:
    """(RGB image (H, W, 3), seconds since the first) of each frame."""
    origin, count = 0.0, 0
    while True:
        good, image = capture.read()
        if not good:
            break
        stamp = capture.get(cv2.CAP_PROP_POS_MSEC) / 1000
        origin = stamp if count == 0 else origin
        count += 1
        yield cv2.cvtColor(image, cv2.COLOR_BGR2RGB), stamp - origin
    if count == 0:
        raise VideoError(f"no frame of {file} can be decoded; pip install av for a better reader")
    _warn_if_short(file, kept=count, promised=int(capture.get(cv2.CAP_PROP_FRAME_COUNT)))


def _warn_if_short(file: Path, *, kept: int, promised: int) -> None:
    """Say so when the header promises clearly more frames; OpenCV ends without a word."""
    if promised - kept > max(3, SLACK * kept):
        advice = "pip install av, which can tell a damaged file from a trimmed one"
        message = f"kept {kept} of about {promised} frames of {file}; {advice}"
        warnings.warn(message, DamagedVideoWarning, stacklevel=3)


def _resized(cv2: Any, image: NDArray[np.uint8], size: Size | None, fit: Fit) -> NDArray[np.uint8]:
    """Image (H, W, 3) at `size`."""
    if size is None:
        return image
    height, width = size if fit == "stretch" else covering_size(image.shape[:2], size)
    scaled: NDArray[np.uint8] = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    return centre_crop(scaled, size)
