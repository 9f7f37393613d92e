"""Patterns of walls and tables as numbers: 0 is the first colour of the surface, 1 its second.

Every pattern is a function of world coordinates x, y (H, W) and a generator, and returns (H, W) in [0, 1].
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float32]  # (H, W)
Pattern = Callable[[Field, Field, np.random.Generator], Field]


def smooth_noise(shape: tuple[int, int], rng: np.random.Generator, *, cells: tuple[int, int]) -> Field:
    """Random blobs (H, W) in [0, 1]: a coarse random grid of `cells` (rows, columns), enlarged smoothly."""
    coarse = rng.random(cells, dtype=np.float32)
    rows, columns = (_enlarge(count, size) for count, size in zip(cells, shape, strict=True))
    return np.asarray(rows @ coarse @ columns.T, dtype=np.float32)


def _enlarge(count: int, size: int) -> Field:
    """Weights (size, count) that spread `count` values smoothly over `size` places; rows sum to 1."""
    place = np.linspace(0, count - 1, size, dtype=np.float32)[:, None]
    near = np.clip(1 - np.abs(place - np.arange(count, dtype=np.float32)), 0, 1)
    return np.asarray(near * near * (3 - 2 * near), dtype=np.float32)


def _wave(values: Field) -> Field:
    return np.asarray(0.5 + 0.5 * np.sin(2 * np.pi * values), dtype=np.float32)


def _sharp(values: Field, sharpness: float = 6.0) -> Field:
    """Push values in [0, 1] towards 0 and 1."""
    return np.asarray(np.clip((values - 0.5) * sharpness + 0.5, 0.0, 1.0), dtype=np.float32)


def plain(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Nothing but a hint of unevenness."""
    return smooth_noise((x.shape[0], x.shape[1]), rng, cells=(4, 4)) * 0.25


def stripes(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Vertical stripes."""
    return _sharp(_wave(x * rng.uniform(6, 12) + rng.random()), 3.0)


def tiles(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Square tiles with light joints, each a little different."""
    scale = rng.uniform(6, 10)
    column, row = np.floor(x * scale), np.floor(y * scale)
    joint = np.minimum(_edge(x * scale), _edge(y * scale))
    return np.where(joint < 0.06, 1.0, 0.35 * _hash(column, row)).astype(np.float32)


def bricks(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Bricks in a running bond."""
    scale = rng.uniform(5, 7)
    row = np.floor(y * scale * 2)
    along = x * scale + 0.5 * (row % 2)
    joint = np.minimum(_edge(along), _edge(y * scale * 2) * 0.5)
    return np.where(joint < 0.05, 1.0, 0.5 * _hash(np.floor(along), row)).astype(np.float32)


def dots(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Polka dots."""
    scale = rng.uniform(7, 12)
    row = np.floor(y * scale)
    across, up = (x * scale + 0.5 * (row % 2)) % 1 - 0.5, (y * scale) % 1 - 0.5
    return _sharp(1.0 - np.hypot(across, up) / 0.5, 8.0)


def clouds(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Blotches of two sizes."""
    shape = (x.shape[0], x.shape[1])
    return 0.65 * smooth_noise(shape, rng, cells=(5, 5)) + 0.35 * smooth_noise(shape, rng, cells=(14, 14))


def bokeh(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Lights out of focus."""
    field = np.zeros_like(x)
    for _ in range(14):
        middle_x, middle_y, radius = rng.uniform(-0.6, 0.6), rng.uniform(0.1, 0.8), rng.uniform(0.03, 0.08)
        disc = np.hypot(x - middle_x, y - middle_y) < radius
        field += disc * np.float32(rng.uniform(0.2, 0.6))
    return np.clip(field, 0.0, 1.0)


def panels(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Wide boards with thin gaps."""
    scale = rng.uniform(3, 5)
    return np.where(_edge(x * scale) < 0.025, 1.0, 0.3 * _hash(np.floor(x * scale), 0 * y)).astype(np.float32)


def window(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """A bright window with a cross in it."""
    middle_x, middle_y = rng.uniform(-0.35, 0.35), rng.uniform(0.45, 0.55)
    across, up = np.abs(x - middle_x) / rng.uniform(0.14, 0.24), np.abs(y - middle_y) / 0.22
    pane = (across < 0.93) & (up < 0.93) & (across > 0.06) & (up > 0.06)
    frame = (across < 1.0) & (up < 1.0)
    return np.where(pane, 1.0, np.where(frame, 0.55, 0.0)).astype(np.float32)


def wood(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Grain along x."""
    shape = (x.shape[0], x.shape[1])
    bend = smooth_noise(shape, rng, cells=(6, 3))
    return 0.7 * _wave(y * 22 + bend * 2.5) * smooth_noise(shape, rng, cells=(24, 4)) + 0.3 * bend


def planks(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Boards along x with dark gaps."""
    scale = rng.uniform(8, 12)
    board = np.floor(y * scale)
    grain = smooth_noise((x.shape[0], x.shape[1]), rng, cells=(40, 4))
    return np.where(_edge(y * scale) < 0.06, 1.0, 0.35 * _hash(board, 0 * x) + 0.25 * grain).astype(
        np.float32
    )


def cloth(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """A checked cloth."""
    scale = rng.uniform(5, 8)
    return 0.5 * _sharp(_wave(x * scale), 8.0) + 0.5 * _sharp(_wave(y * scale * 1.4), 8.0)


def marble(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Veins."""
    shape = (x.shape[0], x.shape[1])
    bend = smooth_noise(shape, rng, cells=(7, 7)) + 0.5 * smooth_noise(shape, rng, cells=(15, 15))
    return np.asarray(1 - np.abs(np.sin(np.pi * (3 * x + 2 * y + 3 * bend))) ** 0.35, dtype=np.float32)


def _edge(values: Field) -> Field:
    """Distance to the nearest integer."""
    return np.abs(values - np.round(values))


def _hash(column: Field, row: Field) -> Field:
    """A value in [0, 1) for each cell that looks random."""
    return np.asarray((np.sin(column * 12.9898 + row * 78.233) * 43758.5453) % 1.0, dtype=np.float32)


WALL_FIELDS: dict[str, Pattern] = {
    "plain": plain,
    "stripes": stripes,
    "tiles": tiles,
    "bricks": bricks,
    "dots": dots,
    "clouds": clouds,
    "bokeh": bokeh,
    "panels": panels,
    "window": window,
}
TABLE_FIELDS: dict[str, Pattern] = {
    "plain": plain,
    "wood": wood,
    "cloth": cloth,
    "marble": marble,
    "planks": planks,
}
