"""From the world to pixels: one projective map a video, and a hand-held shake a frame.

A view is a (3, 3) matrix on homogeneous coordinates (x, y, 1); pixels have y down.
"""

import numpy as np
from numpy.typing import NDArray

from cycleback.synth.scene import Camera

CENTRE = (-0.02, 0.245)  # the world point in the middle of an unmoved picture

Matrix = NDArray[np.float64]  # (3, 3)


def view_matrix(camera: Camera, pixels: int) -> Matrix:
    """World -> pixels of a square picture of `pixels` a side."""
    side = -1.0 if camera.mirrored else 1.0
    to_centre = _translation(-CENTRE[0], -CENTRE[1])
    zoom = np.diag([camera.zoom * side, camera.zoom, 1.0])
    cos, sin = np.cos(camera.roll), np.sin(camera.roll)
    roll = np.array([[cos, -sin, camera.pan[0]], [sin, cos, camera.pan[1]], [0.0, 0.0, 1.0]])
    slant = np.array([[1.0, camera.shear, 0.0], [0.0, 1.0, 0.0], [*camera.keystone, 1.0]])
    to_pixels = np.diag([pixels, -pixels, 1.0])
    view = _translation(pixels / 2, pixels / 2) @ to_pixels @ roll @ slant @ zoom @ to_centre
    return np.asarray(view)


def shake_matrices(camera: Camera, *, num_frames: int, fps: float, pixels: int) -> NDArray[np.float64]:
    """Pixels -> shaken pixels for each frame, (N, 3, 3): a wandering similarity about the middle."""
    if camera.shake == 0.0:
        return np.broadcast_to(np.eye(3), (num_frames, 3, 3)).copy()
    rng = np.random.default_rng(camera.shake_seed)
    seconds = np.arange(num_frames) / fps
    rates = rng.uniform(0.3, 3.2, (4, 4))  # cycles a second: four waves for each of x, y, angle, zoom
    waves = np.sin(2 * np.pi * (rates[..., None] * seconds + rng.random((4, 4, 1))))
    wander = (waves / (0.5 + rates[..., None])).sum(axis=1) / 2  # (4, N), about -1 to 1
    x, y, angle, zoom = wander * camera.shake * np.array([[1.0], [1.0], [0.8], [1.0]])
    return _similarities(x * pixels, y * pixels, angle=angle, zoom=np.exp(zoom), middle=pixels / 2)


def project(view: Matrix, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """World points (K, 2) -> pixels (K, 2)."""
    mapped = points @ view[:, :2].T + view[:, 2]
    return mapped[:, :2] / mapped[:, 2:]


def _similarities(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    *,
    angle: NDArray[np.float64],
    zoom: NDArray[np.float64],
    middle: float,
) -> NDArray[np.float64]:
    cos, sin = zoom * np.cos(angle), zoom * np.sin(angle)
    matrices = np.zeros((len(x), 3, 3))
    matrices[:, 0, 0], matrices[:, 0, 1], matrices[:, 0, 2] = cos, -sin, x + middle - (cos - sin) * middle
    matrices[:, 1, 0], matrices[:, 1, 1], matrices[:, 1, 2] = sin, cos, y + middle - (sin + cos) * middle
    matrices[:, 2, 2] = 1.0
    return matrices


def _translation(x: float, y: float) -> Matrix:
    return np.array([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]])
