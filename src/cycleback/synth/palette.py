"""Colours of the scene, and the little arithmetic on them."""

from collections.abc import Sequence

RGB = tuple[int, int, int]
RGBA = tuple[int, int, int, int]

# name -> (colour, how opaque the liquid is)
LIQUIDS: dict[str, tuple[RGB, float]] = {
    "water": ((96, 168, 222), 0.72),
    "orange juice": ((250, 152, 30), 0.95),
    "cola": ((70, 32, 18), 0.92),
    "red wine": ((124, 14, 42), 0.92),
    "milk": ((247, 244, 234), 0.97),
    "green tea": ((134, 164, 44), 0.80),
    "cranberry": ((214, 36, 62), 0.85),
    "lemonade": ((238, 212, 64), 0.82),
    "grape": ((92, 42, 132), 0.90),
    "mint": ((44, 170, 124), 0.85),
}
EASY_LIQUIDS = ("water", "orange juice", "cola", "red wine", "cranberry", "mint")

BOTTLES: tuple[RGB, ...] = (
    (222, 234, 240),  # clear
    (120, 178, 132),  # green
    (196, 140, 84),  # amber
    (128, 170, 220),  # blue
    (206, 196, 214),  # smoke
    (232, 206, 190),  # rose
)
SKINS: tuple[RGB, ...] = (
    (250, 214, 186),
    (236, 188, 150),
    (208, 152, 112),
    (170, 114, 76),
    (126, 80, 52),
    (88, 56, 38),
)
GLOVES: tuple[RGB, ...] = ((52, 104, 190), (236, 236, 240), (44, 44, 50), (60, 160, 150), (214, 96, 40))
SLEEVES: tuple[RGB, ...] = (
    (44, 62, 98),
    (150, 44, 52),
    (236, 232, 224),
    (60, 60, 66),
    (76, 112, 84),
    (216, 168, 70),
    (130, 92, 150),
    (96, 148, 186),
)
WALLS: tuple[RGB, ...] = (
    (222, 214, 200),
    (188, 204, 214),
    (202, 214, 190),
    (228, 198, 180),
    (172, 176, 188),
    (150, 170, 166),
    (210, 190, 212),
    (120, 132, 150),
    (236, 226, 170),
    (92, 104, 112),
    (176, 132, 116),
    (70, 96, 104),
)
EASY_WALLS = 6  # the first walls are quiet ones
TABLES: tuple[RGB, ...] = (
    (178, 126, 80),
    (140, 96, 62),
    (208, 172, 128),
    (112, 78, 58),
    (224, 220, 212),
    (84, 92, 104),
    (150, 66, 60),
    (70, 116, 110),
)
EASY_TABLES = 4  # the first tables are wood
PROPS: tuple[RGB, ...] = (
    (196, 60, 52),
    (238, 180, 52),
    (70, 140, 90),
    (58, 110, 170),
    (226, 226, 220),
    (150, 90, 150),
    (236, 130, 60),
    (60, 64, 72),
)


def with_alpha(colour: Sequence[int], alpha: float) -> RGBA:
    """The colour with an opacity in [0, 1]."""
    return (int(colour[0]), int(colour[1]), int(colour[2]), round(255 * min(max(alpha, 0.0), 1.0)))


def mix(first: Sequence[int], second: Sequence[int], share: float) -> RGB:
    """`share` of the second colour, the rest of the first."""
    red, green, blue = (
        round(a + (b - a) * share) for a, b in zip(tuple(first)[:3], tuple(second)[:3], strict=True)
    )
    return (red, green, blue)


def darker(colour: Sequence[int], share: float) -> RGB:
    """The colour moved by `share` towards black."""
    return mix(colour, (0, 0, 0), share)


def lighter(colour: Sequence[int], share: float) -> RGB:
    """The colour moved by `share` towards white."""
    return mix(colour, (255, 255, 255), share)


def contrast(first: Sequence[int], second: Sequence[int]) -> float:
    """Distance of two colours in RGB, 0 to 441."""
    return float(sum((a - b) ** 2 for a, b in zip(tuple(first)[:3], tuple(second)[:3], strict=True)) ** 0.5)
