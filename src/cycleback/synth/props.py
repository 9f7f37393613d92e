"""Draw distractors: objects on the table, and an object that moves behind it."""

from collections.abc import Callable

import numpy as np

from cycleback.synth.containers import Container, Points, half_ellipse, outline, point, strip
from cycleback.synth.drawing import Canvas
from cycleback.synth.palette import darker, lighter, with_alpha
from cycleback.synth.scene import Mover, Prop, Scene


def draw_props(canvas: Canvas, scene: Scene) -> None:
    """Draw all objects on the table, the farthest first."""
    flatness = scene.camera.flatness
    for prop in sorted(scene.surroundings.props, key=lambda prop: -prop.depth):
        size = 0.1 * prop.size
        canvas.soft_ellipse((prop.x, prop.depth), (size, size * max(flatness, 0.12)), (12, 10, 20), alpha=0.4)
        PROPS[prop.kind](canvas, prop, np.array([prop.x, prop.depth]), flatness)


def _book(canvas: Canvas, prop: Prop, at: Points, flatness: float) -> None:
    for layer, colour in enumerate((prop.colour, prop.second_colour)):
        low, half = layer * 0.035, 0.085 - 0.01 * layer
        canvas.polygon(_box(half, low, low + 0.033) * prop.size + at, darker(colour, 0.15))
        canvas.polygon(_box(half - 0.006, low + 0.008, low + 0.025) * prop.size + at, (236, 230, 214))


def _bowl(canvas: Canvas, prop: Prop, at: Points, flatness: float) -> None:
    bowl = np.array([[0.0, 0.035], [0.02, 0.06], [0.045, 0.08], [0.065, 0.088]]) * prop.size
    canvas.polygon(outline(bowl, flatness=flatness) + at, prop.colour)
    canvas.polygon(strip(bowl, 0.3, 0.9) + at, with_alpha((255, 255, 255), 0.2))
    rim = at + point(0.0, bowl[-1, 0])
    canvas.ellipse(rim, (bowl[-1, 1], bowl[-1, 1] * flatness), darker(prop.colour, 0.4))


def _fruit(canvas: Canvas, prop: Prop, at: Points, flatness: float) -> None:
    radius = 0.045 * prop.size
    middle = at + point(0.0, radius)
    canvas.ellipse(middle, (radius, radius * 0.95), prop.colour)
    shine = middle + point(-0.3 * radius, 0.3 * radius)
    canvas.ellipse(shine, (radius * 0.4, radius * 0.35), with_alpha((255, 255, 255), 0.28))
    stem = (middle + point(0.0, radius * 0.85), middle + point(0.008, radius * 1.3))
    canvas.capsule(*stem, (0.004, 0.004), (90, 66, 40))


def _cup(canvas: Canvas, prop: Prop, at: Points, flatness: float) -> None:
    cup = Container(kind="mug", height=0.085 * prop.size, radius=0.042 * prop.size)
    canvas.polygon(cup.outline(flatness) + at, prop.colour)
    canvas.polygon(cup.strip(-1, -0.5) + at, with_alpha((0, 0, 0), 0.2))
    mouth = (cup.radius, cup.radius * flatness)
    canvas.ellipse(at + point(0.0, cup.height), mouth, darker(prop.colour, 0.35))
    drink = (cup.radius * 0.85, cup.radius * 0.8 * flatness)
    canvas.ellipse(at + point(0.0, cup.height - 0.004), drink, prop.second_colour)


def _plant(canvas: Canvas, prop: Prop, at: Points, flatness: float) -> None:
    for leaf, angle in enumerate(np.linspace(-1.1, 1.1, 7)):
        tip = at + np.array([np.sin(angle), np.cos(angle)]) * (0.13 + 0.02 * (leaf % 3)) * prop.size
        green = (58 + 12 * (leaf % 3), 118 + 14 * (leaf % 2), 66)
        canvas.capsule(at + point(0.0, 0.05 * prop.size), tip, (0.012 * prop.size, 0.02 * prop.size), green)
    pot = np.array([[0.0, 0.035], [0.07, 0.05]]) * prop.size
    canvas.polygon(outline(pot, flatness=flatness) + at, darker(prop.colour, 0.2))


