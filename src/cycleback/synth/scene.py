"""Everything that is drawn by lot once for a video: containers, colours, hand, camera, light, surroundings.

World frame: x to the right, y up, in widths of the scene; the bottle and the glass stand at y = 0.
"""

from dataclasses import dataclass

from cycleback.synth.containers import Container
from cycleback.synth.palette import RGB


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
    """The hand that pours: `grip` says whether fingers or thumb are on the near side of the bottle."""

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
    """Where the scene lands in the picture."""

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
    """Something else on the table."""

    kind: str
    x: float
    depth: float
    size: float
    colour: RGB
    second_colour: RGB


@dataclass(frozen=True)
class Mover:
    """Something that moves behind the table, with a period that has nothing to do with the action."""

    kind: str
    colour: RGB
    period: float
    phase: float
    x: float


@dataclass(frozen=True)
class Surroundings:
    """Wall, table and what is on and behind them."""

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
    """All drawn parameters of a video but its timing."""

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
