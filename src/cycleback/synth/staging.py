"""Draw a scene by lot, within the ranges of a level."""

from collections.abc import Sequence

import numpy as np

from cycleback.synth import palette
from cycleback.synth.containers import BOTTLE_SHAPES, GLASS_SHAPES, Container
from cycleback.synth.levels import Level, Range
from cycleback.synth.palette import RGB
from cycleback.synth.scene import Camera, Hand, Light, Liquid, Mover, Prop, Scene, Surroundings

WALL_PATTERNS = ("stripes", "tiles", "bricks", "dots", "clouds", "bokeh", "panels", "window")
QUIET_WALL_PATTERNS = ("stripes", "clouds", "panels")
TABLE_PATTERNS = ("wood", "cloth", "marble", "planks")
QUIET_TABLE_PATTERNS = ("wood", "planks")
PROP_KINDS = ("book", "bowl", "fruit", "cup", "plant", "box", "candle")
MOVER_KINDS = ("passer", "pendulum", "screen", "balloon")
READABLE = 75.0  # least colour distance of hand, liquid and wall, so that each stands out from the others


def draw_scene(rng: np.random.Generator, level: Level) -> Scene:
    """Draw a scene; each part has its own stream, so that one more draw in a part leaves the others alone."""
    parts = dict(zip(("vessels", "hand", "camera", "light", "around"), rng.spawn(5), strict=True))
    vessels, hand_rng = parts["vessels"], parts["hand"]
    bottle = _draw_container(vessels, BOTTLE_SHAPES, height=level.bottle_height, width=level.bottle_width)
    glass = _draw_container(vessels, GLASS_SHAPES, height=level.glass_height, width=level.glass_width)
    liquid = _draw_liquid(vessels, level, bottle=bottle, glass=glass)
    hand = _draw_hand(hand_rng, level, liquid=liquid)
    camera = _draw_camera(parts["camera"], level)
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
        light=_draw_light(parts["light"], level),
        surroundings=_draw_surroundings(parts["around"], level, hand=hand, liquid=liquid, camera=camera),
    )


def _pick(rng: np.random.Generator, choices: Sequence[RGB]) -> RGB:
    return choices[int(rng.integers(len(choices)))]


def _choose(rng: np.random.Generator, names: Sequence[str]) -> str:
    return names[int(rng.integers(len(names)))]


def _draw_container(
    rng: np.random.Generator,
    shapes: dict[str, tuple[tuple[tuple[float, float], ...], float]],
    *,
    height: Range,
    width: Range,
) -> Container:
    kind = _choose(rng, tuple(shapes))
    tall = float(rng.uniform(*height))
    return Container(kind=kind, height=tall, radius=tall * shapes[kind][1] * float(rng.uniform(*width)))


def _draw_liquid(rng: np.random.Generator, level: Level, *, bottle: Container, glass: Container) -> Liquid:
    name = _choose(rng, tuple(palette.LIQUIDS) if level.all_liquids else palette.EASY_LIQUIDS)
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


def _draw_hand(rng: np.random.Generator, level: Level, *, liquid: Liquid) -> Hand:
    colours = palette.GLOVES if rng.random() < level.glove_chance else palette.SKINS
    colour = _readable(rng, colours, [liquid.colour], least=40.0)
    return Hand(
        colour=colour,
        sleeve=_readable(rng, palette.SLEEVES, [colour]),
        sleeve_start=float(rng.uniform(0.03, 0.22)),
        watch=bool(rng.random() < 0.3),
        grip=_choose(rng, ("fingers", "thumb")),
        grip_height=float(rng.uniform(0.34, 0.46)),
        size=float(rng.uniform(0.92, 1.12)),
        entry_angle=float(rng.uniform(*level.entry_angle)),
    )


def _draw_camera(rng: np.random.Generator, level: Level) -> Camera:
    return Camera(
        mirrored=bool(rng.random() < level.mirror_chance),
        zoom=float(rng.uniform(*level.zoom)),
        pan=(float(rng.uniform(-level.pan, level.pan)), float(rng.uniform(-level.pan, level.pan))),
        roll=float(rng.uniform(-level.roll, level.roll)),
        shear=float(rng.uniform(-level.shear, level.shear)),
        keystone=(
            float(rng.uniform(-level.keystone, level.keystone)),
            float(rng.uniform(-level.keystone, level.keystone)),
        ),
        flatness=float(rng.uniform(*level.flatness)),
        shake=float(rng.uniform(*level.shake)),
        shake_seed=int(rng.integers(2**31)),
    )


