"""Project the world to pixels and draw shapes on a picture.

A view is a (3, 3) matrix on homogeneous coordinates (x, y, 1); pixels have y down. There is one view per
video and one camera shake per frame. Pillow fills polygons fast but without anti-aliasing, so pictures are
drawn large and then reduced.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cycleback.synth.palette import RGB, RGBA, with_alpha
from cycleback.synth.scene import Camera

if TYPE_CHECKING:
    from PIL import Image

CENTRE = (-0.02, 0.245)  # the world point in the middle of the picture before the camera moves

Matrix = NDArray[np.float64]  # (3, 3)
Point = tuple[float, float] | NDArray[np.float64]


def view_matrix(camera: Camera, pixels: int) -> Matrix:
    """Map the world to the pixels of a square picture, `pixels` per side."""
    side = -1.0 if camera.mirrored else 1.0
    zoom = np.diag([camera.zoom * side, camera.zoom, 1.0])
    cos, sin = np.cos(camera.roll), np.sin(camera.roll)
    roll = np.array([[cos, -sin, camera.pan[0]], [sin, cos, camera.pan[1]], [0.0, 0.0, 1.0]])
    slant = np.array([[1.0, camera.shear, 0.0], [0.0, 1.0, 0.0], [*camera.keystone, 1.0]])
    to_pixels = translate(pixels / 2, pixels / 2) @ np.diag([pixels, -pixels, 1.0])
    return np.asarray(to_pixels @ roll @ slant @ zoom @ translate(-CENTRE[0], -CENTRE[1]))


def shake_matrices(camera: Camera, *, num_frames: int, fps: float, pixels: int) -> NDArray[np.float64]:
    """Map pixels to shaken pixels in each frame, (N, 3, 3): small moves, turns and zooms about the middle."""
    if camera.shake == 0.0:
        return np.broadcast_to(np.eye(3), (num_frames, 3, 3)).copy()
    rng = np.random.default_rng(camera.shake_seed)
    seconds = np.arange(num_frames) / fps
    rates = rng.uniform(0.3, 3.2, (4, 4))  # cycles per second: four waves each for x, y, angle and zoom
    waves = np.sin(2 * np.pi * (rates[..., None] * seconds + rng.random((4, 4, 1))))
    wander = (waves / (0.5 + rates[..., None])).sum(axis=1) / 2  # (4, N), about -1 to 1
    x, y, angle, zoom = wander * camera.shake * np.array([[1.0], [1.0], [0.8], [1.0]])
    cos, sin = np.exp(zoom) * np.cos(angle), np.exp(zoom) * np.sin(angle)
    middle = pixels / 2
    matrices = np.zeros((num_frames, 3, 3))
    matrices[:, 0] = np.stack([cos, -sin, x * pixels + middle - (cos - sin) * middle], axis=1)
    matrices[:, 1] = np.stack([sin, cos, y * pixels + middle - (sin + cos) * middle], axis=1)
    matrices[:, 2, 2] = 1.0
    return matrices


def translate(x: float, y: float) -> Matrix:
    """Return the matrix that moves points by (x, y)."""
    return np.array([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]])


def project(view: Matrix, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map world points (K, 2) to pixels (K, 2)."""
    mapped = points @ view[:, :2].T + view[:, 2]
    return mapped[:, :2] / mapped[:, 2:]


class Canvas:
    """A picture, and the view that maps world points to it."""

    def __init__(self, image: "Image.Image", view: Matrix) -> None:
        """Draw on `image`, an RGB picture, in place."""
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
        """Fill an ellipse that fades out: `alpha` in the middle, 0 outside."""
        ring_colour = with_alpha(colour, alpha / rings)
        for ring in range(rings):
            share = 1.2 - 0.95 * ring / max(rings - 1, 1)
            self.ellipse(centre, (radii[0] * share, radii[1] * share), ring_colour, count=16)

    def capsule(
        self, start: Point, end: Point, radii: tuple[float, float], colour: RGB | RGBA, *, count: int = 6
    ) -> None:
        """Fill a stroke with round ends of radius `radii[0]` at the start and `radii[1]` at the end."""
        first, last = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
        heading = np.arctan2(last[1] - first[1], last[0] - first[0])
        cos, sin = np.cos(heading), np.sin(heading)
        front = _half_circle(count) @ np.array([[cos, sin], [-sin, cos]])
        self.polygon(np.concatenate([last + front * radii[1], first - front * radii[0]]), colour)

    def ribbon(self, points: NDArray[np.float64], widths: NDArray[np.float64], colour: RGB | RGBA) -> None:
        """Fill a band along `points` (K, 2) with `widths` (K,) along x."""
        half = np.stack([widths / 2, np.zeros_like(widths)], axis=1)
        self.polygon(np.concatenate([points - half, (points + half)[::-1]]), colour)


@lru_cache
def _circle(count: int) -> NDArray[np.float64]:
    """Points (count, 2) on the unit circle."""
    angles = np.arange(count) * (2 * np.pi / count)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@lru_cache
def _half_circle(count: int) -> NDArray[np.float64]:
    """Points (count, 2) on the right half of the unit circle, from bottom to top."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, count)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)
