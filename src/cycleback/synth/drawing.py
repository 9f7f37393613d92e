"""Shapes on a picture: polygons in world coordinates, blended over what is there.

Smooth edges come from drawing large and shrinking: Pillow fills polygons without anti-aliasing, but fast.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cycleback.synth.camera import Matrix, project
from cycleback.synth.palette import RGB, RGBA, with_alpha

if TYPE_CHECKING:
    from PIL import Image

Point = tuple[float, float] | NDArray[np.float64]


class Canvas:
    """A picture and the view that says where world points land in it."""

    def __init__(self, image: "Image.Image", view: Matrix) -> None:
        """Draw on `image`, an RGB picture, which is changed in place."""
        from PIL import ImageDraw

        self.image = image
        self.view = view
        self._draw = ImageDraw.Draw(image, "RGBA")

    def polygon(self, points: NDArray[np.float64], colour: RGB | RGBA) -> None:
        """Fill a closed polygon (K, 2); fewer than three points draw nothing."""
        if len(points) >= 3:
            self._draw.polygon(project(self.view, points).ravel().tolist(), fill=colour)

    def ellipse(
        self, centre: Point, radii: tuple[float, float], colour: RGB | RGBA, *, count: int = 22
    ) -> None:
        """Fill an ellipse with its axes along x and y."""
        self.polygon(_circle(count) * radii + centre, colour)

    def soft_ellipse(
        self, centre: Point, radii: tuple[float, float], colour: RGB, *, alpha: float, rings: int = 6
    ) -> None:
        """An ellipse that fades out towards its edge: `alpha` in the middle, 0 outside."""
        for ring in range(rings):
            share = 1.2 - 0.95 * ring / max(rings - 1, 1)
            self.ellipse(
                centre, (radii[0] * share, radii[1] * share), with_alpha(colour, alpha / rings), count=16
            )

    def capsule(
        self, start: Point, end: Point, radii: tuple[float, float], colour: RGB | RGBA, *, count: int = 6
    ) -> None:
        """A stroke with round ends, `radii[0]` thick at its start and `radii[1]` at its end."""
        first, last = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
        heading = np.arctan2(last[1] - first[1], last[0] - first[0])
        cos, sin = np.cos(heading), np.sin(heading)
        front = _half_circle(count) @ np.array([[cos, sin], [-sin, cos]])
        self.polygon(np.concatenate([last + front * radii[1], first - front * radii[0]]), colour)

    def ribbon(self, points: NDArray[np.float64], widths: NDArray[np.float64], colour: RGB | RGBA) -> None:
        """A band along `points` (K, 2), as wide as `widths` (K,) across x."""
        half = np.stack([widths / 2, np.zeros_like(widths)], axis=1)
        self.polygon(np.concatenate([points - half, (points + half)[::-1]]), colour)


@lru_cache
def _circle(count: int) -> NDArray[np.float64]:
    """Points (count, 2) on the unit circle."""
    angles = np.arange(count) * (2 * np.pi / count)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@lru_cache
def _half_circle(count: int) -> NDArray[np.float64]:
    """Points (count, 2) on the right half of the unit circle, from below to above."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, count)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)
