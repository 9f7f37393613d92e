"""Draw the still background of a video once: wall and table with texture, shade and highlights.

Every pattern is a function of world coordinates x, y (H, W) and a generator. It returns (H, W) in [0, 1]:
0 is the first colour of the surface, 1 the second.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cycleback.synth.drawing import Matrix
from cycleback.synth.palette import RGB, darker, lighter
from cycleback.synth.scene import Scene

if TYPE_CHECKING:
    from PIL import Image

Field = NDArray[np.float32]  # (H, W)
Pattern = Callable[[Field, Field, np.random.Generator], Field]

FRONT_EDGE = -0.19  # the table's near edge, below everything that stands on it
FRONT_FACE = 0.05  # its thickness


def draw_backdrop(scene: Scene, view: Matrix, *, pixels: int) -> "Image.Image":
    """Draw an RGB picture, `pixels` per side, with the wall slightly out of focus."""
    from PIL import ImageFilter

    x, y = world_grid(view, pixels)
    rng = np.random.default_rng(scene.surroundings.texture_seed)
    wall = _to_image(_paint_wall(scene, x, y, rng)).filter(ImageFilter.GaussianBlur(pixels * 0.006))
    table = _to_image(_paint_table(scene, x, y, rng))
    wall.paste(table, mask=_to_image(np.where(y < scene.surroundings.table_depth, 255.0, 0.0)))
    return wall


def world_grid(view: Matrix, pixels: int) -> tuple[Field, Field]:
    """Return world x and y (H, W) of the middle of every pixel."""
    inverse = np.linalg.inv(view)
    columns, rows = np.meshgrid(np.arange(pixels) + 0.5, np.arange(pixels) + 0.5)
    mapped = [inverse[i, 0] * columns + inverse[i, 1] * rows + inverse[i, 2] for i in range(3)]
    return (mapped[0] / mapped[2]).astype(np.float32), (mapped[1] / mapped[2]).astype(np.float32)


def _paint_wall(scene: Scene, x: Field, y: Field, rng: np.random.Generator) -> NDArray[np.float32]:
    around = scene.surroundings
    scale = np.float32(around.texture_scale)
    field = WALL_FIELDS[around.wall_pattern](x * scale, y, rng)
    colour = _blend(around.wall, around.wall_second, field * around.texture)
    glow = np.exp(-((x - 0.6 * np.cos(scene.light.direction)) ** 2 + (y - 0.75) ** 2) / 0.35)
    foot = np.clip((y - around.table_depth) / 0.10, 0, 1)  # darker where the wall meets the table
    return np.asarray(colour * ((0.82 + 0.26 * glow) * (0.8 + 0.2 * foot))[..., None])


def _paint_table(scene: Scene, x: Field, y: Field, rng: np.random.Generator) -> NDArray[np.float32]:
    around = scene.surroundings
    recede = 1.0 / (1.0 + 1.4 * np.clip(y - FRONT_EDGE, -0.3, None))  # lines converge with depth
    field = TABLE_FIELDS[around.table_pattern](x / recede * 1.2, y / recede * 1.6, rng)
    colour = _blend(around.table, around.table_second, field * around.texture)
    shine = np.exp(-((x - 0.35 * np.cos(scene.light.direction)) ** 2) / 0.15)
    shine = shine * np.clip((y + 0.1) / (around.table_depth + 0.1), 0, 1)
    colour = colour * (0.86 + 0.24 * shine)[..., None]
    lit = np.asarray(lighter(around.table, 0.35), dtype=np.float32)
    edge = np.clip(1 - np.abs(y - FRONT_EDGE) / 0.008, 0, 1)[..., None]
    colour = colour * (1 - edge) + lit * edge
    face = np.asarray(darker(around.table, 0.45), dtype=np.float32)
    under = np.asarray(darker(around.table, 0.8), dtype=np.float32)
    below = np.where((y < FRONT_EDGE - FRONT_FACE)[..., None], under, face)
    return np.where((y < FRONT_EDGE)[..., None], below, colour)


def _blend(first: RGB, second: RGB, share: Field) -> NDArray[np.float32]:
    """Mix `share` (H, W) of the second colour into the first: (H, W, 3)."""
    start, end = np.asarray(first, dtype=np.float32), np.asarray(second, dtype=np.float32)
    return start + (end - start) * share[..., None]


def _to_image(values: NDArray[np.floating]) -> "Image.Image":
    """Convert (H, W) grey or (H, W, 3) colour, 0 to 255, to a picture."""
    from PIL import Image

    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def smooth_noise(like: Field, rng: np.random.Generator, *, cells: tuple[int, int]) -> Field:
    """Make random blobs (H, W) in [0, 1]: a coarse grid of `cells` (rows, columns), enlarged smoothly."""
    coarse = rng.random(cells, dtype=np.float32)
    rows, columns = (_enlarge(count, size) for count, size in zip(cells, like.shape, strict=True))
    return np.asarray(rows @ coarse @ columns.T, dtype=np.float32)


def _enlarge(count: int, size: int) -> Field:
    """Return weights (size, count) that interpolate `count` values at `size` places; rows sum to 1."""
    place = np.linspace(0, count - 1, size, dtype=np.float32)[:, None]
    near = np.clip(1 - np.abs(place - np.arange(count, dtype=np.float32)), 0, 1)
    return np.asarray(near * near * (3 - 2 * near), dtype=np.float32)


def _wave(values: Field) -> Field:
    return np.asarray(0.5 + 0.5 * np.sin(2 * np.pi * values), dtype=np.float32)


def _sharp(values: Field, sharpness: float = 6.0) -> Field:
    """Push values in [0, 1] towards 0 and 1."""
    return np.asarray(np.clip((values - 0.5) * sharpness + 0.5, 0.0, 1.0), dtype=np.float32)


def plain(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """A slightly uneven surface."""
    return smooth_noise(x, rng, cells=(4, 4)) * 0.25


def stripes(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Vertical stripes."""
    return _sharp(_wave(x * rng.uniform(6, 12) + rng.random()), 3.0)


