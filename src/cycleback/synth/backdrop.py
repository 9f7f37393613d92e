"""What stands still behind the action, drawn once for a video: wall, table, their shadows and highlights."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cycleback.synth.camera import Matrix
from cycleback.synth.palette import RGB, darker, lighter
from cycleback.synth.scene import Scene
from cycleback.synth.textures import TABLE_FIELDS, WALL_FIELDS, Field

if TYPE_CHECKING:
    from PIL import Image

FRONT_EDGE = -0.19  # the table's near edge, below everything that stands on it
FRONT_FACE = 0.05  # its thickness


def draw_backdrop(scene: Scene, view: Matrix, *, pixels: int) -> "Image.Image":
    """An RGB picture, `pixels` a side: the wall a little out of focus, the table sharp."""
    from PIL import ImageFilter

    x, y = world_grid(view, pixels)
    rng = np.random.default_rng(scene.surroundings.texture_seed)
    wall = _to_image(_wall(scene, x, y, rng)).filter(ImageFilter.GaussianBlur(pixels * 0.006))
    table = _to_image(_table(scene, x, y, rng))
    wall.paste(table, mask=_to_image(np.where(y < scene.surroundings.table_depth, 255.0, 0.0)))
    return wall


def world_grid(view: Matrix, pixels: int) -> tuple[Field, Field]:
    """World x and y (H, W) of every pixel's middle."""
    inverse = np.linalg.inv(view)
    columns, rows = np.meshgrid(np.arange(pixels) + 0.5, np.arange(pixels) + 0.5)
    mapped = [inverse[i, 0] * columns + inverse[i, 1] * rows + inverse[i, 2] for i in range(3)]
    return (mapped[0] / mapped[2]).astype(np.float32), (mapped[1] / mapped[2]).astype(np.float32)


def _wall(scene: Scene, x: Field, y: Field, rng: np.random.Generator) -> NDArray[np.float32]:
    around = scene.surroundings
    scale = np.float32(around.texture_scale)
    field = WALL_FIELDS[around.wall_pattern](x * scale, y, rng)
    colour = _blend(around.wall, around.wall_second, field * around.texture)
    glow = np.exp(-((x - 0.6 * np.cos(scene.light.direction)) ** 2 + (y - 0.75) ** 2) / 0.35)
    foot = np.clip((y - around.table_depth) / 0.10, 0, 1)  # darker where the wall meets the table
    return np.asarray(colour * ((0.82 + 0.26 * glow) * (0.8 + 0.2 * foot))[..., None])


def _table(scene: Scene, x: Field, y: Field, rng: np.random.Generator) -> NDArray[np.float32]:
    around = scene.surroundings
    depth = around.table_depth
    recede = 1.0 / (
        1.0 + 1.4 * np.clip(y - FRONT_EDGE, -0.3, None)
    )  # lines of the table run together with depth
    field = TABLE_FIELDS[around.table_pattern](x / recede * 1.2, y / recede * 1.6, rng)
    colour = _blend(around.table, around.table_second, field * around.texture)
    shine = np.exp(-((x - 0.35 * np.cos(scene.light.direction)) ** 2) / 0.15) * np.clip(
        (y + 0.1) / (depth + 0.1), 0, 1
    )
    colour = colour * (0.86 + 0.24 * shine)[..., None]
    lit = np.asarray(lighter(around.table, 0.35), dtype=np.float32)
    edge = np.clip(1 - np.abs(y - FRONT_EDGE) / 0.008, 0, 1)[..., None]
    colour = colour * (1 - edge) + lit * edge
    face = np.asarray(darker(around.table, 0.45), dtype=np.float32)
    under = np.asarray(darker(around.table, 0.8), dtype=np.float32)
    below = np.where((y < FRONT_EDGE - FRONT_FACE)[..., None], under, face)
    return np.where((y < FRONT_EDGE)[..., None], below, colour)


def _blend(first: RGB, second: RGB, share: Field) -> NDArray[np.float32]:
    """(H, W, 3): `share` of the second colour."""
    start, end = np.asarray(first, dtype=np.float32), np.asarray(second, dtype=np.float32)
    return start + (end - start) * share[..., None]


def _to_image(values: NDArray[np.floating]) -> "Image.Image":
    """(H, W) grey or (H, W, 3) colour, 0 to 255."""
    from PIL import Image

    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
