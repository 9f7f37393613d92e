"""Describe the scene of a video, and sample one within the ranges of a level.

World frame: x to the right, y up, in widths of the scene; the bottle and the glass stand at y = 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from cycleback.synth import palette
from cycleback.synth.containers import BOTTLE_SHAPES, GLASS_SHAPES, Container, Shape
from cycleback.synth.levels import Level, Range
from cycleback.synth.palette import RGB

WALL_PATTERNS = ("stripes", "tiles", "bricks", "dots", "clouds", "bokeh", "panels", "window")
QUIET_WALL_PATTERNS = ("stripes", "clouds", "panels")
TABLE_PATTERNS = ("wood", "cloth", "marble", "planks")
QUIET_TABLE_PATTERNS = ("wood", "planks")
PROP_KINDS = ("book", "bowl", "fruit", "cup", "plant", "box", "candle")
MOVER_KINDS = ("passer", "pendulum", "screen", "balloon")
MIN_CONTRAST = 75.0  # colour distance of hand, liquid and wall, so that each stands out from the others

Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Liquid:
    """The liquid, and how full bottle and glass are before and after."""

    name: str
    colour: RGB
    opacity: float
    bottle_start: float
    bottle_end: float
    glass_start: float
    glass_final: float
    stream_width: float


@dataclass(frozen=True)
class Hand:
    """The hand that pours; `grip` says whether "fingers" or "thumb" are in front of the bottle."""

    colour: RGB
    sleeve: RGB
    sleeve_start: float
    watch: bool
    grip: str
    grip_height: float
    size: float
    entry_angle: float


@dataclass(frozen=True)
class Camera:
    """How the camera sees the scene."""

    mirrored: bool
    zoom: float
    pan: tuple[float, float]
    roll: float
    shear: float
    keystone: tuple[float, float]
    flatness: float
    shake: float
    shake_seed: int


@dataclass(frozen=True)
class Light:
    """Light of the whole picture; `direction` is where it comes from, in radians from +x."""

    direction: float
    brightness: float
    tint: tuple[float, float, float]
    slope: float
    noise: float


@dataclass(frozen=True)
class Prop:
    """An object on the table that has nothing to do with the action."""

    kind: str
    x: float
    depth: float
    size: float
    colour: RGB
    second_colour: RGB


@dataclass(frozen=True)
class Mover:
    """An object behind the table that moves with its own period, independent of the action."""

    kind: str
    colour: RGB
    period: float
    phase: float
    x: float


@dataclass(frozen=True)
class Surroundings:
    """Wall and table, and the objects on and behind the table."""

    wall: RGB
    wall_second: RGB
    wall_pattern: str
    table: RGB
    table_second: RGB
    table_pattern: str
    table_depth: float
    texture: float
    texture_scale: float
    texture_seed: int
    props: tuple[Prop, ...]
    mover: Mover | None


@dataclass(frozen=True)
class Scene:
    """All sampled parameters of a video except its timing."""

    bottle: Container
    bottle_colour: RGB
    label_colour: RGB | None
    bottle_x: float
    back_x: float
    glass: Container
    glass_x: float
    pour_gap: float
    liquid: Liquid
    hand: Hand
    camera: Camera
    light: Light
    surroundings: Surroundings


def sample_scene(rng: np.random.Generator, level: Level) -> Scene:
    """Sample a scene; each part has its own generator, so changing one part leaves the others unchanged."""
    vessels, hand_rng, camera_rng, light_rng, around_rng = rng.spawn(5)
    bottle = _sample_container(vessels, BOTTLE_SHAPES, height=level.bottle_height, width=level.bottle_width)
    glass = _sample_container(vessels, GLASS_SHAPES, height=level.glass_height, width=level.glass_width)
    liquid = _sample_liquid(vessels, level, bottle=bottle, glass=glass)
    hand = _sample_hand(hand_rng, level, liquid=liquid)
    camera = _sample_camera(camera_rng, level)
    label = _pick(vessels, palette.PROPS)
    bottle_x = float(vessels.uniform(-0.24, -0.17))
    return Scene(
        bottle=bottle,
        bottle_colour=_pick(vessels, palette.BOTTLES),
        label_colour=label if vessels.random() < 0.4 else None,
        bottle_x=bottle_x,
        back_x=bottle_x + float(vessels.uniform(-level.back_shift, level.back_shift)),
        glass=glass,
        glass_x=float(vessels.uniform(0.12, 0.18)),
        pour_gap=float(vessels.uniform(0.05, 0.10)),
        liquid=liquid,
        hand=hand,
        camera=camera,
        light=_sample_light(light_rng, level),
        surroundings=_sample_surroundings(around_rng, level, hand=hand, liquid=liquid, camera=camera),
    )


def _pick(rng: np.random.Generator, choices: Sequence[Choice]) -> Choice:
    return choices[int(rng.integers(len(choices)))]


def _pick_contrasting(
    rng: np.random.Generator,
    choices: Sequence[RGB],
    others: Sequence[RGB],
    *,
    min_contrast: float = MIN_CONTRAST,
) -> RGB:
    """Pick a colour with `min_contrast` to all `others`, or the best of six."""
    drawn = [_pick(rng, choices) for _ in range(6)]
    distances = [min(palette.contrast(colour, other) for other in others) for colour in drawn]
    good = [colour for colour, distance in zip(drawn, distances, strict=True) if distance >= min_contrast]
    return good[0] if good else drawn[int(np.argmax(distances))]


def _sample_container(
    rng: np.random.Generator, shapes: dict[str, Shape], *, height: Range, width: Range
) -> Container:
    kind = _pick(rng, tuple(shapes))
    tall = float(rng.uniform(*height))
    return Container(kind=kind, height=tall, radius=tall * shapes[kind][1] * float(rng.uniform(*width)))


def _sample_liquid(rng: np.random.Generator, level: Level, *, bottle: Container, glass: Container) -> Liquid:
    name = _pick(rng, tuple(palette.LIQUIDS) if level.all_liquids else palette.EASY_LIQUIDS)
    colour, opacity = palette.LIQUIDS[name]
    start, final = float(rng.uniform(*level.glass_start)), float(rng.uniform(*level.glass_final))
    full = float(rng.uniform(*level.bottle_fill))
    poured = (final - start) * glass.capacity / bottle.capacity
    return Liquid(
        name=name,
        colour=colour,
        opacity=opacity,
        bottle_start=full,
        bottle_end=max(full - poured, 0.12),
        glass_start=start,
        glass_final=final,
        stream_width=float(rng.uniform(0.014, 0.022)),
    )


def _sample_hand(rng: np.random.Generator, level: Level, *, liquid: Liquid) -> Hand:
    colours = palette.GLOVES if rng.random() < level.glove_chance else palette.SKINS
    colour = _pick_contrasting(rng, colours, [liquid.colour], min_contrast=40.0)
    return Hand(
        colour=colour,
        sleeve=_pick_contrasting(rng, palette.SLEEVES, [colour]),
        sleeve_start=float(rng.uniform(0.03, 0.22)),
        watch=bool(rng.random() < 0.3),
        grip=_pick(rng, ("fingers", "thumb")),
        grip_height=float(rng.uniform(0.34, 0.46)),
        size=float(rng.uniform(0.92, 1.12)),
        entry_angle=float(rng.uniform(*level.entry_angle)),
    )


def _sample_camera(rng: np.random.Generator, level: Level) -> Camera:
    def around_zero(limit: float) -> float:
        return float(rng.uniform(-limit, limit))

    return Camera(
        mirrored=bool(rng.random() < level.mirror_chance),
        zoom=float(rng.uniform(*level.zoom)),
        pan=(around_zero(level.pan), around_zero(level.pan)),
        roll=around_zero(level.roll),
        shear=around_zero(level.shear),
        keystone=(around_zero(level.keystone), around_zero(level.keystone)),
        flatness=float(rng.uniform(*level.flatness)),
        shake=float(rng.uniform(*level.shake)),
        shake_seed=int(rng.integers(2**31)),
    )


def _sample_light(rng: np.random.Generator, level: Level) -> Light:
    red, green, blue = (float(1 + v) for v in rng.uniform(-level.tint, level.tint, 3))
    return Light(
        direction=float(rng.uniform(0.15, np.pi - 0.15)),
        brightness=float(rng.uniform(*level.brightness)),
        tint=(red, green, blue),
        slope=float(rng.uniform(*level.light_slope)),
        noise=float(rng.uniform(*level.noise)),
    )


def _sample_surroundings(
    rng: np.random.Generator, level: Level, *, hand: Hand, liquid: Liquid, camera: Camera
) -> Surroundings:
    walls = palette.WALLS if level.all_walls else palette.EASY_WALLS
    tables = palette.TABLES if level.all_walls else palette.EASY_TABLES
    wall_patterns = WALL_PATTERNS if level.all_walls else QUIET_WALL_PATTERNS
    table_patterns = TABLE_PATTERNS if level.all_walls else QUIET_TABLE_PATTERNS
    wall = _pick_contrasting(rng, walls, [hand.colour, liquid.colour])
    table = _pick_contrasting(rng, tables, [wall, liquid.colour], min_contrast=50.0)
    depth = 0.05 + 0.55 * camera.flatness
    return Surroundings(
        wall=wall,
        wall_second=_pick(rng, walls) if level.all_walls else palette.darker(wall, 0.2),
        wall_pattern=_sample_pattern(rng, wall_patterns, plain_chance=level.plain_wall_chance),
        table=table,
        table_second=palette.darker(table, 0.35),
        table_pattern=_sample_pattern(rng, table_patterns, plain_chance=level.plain_table_chance),
        table_depth=depth,
        texture=float(rng.uniform(*level.texture)),
        texture_scale=float(rng.uniform(0.7, 1.5)),
        texture_seed=int(rng.integers(2**31)),
        props=_sample_props(rng, level, depth=depth),
        mover=_sample_mover(rng) if rng.random() < level.mover_chance else None,
    )


def _sample_pattern(rng: np.random.Generator, names: Sequence[str], *, plain_chance: float) -> str:
    pattern = _pick(rng, names)
    return "plain" if rng.random() < plain_chance else pattern


def _sample_props(rng: np.random.Generator, level: Level, *, depth: float) -> tuple[Prop, ...]:
    """Place objects to the left, to the right and behind, never between the bottle and the glass."""
    places = rng.permutation(np.array([-0.46, 0.34, 0.44, -0.36, 0.0]))
    count = int(rng.integers(level.distractors[0], level.distractors[1] + 1))
    return tuple(
        Prop(
            kind=_pick(rng, PROP_KINDS),
            x=float(x + rng.uniform(-0.04, 0.04)),
            depth=float(depth * rng.uniform(0.55, 0.9)),
            size=float(rng.uniform(0.8, 1.25)),
            colour=_pick(rng, palette.PROPS),
            second_colour=_pick(rng, palette.PROPS),
        )
        for x in places[:count]
    )


def _sample_mover(rng: np.random.Generator) -> Mover:
    return Mover(
        kind=_pick(rng, MOVER_KINDS),
        colour=_pick(rng, palette.PROPS),
        period=float(rng.uniform(0.8, 4.0)),
        phase=float(rng.uniform(0, 1)),
        x=float(rng.uniform(-0.35, 0.35)),
    )
