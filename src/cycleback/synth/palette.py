"""Colours of the scene, and functions to mix them."""

from collections.abc import Sequence

RGB = tuple[int, int, int]
RGBA = tuple[int, int, int, int]


def _parse(colours: str) -> tuple[RGB, ...]:
    """Convert colours such as "#ff8000 #00ff00" to tuples."""
    parts = [bytes.fromhex(colour[1:]) for colour in colours.split()]
    return tuple((red, green, blue) for red, green, blue in parts)


# name -> (colour, opacity)
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

BOTTLES = _parse("#deeaf0 #78b284 #c48c54 #80aadc #cec4d6 #e8cebe")  # clear green amber blue smoke rose
SKINS = _parse("#fad6ba #ecbc96 #d09870 #aa724c #7e5034 #583826")
GLOVES = _parse("#3468be #ececf0 #2c2c32 #3ca096 #d66028")
SLEEVES = _parse("#2c3e62 #962c34 #ece8e0 #3c3c42 #4c7054 #d8a846 #825c96 #6094ba")
EASY_WALLS = _parse("#ded6c8 #bcccd6 #cad6be #e4c6b4 #acb0bc #96aaa6")  # quiet colours
WALLS = EASY_WALLS + _parse("#d2bed4 #788496 #ece2aa #5c6870 #b08474 #466068")
EASY_TABLES = _parse("#b27e50 #8c603e #d0ac80 #704e3a")  # wood
TABLES = EASY_TABLES + _parse("#e0dcd4 #545c68 #96423c #46746e")
PROPS = _parse("#c43c34 #eeb434 #468c5a #3a6eaa #e2e2dc #965a96 #ec823c #3c4048")


def with_alpha(colour: Sequence[int], alpha: float) -> RGBA:
    """Add an opacity in [0, 1] to a colour."""
    return (int(colour[0]), int(colour[1]), int(colour[2]), round(255 * min(max(alpha, 0.0), 1.0)))


def mix(first: Sequence[int], second: Sequence[int], share: float) -> RGB:
    """Mix `share` of the second colour into the first."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first[:3], second[:3], strict=True))
    return (red, green, blue)


def darker(colour: Sequence[int], share: float) -> RGB:
    """Move a colour by `share` towards black."""
    return mix(colour, (0, 0, 0), share)


def lighter(colour: Sequence[int], share: float) -> RGB:
    """Move a colour by `share` towards white."""
    return mix(colour, (255, 255, 255), share)


def contrast(first: Sequence[int], second: Sequence[int]) -> float:
    """Return the distance of two colours in RGB, 0 to 441."""
    return float(sum((a - b) ** 2 for a, b in zip(first[:3], second[:3], strict=True)) ** 0.5)