def _cardboard(canvas: Canvas, prop: Prop, at: Points, flatness: float) -> None:
    canvas.polygon(_box(0.05, 0.0, 0.13) * prop.size + at, prop.colour)
    side = np.array([[0.05, 0.0], [0.075, 0.02], [0.075, 0.145], [0.05, 0.13]])
    canvas.polygon(side * prop.size + at, darker(prop.colour, 0.3))
    top = np.array([[-0.05, 0.13], [0.05, 0.13], [0.075, 0.145], [-0.025, 0.145]])
    canvas.polygon(top * prop.size + at, lighter(prop.colour, 0.2))
    canvas.polygon(_box(0.032, 0.04, 0.09) * prop.size + at, prop.second_colour)


def _candle(canvas: Canvas, prop: Prop, at: Points, flatness: float) -> None:
    wax = np.array([[0.0, 0.022], [0.1, 0.022]]) * prop.size
    canvas.polygon(outline(wax, flatness=flatness) + at, lighter(prop.colour, 0.5))
    flame = at + point(0.0, wax[-1, 0] + 0.018)
    canvas.soft_ellipse(flame, (0.035, 0.045), (255, 210, 120), alpha=0.5)
    canvas.ellipse(flame, (0.006, 0.016), (255, 236, 170), count=10)


PROPS: dict[str, Callable[[Canvas, Prop, Points, float], None]] = {
    "book": _book,
    "bowl": _bowl,
    "fruit": _fruit,
    "cup": _cup,
    "plant": _plant,
    "box": _cardboard,
    "candle": _candle,
}


def draw_mover(canvas: Canvas, scene: Scene, mover: Mover, *, seconds: float) -> None:
    """Draw the object that moves behind the table."""
    turn = seconds / mover.period + mover.phase
    MOVERS[mover.kind](canvas, mover, turn, scene.surroundings.table_depth)


def _passer(canvas: Canvas, mover: Mover, turn: float, table: float) -> None:
    """A person who walks past, out of focus, seen above the far edge of the table."""
    x = -0.9 + 1.8 * ((turn * 0.5) % 1.0)
    shape = half_ellipse(0.11, 3.2, start=0.0) + point(x, table)
    canvas.polygon(shape, with_alpha(darker(mover.colour, 0.2), 0.8))
    canvas.soft_ellipse((x, table + 0.4), (0.062, 0.075), (150, 112, 90), alpha=1.0, rings=3)


def _pendulum(canvas: Canvas, mover: Mover, turn: float, table: float) -> None:
    """The pendulum of a clock on the wall."""
    pivot = np.array([mover.x, 0.78])
    angle = 0.45 * np.sin(2 * np.pi * turn)
    weight = pivot + 0.24 * np.array([np.sin(angle), -np.cos(angle)])
    canvas.capsule(pivot, weight, (0.004, 0.004), (70, 60, 50))
    canvas.ellipse(weight, (0.032, 0.032), mover.colour, count=14)


def _screen(canvas: Canvas, mover: Mover, turn: float, table: float) -> None:
    """A screen whose picture changes."""
    at = np.array([mover.x, table + 0.2])
    canvas.polygon(_box(0.13, 0.0, 0.17) + at, (24, 24, 28))
    glow = 0.5 + 0.5 * np.sin(2 * np.pi * turn)
    canvas.polygon(_box(0.12, 0.01, 0.16) + at, lighter(darker(mover.colour, 0.5 * (1 - glow)), 0.5 * glow))
    bar = 0.1 * np.sin(2 * np.pi * turn * 0.7)
    canvas.polygon(_box(0.02, 0.03, 0.12) + at + point(bar, 0.0), (240, 240, 240))


def _balloon(canvas: Canvas, mover: Mover, turn: float, table: float) -> None:
    """A balloon that bobs on a string."""
    sway, bob = 0.06 * np.sin(2 * np.pi * turn * 0.6), 0.05 * np.sin(2 * np.pi * turn)
    at = point(mover.x + sway, table + 0.4 + bob)
    canvas.capsule((mover.x, table), at - point(0.0, 0.06), (0.002, 0.002), (230, 230, 230))
    canvas.ellipse(at, (0.055, 0.068), mover.colour)
    canvas.ellipse(at + point(-0.018, 0.024), (0.016, 0.02), with_alpha((255, 255, 255), 0.35), count=10)


MOVERS: dict[str, Callable[[Canvas, Mover, float, float], None]] = {
    "passer": _passer,
    "pendulum": _pendulum,
    "screen": _screen,
    "balloon": _balloon,
}


def _box(half: float, low: float, high: float) -> Points:
    """Return a rectangle (4, 2) that extends `half` to each side of x = 0."""
    return np.array([[-half, low], [half, low], [half, high], [-half, high]])
