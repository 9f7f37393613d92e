"""The frames of a video at given positions, one after another, in memory that does not grow with the video.

Shapes: T output frames, H W pixels.
"""

from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cycleback.video import iter_frames, read_frames

AHEAD_FRAMES = 8  # decoded at a time from a file that is read in order
Image = NDArray[np.uint8]
Images = Generator[Image, None, None]
Positions = NDArray[np.float64]


def frames_at(
    path: Path,
    positions: Positions,
    *,
    size: tuple[int, int],
    blend: bool = False,
    stay_open: bool = True,
    chunk_frames: int = 32,
) -> Images:
    """Images (H, W, 3) of a video at `positions` (T,): frame numbers that may lie between frames.

    Args:
        size: (H, W) of the images.
        blend: mix the two frames beside a position; otherwise the nearest is taken.
        stay_open: read on in one open file where positions never fall. A decoder holds on to many frames, so
            for hundreds of videos at once each chunk is better read by number.
        chunk_frames: images read at a time by number.
    """
    wanted = positions if blend else np.rint(positions)
    if stay_open and (np.diff(wanted) >= 0).all():
        return _in_order(path, wanted, size=size)
    return _by_number(path, wanted, size=size, chunk_frames=chunk_frames)


def _in_order(path: Path, positions: Positions, *, size: tuple[int, int]) -> Images:
    """Decode from the start, once; a file shorter than promised holds its last frame."""
    with closing(_each_frame(path, size)) as frames:
        number = 0
        before = current = next(frames)
        for position in positions.tolist():
            while number < position:
                before, current = current, next(frames, current)
                number += 1
            yield _mixed(before, current, number - position)


def _each_frame(path: Path, size: tuple[int, int]) -> Images:
    for chunk in iter_frames(path, size=size, chunk_frames=AHEAD_FRAMES):
        yield from chunk.frames


def _by_number(path: Path, positions: Positions, *, size: tuple[int, int], chunk_frames: int) -> Images:
    """Seek to each chunk."""
    for start in range(0, len(positions), chunk_frames):
        part = positions[start : start + chunk_frames]
        after = np.ceil(part).astype(np.int64)
        befores = np.maximum(after - 1, 0) if (part != after).any() else after
        numbers, places = np.unique(np.concatenate([befores, after]), return_inverse=True)
        frames = read_frames(path, numbers, size=size)
        for row, position in enumerate(part.tolist()):
            before, current = frames[places[row]], frames[places[len(part) + row]]
            yield _mixed(before, current, float(after[row]) - position)


def _mixed(before: Image, current: Image, share_before: float) -> Image:
    """`current`, with `share_before` in [0, 1) of the frame before it."""
    if share_before <= 0:
        return current
    mixed: Image = np.rint(before * share_before + current * (1 - share_before)).astype(np.uint8)
    return mixed
