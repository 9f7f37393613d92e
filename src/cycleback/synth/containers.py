"""Shapes of bottles and glasses, and the level of the liquid in a tilted bottle.

A container is a surface of revolution. In its own frame, the middle of the base is at (0, 0) and y runs along
its axis. Tilting turns it clockwise, towards +x, about the base. Lengths are in widths of the scene.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]  # (K, 2)
Shape = tuple[tuple[tuple[float, float], ...], float]

# silhouette: (height, radius) as shares of the full height and of the widest radius; then radius / height
BOTTLE_SHAPES: dict[str, Shape] = {
    "wine": (((0, 0.93), (0.03, 1), (0.56, 1), (0.7, 0.58), (0.77, 0.38), (0.96, 0.36), (1, 0.4)), 0.155),
    "water": (
        ((0, 0.9), (0.04, 1), (0.36, 1), (0.44, 0.88), (0.52, 1), (0.7, 1), (0.88, 0.45), (1, 0.42)),
        0.16,
    ),
    "carafe": (((0, 0.72), (0.06, 0.92), (0.26, 1), (0.46, 0.8), (0.64, 0.46), (0.8, 0.4), (1, 0.56)), 0.22),
    "flask": (((0, 0.95), (0.05, 1), (0.6, 0.46), (0.7, 0.36), (0.95, 0.36), (1, 0.42)), 0.24),
    "milk": (((0, 0.95), (0.04, 1), (0.5, 1), (0.68, 0.74), (0.8, 0.54), (0.93, 0.54), (1, 0.6)), 0.17),
    "soda": (
        ((0, 0.86), (0.06, 1), (0.22, 0.94), (0.34, 0.84), (0.5, 1), (0.62, 0.9), (0.84, 0.44), (1, 0.38)),
        0.15,
    ),
}
GLASS_SHAPES: dict[str, Shape] = {
    "tumbler": (((0, 0.9), (0.05, 0.93), (1, 1)), 0.42),
    "highball": (((0, 0.94), (1, 1)), 0.32),
    "tapered": (((0, 0.64), (1, 1)), 0.42),
    "pint": (((0, 0.68), (0.55, 0.82), (0.74, 0.98), (1, 0.96)), 0.36),
    "goblet": (((0.34, 0.35), (0.42, 0.72), (0.62, 1), (0.85, 0.96), (1, 0.84)), 0.48),
    "mug": (((0, 0.96), (0.04, 1), (1, 1)), 0.42),
}
GLASS_FLOOR: dict[str, float] = {"goblet": 0.36}  # share of the height below the liquid; else THICK_BOTTOM
THICK_BOTTOM = 0.07
GLASS_RIM = 0.96  # a fill of 1 reaches this share of the height
WALL = 0.9  # inner radius over outer radius
BASE = 0.035  # thickness of a bottle's base over its height


@dataclass(frozen=True)
class Container:
    """A bottle or a glass; `kind` names its silhouette."""

    kind: str
    height: float
    radius: float

    @cached_property
    def profile(self) -> Points:
        """(K, 2) rows of (height, radius) from the base to the mouth, with slightly rounded corners."""
        shape = (BOTTLE_SHAPES | GLASS_SHAPES)[self.kind][0]
        heights, radii = np.array(shape, dtype=np.float64).T
        dense = np.linspace(heights[0], 1.0, 61)
        straight = np.interp(dense, heights, radii)
        padded = np.pad(straight, 3, mode="edge")
        rounded = np.convolve(padded, np.ones(7) / 7, mode="valid")
        rounded[[0, -1]] = straight[[0, -1]]
        keep = np.linspace(0, 60, 16).round().astype(int)
        return np.stack([dense[keep] * self.height, rounded[keep] * self.radius], axis=1)

    def radius_at(self, height: float | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the outer radius at a height above the base."""
        return np.asarray(np.interp(height, self.profile[:, 0], self.profile[:, 1]))

    @lru_cache(maxsize=256)  # noqa: B019  # containers are small and compare by value
    def outline(self, flatness: float) -> Points:
        """Return the silhouette (M, 2) with round base and mouth; do not modify it."""
        return outline(self.profile, flatness=flatness)

    @lru_cache(maxsize=256)  # noqa: B019
    def strip(self, left: float, right: float) -> Points:
        """Return the part (M, 2) of the silhouette between two shares of its radius; do not modify it."""
        return strip(self.profile, left, right)

    @property
    def lip(self) -> tuple[float, float]:
        """The point of the mouth over which the liquid flows, in the container's own frame."""
        return (float(self.profile[-1, 1]), self.height)

    @cached_property
    def _volume(self) -> tuple[Points, NDArray[np.float64]]:
        """Points (V, 2) inside the container and the volume (V,) of each; the volumes sum to 1."""
        heights = (np.arange(36) + 0.5) / 36 * self.height * (1 - BASE) + self.height * BASE
        across = (np.arange(11) + 0.5) / 11 * 2 - 1
        radii = self.radius_at(heights)[:, None] * WALL
        x = radii * across
        weight = (radii**2 * np.sqrt(1 - across**2)).ravel()
        return np.stack([x.ravel(), np.repeat(heights, 11)], axis=1), weight / weight.sum()

    def level(self, tilt: float, volume: float) -> float:
        """Return the height of the liquid above the middle of the base when `volume` (0 to 1) is left."""
        points, weight = self._volume
        heights = points[:, 1] * np.cos(tilt) - points[:, 0] * np.sin(tilt)
        order = np.argsort(heights, kind="stable")
        return float(np.interp(volume, np.cumsum(weight[order]), heights[order]))

    def pour_tilt(self, volume: float) -> float:
        """Find the tilt at which `volume` just reaches the lip."""
        low, high = 0.0, 2.4
        lip_x, lip_y = self.lip
        for _ in range(14):
            tilt = (low + high) / 2
            spills = self.level(tilt, volume) > lip_y * np.cos(tilt) - lip_x * np.sin(tilt)
            low, high = (low, tilt) if spills else (tilt, high)
        return (low + high) / 2

    @property
    def floor(self) -> float:
        """Height of the inside bottom of a glass."""
        return GLASS_FLOOR.get(self.kind, THICK_BOTTOM) * self.height

    def surface(self, fill: float) -> float:
        """Return the height of the liquid in a standing glass; `fill` is a share of the inner height."""
        return self.floor + fill * (GLASS_RIM * self.height - self.floor)

    @cached_property
    def capacity(self) -> float:
        """Inner volume over pi: the integral of the squared inner radius."""
        heights = np.linspace(self.floor, self.height * GLASS_RIM, 50)
        return float(np.mean((self.radius_at(heights) * WALL) ** 2) * (heights[-1] - heights[0]))


