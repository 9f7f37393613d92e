"""Recordings in which two squares move: at known places they perform one action, elsewhere they wander."""

import numpy as np
from numpy.typing import NDArray

SIDE, SQUARE, TILE = 64, 12, 4  # pixels
ROOM = SIDE - SQUARE - 4
CORNERS = np.random.default_rng(8).uniform(4, ROOM, (10, 4))  # x and y of both squares
TIMES = np.array([0.0, 0.1, 0.16, 0.3, 0.36, 0.5, 0.56, 0.72, 0.9, 1.0])  # when they are there

Places = NDArray[np.float64]


def perform(num_frames: int) -> Places:
    """Return the places (N, 4) of the squares while they perform the action once."""
    return _move(np.linspace(0, 1, num_frames), TIMES, CORNERS)


def wander(num_frames: int, rng: np.random.Generator, *, start: Places = CORNERS[0]) -> Places:
    """Return places (N, 4) on the way from `start` by random ones to where the action begins."""
    count = max(3, num_frames // 8)
    corners = rng.uniform(4, ROOM, (count, 4))
    corners[1::3] = corners[0::3][: len(corners[1::3])]  # there they stand still
    corners[0], corners[-1] = start, CORNERS[0]
    return _move(np.arange(num_frames), np.linspace(0, num_frames - 1, count), corners)


def _move(at: Places, knots: Places, corners: Places) -> Places:
    return np.stack([np.interp(at, knots, column) for column in corners.T], axis=1)


def draw(places: Places, *, scene: int = 0) -> NDArray[np.uint8]:
    """Draw frames (N, 64, 64, 3) with squares at `places` (N, 4), before the background of a scene."""
    tiles = np.random.default_rng(scene).uniform(20, 200, (SIDE // TILE, SIDE // TILE, 3))
    frames = np.repeat(np.kron(tiles, np.ones((TILE, TILE, 1)))[None], len(places), axis=0)
    for frame, corners in zip(frames, places, strict=True):
        for (x, y), grey in zip(corners.reshape(2, 2), (255, 0), strict=True):
            left, top = round(x), round(y)
            frame[top : top + SQUARE, left : left + SQUARE] = grey
    return frames.astype(np.uint8)


def record(
    *, lengths: tuple[int, ...] = (60, 48, 75), between: int = 110, seed: int = 0
) -> tuple[Places, list[tuple[int, int]]]:
    """Return places (N, 4) with one action of each length, wandering between, and where the actions are."""
    rng = np.random.default_rng(seed)
    pieces, spans, total = [wander(between, rng)], list[tuple[int, int]](), between
    for length in lengths:
        pieces += [perform(length), wander(between, rng, start=CORNERS[-1])]
        spans.append((total, total + length))
        total += length + between
    return np.concatenate(pieces), spans
