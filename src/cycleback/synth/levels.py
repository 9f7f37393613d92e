"""The ranges that the levels `easy` and `hard` draw from: how much the videos of a set differ."""

from dataclasses import dataclass
from typing import Any

Range = tuple[float, float]


@dataclass(frozen=True)
class Level:
    """Ranges are (low, high) and drawn uniformly; chances are probabilities."""

    seconds: dict[str, Range]
    extremes: float  # both parameters of the beta distribution of log seconds; below 1 favours the ends
    total_seconds: Range
    skew: Range  # exponent of the progress inside a phase
    pause_chance: float

    bottle_height: Range
    bottle_width: Range  # factor on the silhouette's own width
    glass_height: Range
    glass_width: Range
    glass_start: Range  # fill of the glass before the pour
    glass_final: Range
    bottle_fill: Range
    back_shift: float  # distance from its first place at which the bottle may be put back
    all_liquids: bool
    all_walls: bool
    plain_wall_chance: float
    plain_table_chance: float
    texture: Range  # strength of the texture of wall and table

    mirror_chance: float
    zoom: Range
    pan: float
    roll: float  # radians
    shear: float
    keystone: float
    flatness: Range  # height over width of a horizontal circle as the camera sees it
    shake: Range  # as a share of the frame width
    distractors: tuple[int, int]
    mover_chance: float
    glove_chance: float
    entry_angle: Range  # radians; below 0 the arm comes from below

    brightness: Range
    tint: float
    light_slope: Range  # how much darker the side away from the light is
    noise: Range  # sensor noise, in grey values


# Seconds of each part of the action (easy, hard). The ends of a range are likelier than its middle (see
# `Level.extremes`). The parts are independent, so an event may come early in one video and late in another.
_SECONDS: dict[str, tuple[Range, Range]] = {
    "lead_in": ((0.07, 2.0), (0.04, 2.5)),
    "reach": ((0.27, 1.4), (0.27, 1.6)),
    "prepare": ((0.45, 2.3), (0.36, 2.8)),
    "pour": ((0.60, 3.2), (0.50, 3.4)),
    "put_back": ((0.45, 2.3), (0.36, 2.8)),
    "withdraw": ((0.25, 1.2), (0.20, 1.4)),
    "tail": ((0.07, 2.0), (0.04, 2.5)),
}
# field of Level -> (easy, hard)
_VALUES: dict[str, tuple[Any, Any]] = {
    "extremes": (0.5, 0.4),
    "total_seconds": ((2.7, 5.3), (2.7, 5.3)),
    "skew": ((0.8, 1.25), (0.55, 1.8)),
    "pause_chance": (0.2, 0.5),
    "bottle_height": ((0.33, 0.44), (0.31, 0.46)),
    "bottle_width": ((0.85, 1.15), (0.8, 1.25)),
    "glass_height": ((0.16, 0.24), (0.155, 0.25)),
    "glass_width": ((0.95, 1.1), (0.85, 1.25)),
    "glass_start": ((0.0, 0.0), (0.0, 0.12)),
    "glass_final": ((0.65, 0.92), (0.5, 0.95)),
    "bottle_fill": ((0.7, 0.9), (0.5, 0.95)),
    "back_shift": (0.03, 0.05),
    "all_liquids": (False, True),
    "all_walls": (False, True),
    "plain_wall_chance": (0.4, 0.1),
    "plain_table_chance": (0.4, 0.15),
    "texture": ((0.3, 0.8), (0.5, 1.0)),
    "mirror_chance": (0.5, 0.5),
    "zoom": ((1.02, 1.32), (0.95, 1.36)),
    "pan": (0.04, 0.04),
    "roll": (0.05, 0.10),
    "shear": (0.05, 0.12),
    "keystone": (0.1, 0.22),
    "flatness": ((0.1, 0.3), (0.08, 0.38)),
    "shake": ((0.0, 0.004), (0.004, 0.018)),
    "distractors": ((0, 2), (1, 4)),
    "mover_chance": (0.0, 0.5),
    "glove_chance": (0.15, 0.2),
    "entry_angle": ((-0.5, 0.5), (-0.7, 0.6)),
    "brightness": ((0.8, 1.1), (0.62, 1.14)),
    "tint": (0.08, 0.14),
    "light_slope": ((0.05, 0.15), (0.1, 0.45)),
    "noise": ((0.0, 2.0), (1.0, 5.0)),
}
LEVELS: dict[str, Level] = {
    name: Level(
        seconds={part: ranges[column] for part, ranges in _SECONDS.items()},
        **{field: values[column] for field, values in _VALUES.items()},
    )
    for column, name in enumerate(("easy", "hard"))
}
