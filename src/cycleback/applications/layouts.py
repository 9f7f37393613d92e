"""Ways to show several videos at once: beside each other, on top of each other, or in turns.

Shapes: V videos, H W pixels.
"""

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cycleback.video import fit_cell, tile
from cycleback.video.canvas import Caption, Colour

LAYOUTS = ("grid", "row", "overlay", "tinted", "switch")
FIRST_TINT = 30 / 360  # orange; with two videos the other is blue, a pair that all eyes tell apart
LUMA = np.array([0.2126, 0.7152, 0.0722], dtype=np.float32)  # BT.709
LEAST_CAPTIONED = 72  # pixels; a name under a smaller picture cannot be read
Image = NDArray[np.uint8]


@dataclass(frozen=True)
class Shown:
    """One video at one moment: its image (H, W, 3), its name, its second and how far through it is."""

    image: Image
    caption: str
    second: float
    progress: float


def arrange(shown: Sequence[Shown], *, layout: str, columns: int | None = None, words: bool = True) -> Image:
    """One picture of all that is `shown`.

    Args:
        layout: "grid" or "row": beside each other; "overlay": their mean; "tinted": each in a colour of its
            own, grey where they agree; "switch": the first alone.
        columns: tiles a row of a grid; default: a row for up to three, else a near-square.
        words: names, times and progress bars below the pictures.
    """
    if layout in ("grid", "row"):
        return _tiled(shown, columns=len(shown) if layout == "row" else columns, words=words)
    size = shown[0].image.shape[:2]
    images = [fit_cell(one.image, size) for one in shown]
    if layout == "overlay":
        names: Caption = " + ".join(one.caption for one in shown)
        return _alone(mixed(images), names, shown[0], words=words)
    if layout == "tinted":
        colours = tints(len(shown))
        pieces = [(one.caption, _bright(colour)) for one, colour in zip(shown, colours, strict=True)]
        return _alone(tinted(images), tuple(pieces), shown[0], words=words)
    return _alone(images[0], shown[0].caption, shown[0], words=words)


def mixed(images: Sequence[Image]) -> Image:
    """The mean of images (H, W, 3) of one size: an onion skin."""
    total = np.zeros(images[0].shape, dtype=np.float32)
    for image in images:
        total += image
    mean: Image = np.rint(total / len(images)).astype(np.uint8)
    return mean


def tinted(images: Sequence[Image]) -> Image:
    """Images (H, W, 3) of one size, each in grey times a colour; the colours sum to white."""
    total = np.zeros(images[0].shape, dtype=np.float32)
    for image, colour in zip(images, tints(len(images)), strict=True):
        total += (image @ LUMA)[..., None] * colour
    picture: Image = np.rint(np.clip(total, 0, 255)).astype(np.uint8)
    return picture


def tints(count: int) -> NDArray[np.float32]:
    """Colours (count, 3) in [0, 1], evenly around the colour circle, that sum to white."""
    hues = [colorsys.hsv_to_rgb((FIRST_TINT + number / count) % 1, 0.9, 1) for number in range(count)]
    colours = np.array(hues, dtype=np.float32)
    shares: NDArray[np.float32] = colours / colours.sum(axis=0)
    return shares


def _tiled(shown: Sequence[Shown], *, columns: int | None, words: bool) -> Image:
    legible = words and min(max(one.image.shape[axis] for one in shown) for axis in (0, 1)) >= LEAST_CAPTIONED
    return tile(
        [one.image for one in shown],
        columns=columns,
        captions=[one.caption for one in shown] if legible else None,
        notes=[_clock(one.second) for one in shown] if legible else None,
        progress=[one.progress for one in shown] if words else None,
    )


def _alone(image: Image, caption: Caption, first: Shown, *, words: bool) -> Image:
    """One picture with the clock and the progress of the `first` video."""
    if not words:
        return image
    return tile([image], captions=[caption], notes=[_clock(first.second)], progress=[first.progress])


def _clock(second: float) -> str:
    """12.34 s, or 1:02.34 from a minute on."""
    if second < 60:
        return f"{second:.2f} s"
    return f"{int(second // 60)}:{second % 60:05.2f}"


def _bright(colour: NDArray[np.float32]) -> Colour:
    """A tint as a colour for text."""
    red, green, blue = np.rint(255 * (0.25 + 0.75 * colour / colour.max())).astype(int).tolist()
    return red, green, blue
