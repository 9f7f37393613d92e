"""Draw liquid in the air and on the table: the stream, its splash, and what went beside the glass."""

import numpy as np

from cycleback.synth.containers import Points, point
from cycleback.synth.drawing import Canvas
from cycleback.synth.palette import lighter, with_alpha
from cycleback.synth.scene import Scene

TABLE_LANDING = -0.012  # where a stream that misses the glass meets the table


def draw_stream(
    canvas: Canvas,
    scene: Scene,
    *,
    lip: Points,
    landing: Points,
    span: tuple[float, float],
    width: float,
    seconds: float,
) -> None:
    """A falling stream between two shares of its way (`span`) from `lip` (2,) to `landing` (2,)."""
    tail, head = span
    if head - tail <= 0.02:
        return
    share = np.linspace(tail, head, 9)  # of the time of the fall: distance grows with its square
    x = lip[0] + (landing[0] - lip[0]) * share
    y = lip[1] + (landing[1] - lip[1]) * share**1.6
    wave = 0.0035 * share * np.sin(2 * np.pi * (1.7 * share - 2.3 * seconds))
    widths = width * (1.0 - 0.45 * share) * (1 + 0.12 * np.sin(9 * share - 23 * seconds))
    middle = np.stack([x + wave, y], axis=1)
    canvas.ribbon(middle, widths, with_alpha(scene.liquid.colour, max(scene.liquid.opacity, 0.85)))
    canvas.ribbon(
        middle - point(0.15 * width, 0.0), widths * 0.25, with_alpha(lighter(scene.liquid.colour, 0.5), 0.6)
    )


def draw_splash(canvas: Canvas, scene: Scene, *, at: Points, strength: float, seconds: float) -> None:
    """Drops thrown up where the stream lands at `at` (2,)."""
    colour = with_alpha(lighter(scene.liquid.colour, 0.2), 0.9)
    for drop in range(4):
        age = (seconds * 3.1 + drop * 0.29) % 1.0
        side = (-1.0) ** drop * (0.5 + 0.2 * drop)
        x = at[0] + side * 0.035 * age
        y = at[1] + 0.11 * age * (1 - age) * (0.7 + 0.15 * drop)
        radius = 0.0065 * (1 - 0.5 * age) * strength
        canvas.ellipse((x, y), (radius, radius), colour, count=8)


def draw_puddle(canvas: Canvas, scene: Scene, *, x: float, amount: float) -> None:
    """Spilt liquid lying on the table around `x`; `amount` in [0, 1]."""
    if amount <= 0:
        return
    flat = max(scene.camera.flatness, 0.14)
    colour = scene.liquid.colour
    for offset, share, depth in ((0.0, 1.0, 0.0), (0.05, 0.6, -0.25), (-0.045, 0.65, 0.2)):
        radius = share * 0.16 * amount**0.5
        at = (x + offset, TABLE_LANDING + depth * 0.05)
        canvas.ellipse(at, (radius, radius * flat), with_alpha(colour, 0.85))
    shine = 0.07 * amount**0.5
    canvas.ellipse((x - 0.02, TABLE_LANDING + 0.006), (shine, shine * flat * 0.4), (255, 255, 255, 80))
