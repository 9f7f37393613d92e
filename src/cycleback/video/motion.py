"""Measure motion while frames are decoded: how much moves, where, and in which of four directions.

A frame is reduced to a small grey image. The motion of a pixel is its change over 1/30 s, split by the
direction of the image gradient (normal flow), and averaged over the cells of a grid. It needs no network, and
it costs a small share of decoding.

Two pairs of functions compute it, with the same result up to rounding:

    reduce_to_grey, measure_cells      in numpy, for several frames at a time
    reduce_by_pixel, measure_by_pixel  pixel by pixel; numba (extra `fast`) compiles them at first use

Letters: n frames of a chunk, H W pixels.
"""

from collections.abc import Callable
from functools import cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from cycleback.compilation import compile_loops

DIRECTIONS = ("right", "down", "left", "up")
CELLS = 8  # per side of the grid
MOTION_SHAPE = (len(DIRECTIONS), CELLS, CELLS)  # of one frame
PIXELS = 40  # side of the grey image
GAP_S = 1 / 30  # time between the two frames that are compared
MIN_GAP = 0.25  # in units of GAP_S: over a shorter time, noise is larger than motion
FLAT = 0.02  # gradients well below this have no direction
EXPLAINED = (0.05, 0.15)  # share of the change from which a shift begins to count, and counts in full
TEXTURE = (0.1, 0.3)  # share of the pixels with texture, likewise
RIDGE = 4e-3  # keeps the shift of an image without texture at zero
MIN_BLOCKS = 56  # per side of a frame; fewer would blur the grey image
BLOCK_FRAMES = 16  # measured at a time, so that intermediate arrays stay in the processor's cache
MAX_HISTORY = 64  # earlier frames that are kept, for videos of up to 1,900 frames per second

ROUNDING = frozenset({"reassoc", "contract", "arcp", "nsz"})  # what a compiler may do to sums and quotients

Floats = NDArray[np.float32]
Kernels = tuple[Callable[[NDArray[np.uint8]], Floats], Callable[[Floats, Floats, Floats], Floats]]


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
        to_grey, to_cells = fastest_kernels()
        known = len(self._times)
        frames = np.ascontiguousarray(frames)
        blocks = [slice(start, start + BLOCK_FRAMES) for start in range(0, len(frames), BLOCK_FRAMES)]
        images = np.concatenate([self._images, *(to_grey(frames[block]) for block in blocks)])
        times = np.concatenate([self._times, times])
        earlier = find_earlier(times)
        gaps = np.maximum((times - times[earlier]) / GAP_S, MIN_GAP).astype(np.float32)[known:]
        motion = np.empty((len(frames), *MOTION_SHAPE), dtype=np.float16)
        for block in blocks:
            before = images[earlier[known:][block]]
            motion[block] = to_half(to_cells(before, images[known:][block], gaps[block]))
        oldest = max(earlier[-1:].max(initial=0), len(times) - MAX_HISTORY)
        self._images, self._times = images[oldest:].copy(), times[oldest:]
        return motion


