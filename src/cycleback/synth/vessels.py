"""Draw the bottle, the glass and the liquid: inside them, in the air and on the table."""

from collections.abc import Callable

import numpy as np

from cycleback.synth.containers import (
    WALL,
    Container,
    Points,
    below,
    half_ellipse,
    outline,
    point,
    rotate,
    strip,
)
from cycleback.synth.drawing import Canvas
from cycleback.synth.palette import RGB, darker, lighter, mix, with_alpha
from cycleback.synth.scene import Scene

Place = Callable[[Points], Points]  # from the container's own frame to the world
WHITE: RGB = (255, 255, 255)
TABLE_LANDING = -0.012  # y at which a stream that misses the glass meets the table


def draw_bottle(canvas: Canvas, scene: Scene, *, base: Points, tilt: float, volume: float) -> None:
    """Draw the bottle with the middle of its base at `base` (2,), turned by `tilt`, filled to `volume`."""
    bottle, flatness, colour = scene.bottle, scene.camera.flatness, scene.bottle_colour

    def place(points: Points) -> Points:
        return rotate(points, tilt) + base

    canvas.polygon(place(bottle.outline(flatness * 0.6)), with_alpha(darker(colour, 0.25), 0.42))
    _draw_bottle_liquid(canvas, scene, base=base, tilt=tilt, volume=volume)
    if scene.label_colour is not None:
        _draw_label(canvas, bottle, scene.label_colour, place=place)
    lit = 1.0 if _is_lit_from_right(scene) else -1.0
    for left, right, shade, alpha in (
        (-1.0, -0.82, darker(colour, 0.6), 0.45),
        (0.82, 1.0, darker(colour, 0.6), 0.45),
        (-0.95 * lit, -0.45 * lit, darker(colour, 0.7), 0.16),
        (0.40 * lit, 0.66 * lit, WHITE, 0.38),
        (0.46 * lit, 0.58 * lit, WHITE, 0.35),
    ):
        canvas.polygon(place(bottle.strip(left, right)), with_alpha(shade, alpha))
    _draw_mouth(canvas, bottle, colour, place=place, flatness=flatness)


def _is_lit_from_right(scene: Scene) -> bool:
    """Whether highlights are on the right side of objects in the world frame."""
    return bool((np.cos(scene.light.direction) > 0) != scene.camera.mirrored)


def _shadow_side(scene: Scene) -> float:
    """Return where shadows fall in the world frame: -1 left to 1 right."""
    return float(-np.cos(scene.light.direction) * (-1.0 if scene.camera.mirrored else 1.0))


def _draw_bottle_liquid(canvas: Canvas, scene: Scene, *, base: Points, tilt: float, volume: float) -> None:
    if volume <= 0:
        return
    bottle, flatness, liquid = scene.bottle, scene.camera.flatness, scene.liquid
    inside = bottle.profile * (1.0, WALL)
    inside[0, 0] += 0.02 * bottle.height
    wet = below(rotate(outline(inside, flatness=flatness * 0.5), tilt), bottle.level(tilt, volume))
    tinted = mix(liquid.colour, scene.bottle_colour, 0.15)
    canvas.polygon(wet + base, with_alpha(tinted, liquid.opacity))
    surface = wet[wet[:, 1] >= wet[:, 1].max() - 1e-9]
    left, right = surface[:, 0].min(), surface[:, 0].max()
    half = (right - left) / 2
    middle = point((left + right) / 2, surface[0, 1]) + base
    canvas.ellipse(middle, (half, half * flatness * 0.7), lighter(tinted, 0.22), count=16)


def _draw_label(canvas: Canvas, bottle: Container, colour: RGB, *, place: Place) -> None:
    heights = np.linspace(0.1, 0.27, 4) * bottle.height
    band = np.stack([heights, bottle.radius_at(heights) * 0.985], axis=1)
    canvas.polygon(place(strip(band, -1, 1)), colour)
    canvas.polygon(place(strip(band[1:3], -0.6, 0.6)), lighter(colour, 0.6))