def tiles(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Square tiles with light joints, each slightly different."""
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
    return 0.65 * smooth_noise(x, rng, cells=(5, 5)) + 0.35 * smooth_noise(x, rng, cells=(14, 14))


def bokeh(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Lights that are out of focus."""
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
    """A bright window with crossed bars."""
    middle_x, middle_y = rng.uniform(-0.35, 0.35), rng.uniform(0.45, 0.55)
    across, up = np.abs(x - middle_x) / rng.uniform(0.14, 0.24), np.abs(y - middle_y) / 0.22
    pane = (across < 0.93) & (up < 0.93) & (across > 0.06) & (up > 0.06)
    frame = (across < 1.0) & (up < 1.0)
    return np.where(pane, 1.0, np.where(frame, 0.55, 0.0)).astype(np.float32)


def wood(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Grain along x."""
    bend = smooth_noise(x, rng, cells=(6, 3))
    return 0.7 * _wave(y * 22 + bend * 2.5) * smooth_noise(x, rng, cells=(24, 4)) + 0.3 * bend


def planks(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Boards along x with dark gaps."""
    scale = rng.uniform(8, 12)
    board = np.floor(y * scale)
    grain = smooth_noise(x, rng, cells=(40, 4))
    surface = 0.35 * _hash(board, 0 * x) + 0.25 * grain
    return np.where(_edge(y * scale) < 0.06, 1.0, surface).astype(np.float32)


def cloth(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """A checked cloth."""
    scale = rng.uniform(5, 8)
    return 0.5 * _sharp(_wave(x * scale), 8.0) + 0.5 * _sharp(_wave(y * scale * 1.4), 8.0)


def marble(x: Field, y: Field, rng: np.random.Generator) -> Field:
    """Stone with veins."""
    bend = smooth_noise(x, rng, cells=(7, 7)) + 0.5 * smooth_noise(x, rng, cells=(15, 15))
    return np.asarray(1 - np.abs(np.sin(np.pi * (3 * x + 2 * y + 3 * bend))) ** 0.35, dtype=np.float32)


def _edge(values: Field) -> Field:
    """Return the distance to the nearest integer."""
    return np.abs(values - np.round(values))


def _hash(column: Field, row: Field) -> Field:
    """Return a pseudo-random value in [0, 1) for each cell."""
    return np.asarray((np.sin(column * 12.9898 + row * 78.233) * 43758.5453) % 1.0, dtype=np.float32)


_WALLS: tuple[Pattern, ...] = (plain, stripes, tiles, bricks, dots, clouds, bokeh, panels, window)
_TABLES: tuple[Pattern, ...] = (plain, wood, cloth, marble, planks)
WALL_FIELDS = {pattern.__name__: pattern for pattern in _WALLS}
TABLE_FIELDS = {pattern.__name__: pattern for pattern in _TABLES}
