"""Measure motion while frames are decoded: how much moves, where, and in which of four directions.

A frame is reduced to a small grey image. The motion of a pixel is its change over 1/30 s, split by the
direction of the image gradient (normal flow), and averaged over the cells of a grid. It needs no network, and
it costs a small share of decoding.

Letters: n frames of a chunk, H W pixels.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

DIRECTIONS = ("right", "down", "left", "up")
CELLS = 8  # per side of the grid
MOTION_SHAPE = (len(DIRECTIONS), CELLS, CELLS)  # of one frame
PIXELS = 40  # side of the grey image
GAP_S = 1 / 30  # time between the two frames that are compared
MIN_GAP = 0.25  # in units of GAP_S: over a shorter time, noise is larger than motion
FLAT = 0.02  # gradients well below this have no direction
MIN_SAMPLES = (
    56  # per side of a frame that are read; the reading of every pixel takes longer and gains nothing
)
BLOCK_FRAMES = 16  # measured at a time, so that intermediate arrays stay in the processor's cache
MAX_HISTORY = 64  # earlier frames that are kept, for videos of up to 1,900 frames per second

Floats = NDArray[np.float32]


class MotionMeter:
    """Measures the motion of one video, chunk by chunk. The result does not depend on the chunks."""

    def __init__(self) -> None:
        self._images: Floats = np.empty((0, PIXELS, PIXELS), dtype=np.float32)  # the last frames
        self._times: NDArray[np.float64] = np.empty(0)

    def push(self, frames: NDArray[np.uint8], times: NDArray[np.float64]) -> NDArray[np.float16]:
        """Return the motion (n, 4, 8, 8) of the next frames (n, H, W, 3), shown at `times` (n,) in seconds.

        Directions are right, down, left and up; cells run from top to bottom and from left to right. Each
        frame is compared with the one shown 1/30 s before it, or with the previous one at lower frame rates.
        A value is the mean change of grey per 1/30 s, where white is 1. The first frame of a video has no
        motion: use that of the second.
        """
        if frames.ndim != 4 or frames.shape[-1] != 3 or times.shape != frames.shape[:1]:
            raise ValueError(
                f"expected frames (n, H, W, 3) and times (n,), got {frames.shape} and {times.shape}"
            )
        motion = np.empty((len(frames), *MOTION_SHAPE), dtype=np.float16)
        for start in range(0, len(frames), BLOCK_FRAMES):
            block = slice(start, start + BLOCK_FRAMES)
            motion[block] = self._push_block(reduce_to_grey(frames[block]), times[block])
        return motion

    def _push_block(self, images: Floats, times: NDArray[np.float64]) -> Floats:
        known = len(self._times)
        images, times = np.concatenate([self._images, images]), np.concatenate([self._times, times])
        earlier = find_earlier(times)[known:]
        gaps = np.maximum((times[known:] - times[earlier]) / GAP_S, MIN_GAP).astype(np.float32)
        kept = slice(max(0, min(earlier[-1], len(times) - MAX_HISTORY)), None)
        self._images, self._times = images[kept], times[kept]
        return measure_cells(images[earlier], images[known:], gaps)


def find_earlier(times: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return for each frame the one before it that is nearest to 1/30 s earlier; 0 for the first frame."""
    numbers = np.arange(len(times))
    targets = times - GAP_S
    after = np.minimum(np.searchsorted(times, targets), np.maximum(numbers - 1, 0))
    before = np.maximum(after - 1, 0)
    is_nearer = targets - times[before] < times[after] - targets - 1e-4  # time stamps are rounded
    return np.where(is_nearer, before, after)


def reduce_to_grey(frames: NDArray[np.uint8]) -> Floats:
    """Reduce frames (n, H, W, 3) to grey images (n, 40, 40) in [0, 1] by averaging areas."""
    rows, columns = (max(1, side // MIN_SAMPLES) for side in frames.shape[1:3])
    sampled = frames[:, rows // 2 :: rows, columns // 2 :: columns]
    grey = sampled[..., 1].astype(np.uint16)
    grey *= 2
    grey += sampled[..., 0]
    grey += sampled[..., 2]
    down, across = area_weights(grey.shape[1], PIXELS), area_weights(grey.shape[2], PIXELS)
    images: Floats = down.T @ (grey.astype(np.float32) @ across)
    images /= 4 * 255
    return images


@cache
def area_weights(side: int, parts: int) -> Floats:
    """Return the weights (side, parts) that average `side` pixels over `parts` equal lengths."""
    edges, pixels = np.arange(parts + 1) * (side / parts), np.arange(side)[:, None]
    overlap = np.minimum(edges[1:], pixels + 1) - np.maximum(edges[:-1], pixels)
    return (np.maximum(overlap, 0) * (parts / side)).astype(np.float32)


def measure_cells(earlier: Floats, images: Floats, gaps: Floats) -> Floats:
    """Return the motion (n, 4, 8, 8) between two sets of grey images (n, 40, 40), `gaps` (n,) apart.

    A pixel moves by u = -It Ix / (|gradient| + FLAT) to the right, and v likewise down, where I is grey and
    the gradient is that of the mean of both images.
    """
    both = images + earlier
    x, y = differences(both), differences(both.swapaxes(1, 2)).swapaxes(1, 2)
    speed = np.sqrt(x * x + y * y)
    speed += 4 * FLAT  # x and y are four times the gradient: two images, and a distance of two pixels
    np.divide(earlier - images, speed, out=speed)
    speed /= gaps[:, None, None]
    weights = area_weights(PIXELS, CELLS)
    cells = np.empty((len(images), *MOTION_SHAPE), dtype=np.float32)
    for axis, gradient in enumerate((x, y)):
        moved = gradient * speed
        cells[:, axis] = weights.T @ np.maximum(moved, 0) @ weights
        cells[:, axis + 2] = weights.T @ -np.minimum(moved, 0) @ weights
    return cells


def differences(images: Floats) -> Floats:
    """Return the next pixel minus the previous one along the last axis; at the edges, twice one step."""
    result = np.empty_like(images)
    np.subtract(images[..., 2:], images[..., :-2], out=result[..., 1:-1])
    result[..., 0] = 2 * (images[..., 1] - images[..., 0])
    result[..., -1] = 2 * (images[..., -1] - images[..., -2])
    return result