def _draw_mouth(canvas: Canvas, bottle: Container, colour: RGB, *, place: Place, flatness: float) -> None:
    radius = float(bottle.profile[-1, 1])
    ring = half_ellipse(radius, flatness, start=0.0)
    top = point(0.0, bottle.height)
    ring = np.concatenate([ring, -ring]) + top
    canvas.polygon(place(ring), with_alpha(lighter(colour, 0.4), 0.9))
    canvas.polygon(place((ring - top) * 0.68 + top), with_alpha(darker(colour, 0.5), 0.9))


def draw_glass_back(canvas: Canvas, scene: Scene, *, fill: float) -> None:
    """Draw the far side of the glass, which is behind the stream."""
    glass, flatness, at = scene.glass, scene.camera.flatness, point(scene.glass_x, 0.0)
    _draw_glow(canvas, scene, fill=fill)
    if glass.kind == "goblet":
        _draw_stem(canvas, glass, at=at, flatness=flatness)
    if glass.kind == "mug":
        _draw_handle(canvas, glass, at=at)
    canvas.polygon(glass.outline(flatness) + at, (235, 244, 250, 46))
    radius = float(glass.profile[-1, 1])
    canvas.ellipse(at + point(0.0, glass.height), (radius, radius * flatness), (225, 236, 244, 90))


def _draw_glow(canvas: Canvas, scene: Scene, *, fill: float) -> None:
    """Draw the light that shines through the liquid onto the table."""
    radius = scene.glass.radius * 1.1 * fill
    at = (scene.glass_x + 0.7 * scene.glass.radius * _shadow_side(scene), -0.004)
    flat = max(scene.camera.flatness, 0.12)
    canvas.soft_ellipse(at, (radius, radius * flat), lighter(scene.liquid.colour, 0.25), alpha=0.4, rings=4)


def _draw_stem(canvas: Canvas, glass: Container, *, at: Points, flatness: float) -> None:
    foot = glass.radius * 0.7
    canvas.ellipse(at, (foot, foot * flatness), (222, 234, 242, 150))
    canvas.capsule(at, at + point(0.0, glass.profile[0, 0] + 0.005), (0.009, 0.012), (222, 234, 242, 170))


def _draw_handle(canvas: Canvas, glass: Container, *, at: Points) -> None:
    angles = np.linspace(-np.pi / 2, np.pi / 2, 9)
    arc = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    size = np.array([0.5, 0.32]) * glass.height * (0.75, 1.0)
    ring = np.concatenate([arc * size, arc[::-1] * size * 0.7])
    canvas.polygon(ring + at + point(glass.radius * 0.95, glass.height * 0.5), (216, 230, 240, 165))


def draw_glass_front(canvas: Canvas, scene: Scene, *, fill: float, ripple: float = 0.0) -> None:
    """Draw the liquid in the glass and the near side of the glass; `ripple` in [0, 1] stirs the surface."""
    glass, flatness, at = scene.glass, scene.camera.flatness, point(scene.glass_x, 0.0)
    if fill > 0.004:
        _draw_glass_liquid(canvas, scene, at=at, level=glass.surface(fill), ripple=ripple)
    lit = 1.0 if _is_lit_from_right(scene) else -1.0
    for left, right, shade, alpha in (
        (-1.0, -0.88, (150, 170, 184), 0.5),
        (0.88, 1.0, (150, 170, 184), 0.5),
        (0.45 * lit, 0.68 * lit, WHITE, 0.42),
        (-0.72 * lit, -0.62 * lit, WHITE, 0.25),
    ):
        canvas.polygon(glass.strip(left, right) + at, with_alpha(shade, alpha))
    _draw_rim(canvas, glass, at=at, flatness=flatness)