def point(x: float, y: float) -> Points:
    """Return a point or an offset as an array (2,)."""
    return np.array([x, y], dtype=np.float64)


def outline(profile: Points, *, flatness: float) -> Points:
    """Trace the closed silhouette (M, 2) of a `profile` (K, 2): base, left side, mouth, right side."""
    heights, radii = profile.T
    base = half_ellipse(radii[0], flatness, start=0.0)[1:-1]
    mouth = half_ellipse(radii[-1], flatness, start=np.pi)[1:-1]
    return np.concatenate(
        [
            base * (1, -1) + point(0, heights[0]),
            np.stack([-radii, heights], axis=1),
            mouth * (1, -1) + point(0, heights[-1]),
            np.stack([radii, heights], axis=1)[::-1],
        ]
    )


def half_ellipse(radius: float, flatness: float, *, start: float) -> Points:
    """Trace half of a flat ellipse about (0, 0) from the angle `start`: (9, 2)."""
    angles = np.linspace(start, start + np.pi, 9)
    return np.stack([radius * np.cos(angles), radius * flatness * np.sin(angles)], axis=1)


def strip(profile: Points, left: float, right: float) -> Points:
    """Trace the part (M, 2) of a silhouette between two shares of its radius: -1 is left, 1 is right."""
    heights, radii = profile.T
    sides = [np.stack([radii * share, heights], axis=1) for share in (left, right)]
    return np.concatenate([sides[0], sides[1][::-1]])


def rotate(points: Points, tilt: float) -> Points:
    """Turn points (K, 2) clockwise by `tilt` about (0, 0)."""
    cos, sin = np.cos(tilt), np.sin(tilt)
    return np.asarray(points @ np.array([[cos, -sin], [sin, cos]]))


def below(points: Points, level: float) -> Points:
    """Cut a closed polygon (K, 2) to the part with y under `level`: (M, 2), empty if there is none."""
    under = points[:, 1] <= level
    if not under.any():
        return np.empty((0, 2))
    following = np.roll(points, -1, axis=0)
    crosses = under != np.roll(under, -1)
    rise = following[:, 1] - points[:, 1]
    share = (level - points[:, 1]) / np.where(crosses, rise, 1.0)
    cuts = points + share[:, None] * (following - points)
    both = np.stack([points, cuts], axis=1).reshape(-1, 2)
    return np.asarray(both[np.stack([under, crosses], axis=1).ravel()])