def find_earlier(times: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return for each frame the one before it that is nearest to 1/30 s earlier; 0 for the first frame."""
    numbers = np.arange(len(times))
    targets = times - GAP_S
    after = np.minimum(np.searchsorted(times, targets), np.maximum(numbers - 1, 0))
    before = np.maximum(after - 1, 0)
    is_nearer = targets - times[before] < times[after] - targets - 1e-4  # time stamps are rounded
    return np.where(is_nearer, before, after)


def reduce_to_grey(frames: NDArray[np.uint8]) -> Floats:
    """Reduce frames (n, H, W, 3) to grey images (n, 40, 40) in [0, 1] by averaging areas.

    A large frame is divided into blocks, and four samples of each block count: two of green, one of red and
    one of blue, as in the sensor of a camera. Events align as well as with all pixels, in less time.
    """
    block = max(1, min(frames.shape[1:3]) // MIN_BLOCKS)
    first, second = block // 4, block // 4 + block // 2
    rows, columns = frames.shape[1] // block, frames.shape[2] // block
    grey = np.zeros((len(frames), rows, columns), dtype=np.uint16)
    samples = (first, first, 1), (first, second, 0), (second, first, 2), (second, second, 1)
    for top, left, channel in samples:
        grey += frames[:, top::block, left::block, channel][:, :rows, :columns]
    across, down = area_weights(columns, PIXELS), area_weights(rows, PIXELS)
    images: Floats = down.T @ (grey.astype(np.float32) @ across)
    images /= 4 * 255
    return images


@cache
def area_weights(side: int, parts: int) -> Floats:
    """Return the weights (side, parts) that average `side` pixels over `parts` equal lengths."""
    edges, pixels = np.arange(parts + 1) * (side / parts), np.arange(side)[:, None]
    overlap = np.minimum(edges[1:], pixels + 1) - np.maximum(edges[:-1], pixels)
    weights: Floats = (np.maximum(overlap, 0) * (parts / side)).astype(np.float32)
    return weights


def measure_cells(earlier: Floats, images: Floats, gaps: Floats) -> Floats:
    """Return the motion (n, 4, 8, 8) between two sets of grey images (n, 40, 40), `gaps` (n,) apart.

    A pixel moves by u = -It Ix / (|gradient| + FLAT) to the right, and v likewise down, where I is grey and
    the gradient is that of the mean of both images.
    """
    both = images + earlier
    flow = np.empty((2, *both.shape), dtype=np.float32)
    x, y = flow
    np.subtract(both.reshape(-1)[2:], both.reshape(-1)[:-2], out=x.reshape(-1)[1:-1])  # faster than by rows
    x[:, :, 0] = 2 * (both[:, :, 1] - both[:, :, 0])
    x[:, :, -1] = 2 * (both[:, :, -1] - both[:, :, -2])
    np.subtract(both[:, 2:], both[:, :-2], out=y[:, 1:-1])
    y[:, 0] = 2 * (both[:, 1] - both[:, 0])
    y[:, -1] = 2 * (both[:, -1] - both[:, -2])
    speed = x * x
    speed += y * y
    np.sqrt(speed, out=speed)
    speed += 4 * FLAT  # x and y are four times the gradient: two images, and a distance of two pixels
    speed *= gaps[:, None, None]
    np.divide(remove_shift(earlier - images, x, y), speed, out=speed)
    flow *= speed
    weights = area_weights(PIXELS, CELLS)
    total, size = weights.T @ (flow @ weights), weights.T @ (np.abs(flow, out=flow) @ weights)  # (2, n, 8, 8)
    cells: Floats = np.concatenate([size + total, size - total]).swapaxes(0, 1)
    cells *= 0.5
    np.maximum(cells, 0, out=cells)  # rounding may leave -1e-9
    return cells


def remove_shift(change: Floats, x: Floats, y: Floats) -> Floats:
    """Subtract from `change` (n, 40, 40) what a shift of the whole image by a moving camera explains.

    The shift is fitted by least squares to the differences `x` and `y`. It counts if most of the image has
    texture and the shift explains the change there. Otherwise an object moves, and its motion stays.
    """
    c, px, py = (each[:, ::2, ::2].reshape(len(change), -1) for each in (change, x, y))  # 400 pixels suffice
    pairs = (c, px), (c, py), (px, py), (px, px), (py, py)
    cx, cy, xy, xx, yy = (np.einsum("np,np->n", one, other) for one, other in pairs)
    xx += RIDGE
    yy += RIDGE
    determinant = xx * yy - xy * xy
    right, down = (yy * cx - xy * cy) / determinant, (xx * cy - xy * cx) / determinant
    strength = px * px + py * py
    strength += (4 * FLAT) ** 2
    texture = 1 - (4 * FLAT) ** 2 * (1 / strength).mean(axis=1)
    np.sqrt(strength, out=strength)
    deviation = c - right[:, None] * px - down[:, None] * py
    left, whole = (np.abs(each / strength).sum(axis=1) for each in (deviation, c))
    explained = 1 - left / np.maximum(whole, 1e-6)
    share = ramp(explained, EXPLAINED) * ramp(texture, TEXTURE)
    change -= (share * right)[:, None, None] * x
    change -= (share * down)[:, None, None] * y
    return change


def ramp(values: Floats, limits: tuple[float, float]) -> Floats:
    """Return 0 below the limits, 1 above them, and a straight line between."""
    line: Floats = (values - limits[0]) / (limits[1] - limits[0])
    return line.clip(0, 1)


def reduce_by_pixel(frames: NDArray[np.uint8]) -> Floats:
    """Do what `reduce_to_grey` does, one frame at a time."""
    block = max(1, min(frames.shape[1], frames.shape[2]) // MIN_BLOCKS)
    first, second, step = block // 4, block // 4 + block // 2, 3 * block
    rows, columns = frames.shape[1] // block, frames.shape[2] // block
    images = np.empty((len(frames), PIXELS, PIXELS), dtype=np.float32)
    pairs = np.empty(step * columns, dtype=np.uint16)
    grey, turned = np.empty((rows, columns), dtype=np.float32), np.empty((columns, PIXELS), dtype=np.float32)
    means = np.empty((PIXELS, max(columns, PIXELS)), dtype=np.float32)
    for n in range(len(frames)):
        for row in range(rows):
            top = frames[n, row * block + first].reshape(-1)
            bottom = frames[n, row * block + second].reshape(-1)
            for k in range(step * columns - 1):  # more than needed, but neighbours are added many at a time
                pairs[k] = np.uint16(top[k]) + np.uint16(bottom[k + 1])
            left, right = pairs[3 * first + 1 :], pairs[3 * second :]
            for column in range(columns):
                total = left[step * column] + right[step * column]
                grey[row, column] = np.float32(total) * np.float32(1 / (4 * 255))
        for turn in range(2):  # average over rows, then over columns, which are the rows of the turned image
            source, target = (turned, images[n]) if turn else (grey, turned)
            side, width = source.shape
            means[:] = 0
            for i in range(side):
                for part in range(i * PIXELS // side, ((i + 1) * PIXELS - 1) // side + 1):
                    overlap = min((part + 1) * side / PIXELS, i + 1) - max(part * side / PIXELS, i)
                    weight, line, mean = np.float32(overlap * PIXELS / side), source[i], means[part]
                    for k in range(width):
                        mean[k] += weight * line[k]
            for k in range(width):
                for part in range(PIXELS):
                    target[k, part] = means[part, k]
    return images


def measure_by_pixel(earlier: Floats, images: Floats, gaps: Floats) -> Floats:
    """Do what `measure_cells` and `remove_shift` do, one frame at a time."""
    zero, one, two, flat = np.float32(0), np.float32(1), np.float32(2), np.float32(4 * FLAT)
    side, area, edge = PIXELS, PIXELS * PIXELS, PIXELS // CELLS
    cells = np.empty((len(images), 4, CELLS, CELLS), dtype=np.float32)
    both, change = np.empty(area, dtype=np.float32), np.empty(area, dtype=np.float32)
    x, y = np.empty(area, dtype=np.float32), np.empty(area, dtype=np.float32)
    for n in range(len(images)):
        before, now = earlier[n].reshape(-1), images[n].reshape(-1)
        for k in range(area):
            both[k] = now[k] + before[k]
        for k in range(area):
            change[k] = before[k] - now[k]
        for k in range(1, area - 1):
            x[k] = both[k + 1] - both[k - 1]
        for k in range(side, area - side):
            y[k] = both[k + side] - both[k - side]
        for k in range(side):
            start, end, last = k * side, k * side + side - 1, area - side + k
            x[start], x[end] = two * (both[start + 1] - both[start]), two * (both[end] - both[end - 1])
            y[k], y[last] = two * (both[k + side] - both[k]), two * (both[last] - both[last - side])
        cx = cy = xy = left = whole = plain = zero
        xx = yy = np.float32(RIDGE)
        for start in range(0, area, 2 * side):
            for k in range(start, start + side, 2):
                cx, cy, xy = cx + change[k] * x[k], cy + change[k] * y[k], xy + x[k] * y[k]
                xx, yy = xx + x[k] * x[k], yy + y[k] * y[k]
        determinant = xx * yy - xy * xy
        right, down = (yy * cx - xy * cy) / determinant, (xx * cy - xy * cx) / determinant
        for start in range(0, area, 2 * side):
            for k in range(start, start + side, 2):
                strength = x[k] * x[k] + y[k] * y[k] + flat * flat
                plain += one / strength
                left += abs(change[k] - right * x[k] - down * y[k]) / np.sqrt(strength)
                whole += abs(change[k]) / np.sqrt(strength)
        explained = one - left / max(whole, np.float32(1e-6))
        texture = one - flat * flat * plain / np.float32(area // 4)
        for value, (low, high) in ((explained, EXPLAINED), (texture, TEXTURE)):
            share = min(max((value - np.float32(low)) / np.float32(high - low), zero), one)
            right, down = share * right, share * down
        for k in range(area):
            speed = (np.sqrt(x[k] * x[k] + y[k] * y[k]) + flat) * gaps[n]
            change[k] = (change[k] - right * x[k] - down * y[k]) / speed
        for cell in range(2 * CELLS * CELLS):
            axis, row, column = cell // CELLS**2, cell // CELLS % CELLS, cell % CELLS
            flow, total, size = y if axis else x, zero, zero
            for start in range((row * side + column) * edge, ((row + 1) * side + column) * edge, side):
                for k in range(start, start + edge):
                    total += flow[k] * change[k]
                    size += abs(flow[k] * change[k])
            cells[n, axis, row, column] = max(size + total, zero) / (two * edge * edge)
            cells[n, axis + 2, row, column] = max(size - total, zero) / (two * edge * edge)
    return cells


@cache
def fastest_kernels() -> Kernels:
    """Return the functions that reduce frames and measure motion, compiled where numba is installed."""
    compiled = compile_loops(reduce_by_pixel, measure_by_pixel, error_model="numpy", fastmath=set(ROUNDING))
    return cast(Kernels, compiled or (reduce_to_grey, measure_cells))


def to_half(values: Floats) -> NDArray[np.float16]:
    """Round numbers from 0 to 65,000 to 16 bits. `astype` takes 15 times longer for those below 6e-5."""
    bits = (values * np.float32(2.0**-112)).view(np.uint32)  # moves the exponent to where 16 bits have it
    bits += 1 << 12
    bits >>= 13
    return bits.astype(np.uint16).view(np.float16)