def _draw_glass_liquid(canvas: Canvas, scene: Scene, *, at: Points, level: float, ripple: float) -> None:
    glass, liquid, flatness = scene.glass, scene.liquid, scene.camera.flatness
    heights = np.linspace(glass.floor, level, 8)
    inside = np.stack([heights, glass.radius_at(heights) * WALL], axis=1)
    canvas.polygon(outline(inside, flatness=flatness) + at, with_alpha(liquid.colour, liquid.opacity))
    canvas.polygon(strip(inside, -1.0, -0.55) + at, with_alpha(darker(liquid.colour, 0.5), 0.2))
    radius = float(inside[-1, 1])
    surface = at + point(0.0, level)
    canvas.ellipse(surface, (radius, radius * flatness), with_alpha(lighter(liquid.colour, 0.28), 0.95))
    if ripple > 0:
        for share in (0.75, 0.4):
            wave = radius * share * (0.8 + 0.2 * ripple)
            canvas.ellipse(surface, (wave, wave * flatness), with_alpha(WHITE, 0.16), count=14)


def _draw_rim(canvas: Canvas, glass: Container, *, at: Points, flatness: float) -> None:
    """Draw the near edge of the mouth as a thin bright arc."""
    radius = float(glass.profile[-1, 1])
    arc = half_ellipse(radius, flatness, start=np.pi)
    inner = arc * (0.96, 1.0) + point(0.0, 0.007)
    canvas.polygon(np.concatenate([arc, inner[::-1]]) + at + point(0.0, glass.height), (250, 253, 255, 200))


def draw_shadow(
    canvas: Canvas, scene: Scene, *, x: float, height: float, radius: float, strength: float = 0.42
) -> None:
    """Draw a soft shadow on the table, of an object of `radius` whose foot is `height` above it."""
    spread = radius * (1.35 + 1.2 * height)
    at = (x + _shadow_side(scene) * (0.35 * radius + 0.5 * height), 0.1 * radius * scene.camera.flatness)
    flat = max(scene.camera.flatness, 0.12) * 1.05
    canvas.soft_ellipse(at, (spread, spread * flat), (12, 10, 20), alpha=strength / (1 + 4 * height))


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
    """Draw a falling stream over the part `span` of its way from `lip` (2,) to `landing` (2,)."""
    tail, head = span
    if head - tail <= 0.02:
        return
    share = np.linspace(tail, head, 9)  # of the time of the fall; the distance grows faster than the time
    x = lip[0] + (landing[0] - lip[0]) * share
    y = lip[1] + (landing[1] - lip[1]) * share**1.6
    wave = 0.0035 * share * np.sin(2 * np.pi * (1.7 * share - 2.3 * seconds))
    widths = width * (1.0 - 0.45 * share) * (1 + 0.12 * np.sin(9 * share - 23 * seconds))
    middle = np.stack([x + wave, y], axis=1)
    canvas.ribbon(middle, widths, with_alpha(scene.liquid.colour, max(scene.liquid.opacity, 0.85)))
    shine = with_alpha(lighter(scene.liquid.colour, 0.5), 0.6)
    canvas.ribbon(middle - point(0.15 * width, 0.0), widths * 0.25, shine)


def draw_splash(canvas: Canvas, scene: Scene, *, at: Points, strength: float, seconds: float) -> None:
    """Draw the drops thrown up where the stream lands at `at` (2,)."""
    colour = with_alpha(lighter(scene.liquid.colour, 0.2), 0.9)
    for drop in range(4):
        age = (seconds * 3.1 + drop * 0.29) % 1.0
        side = (-1.0) ** drop * (0.5 + 0.2 * drop)
        x = at[0] + side * 0.035 * age
        y = at[1] + 0.11 * age * (1 - age) * (0.7 + 0.15 * drop)
        radius = 0.0065 * (1 - 0.5 * age) * strength
        canvas.ellipse((x, y), (radius, radius), colour, count=8)


def draw_puddle(canvas: Canvas, scene: Scene, *, x: float, amount: float) -> None:
    """Draw spilt liquid on the table around `x`; `amount` in [0, 1]."""
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