def _draw_light(rng: np.random.Generator, level: Level) -> Light:
    red, green, blue = (float(1 + v) for v in rng.uniform(-level.tint, level.tint, 3))
    return Light(
        direction=float(rng.uniform(0.15, np.pi - 0.15)),
        brightness=float(rng.uniform(*level.brightness)),
        tint=(red, green, blue),
        slope=float(rng.uniform(*level.light_slope)),
        noise=float(rng.uniform(*level.noise)),
    )


def _draw_surroundings(
    rng: np.random.Generator, level: Level, *, hand: Hand, liquid: Liquid, camera: Camera
) -> Surroundings:
    walls = palette.WALLS if level.all_walls else palette.WALLS[: palette.EASY_WALLS]
    tables = palette.TABLES if level.all_walls else palette.TABLES[: palette.EASY_TABLES]
    wall = _readable(rng, walls, [hand.colour, liquid.colour])
    table = _readable(rng, tables, [wall, liquid.colour], least=50.0)
    depth = 0.05 + 0.55 * camera.flatness
    return Surroundings(
        wall=wall,
        wall_second=_pick(rng, walls) if level.all_walls else palette.darker(wall, 0.2),
        wall_pattern=_pattern(
            rng, WALL_PATTERNS, quiet=QUIET_WALL_PATTERNS, plain=level.plain_wall_chance, level=level
        ),
        table=table,
        table_second=palette.darker(table, 0.35),
        table_pattern=_pattern(
            rng, TABLE_PATTERNS, quiet=QUIET_TABLE_PATTERNS, plain=level.plain_table_chance, level=level
        ),
        table_depth=depth,
        texture=float(rng.uniform(*level.texture)),
        texture_scale=float(rng.uniform(0.7, 1.5)),
        texture_seed=int(rng.integers(2**31)),
        props=_draw_props(rng, level, depth=depth),
        mover=_draw_mover(rng) if rng.random() < level.mover_chance else None,
    )


def _pattern(
    rng: np.random.Generator, names: Sequence[str], *, quiet: Sequence[str], plain: float, level: Level
) -> str:
    pattern = _choose(rng, names if level.all_walls else quiet)
    return "plain" if rng.random() < plain else pattern


def _draw_props(rng: np.random.Generator, level: Level, *, depth: float) -> tuple[Prop, ...]:
    """Things to the left, to the right and behind; never between the bottle and the glass."""
    places = rng.permutation(np.array([-0.46, 0.34, 0.44, -0.36, 0.0]))
    count = int(rng.integers(level.distractors[0], level.distractors[1] + 1))
    return tuple(
        Prop(
            kind=_choose(rng, PROP_KINDS),
            x=float(x + rng.uniform(-0.04, 0.04)),
            depth=float(depth * rng.uniform(0.55, 0.9)),
            size=float(rng.uniform(0.8, 1.25)),
            colour=_pick(rng, palette.PROPS),
            second_colour=_pick(rng, palette.PROPS),
        )
        for x in places[:count]
    )


def _draw_mover(rng: np.random.Generator) -> Mover:
    return Mover(
        kind=_choose(rng, MOVER_KINDS),
        colour=_pick(rng, palette.PROPS),
        period=float(rng.uniform(0.8, 4.0)),
        phase=float(rng.uniform(0, 1)),
        x=float(rng.uniform(-0.35, 0.35)),
    )


def _readable(
    rng: np.random.Generator, choices: Sequence[RGB], others: Sequence[RGB], *, least: float = READABLE
) -> RGB:
    """A colour that differs from `others` by `least`, or the one of six that differs most."""
    drawn = [_pick(rng, choices) for _ in range(6)]
    distances = [min(palette.contrast(colour, other) for other in others) for colour in drawn]
    good = [colour for colour, distance in zip(drawn, distances, strict=True) if distance >= least]
    return good[0] if good else drawn[int(np.argmax(distances))]
