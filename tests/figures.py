"""Draw people: a body of coloured capsules on a plain wall, which MoveNet takes for a person."""

import numpy as np
from numpy.typing import NDArray

# joints in units of the body's height: x from the middle, y from the top
HEAD, NECK, HIPS = (0.0, 0.07), (0.0, 0.17), (0.0, 0.5)
LEFT = {"shoulder": (0.1, 0.19), "elbow": (0.19, 0.33), "wrist": (0.22, 0.47)}
LEFT |= {"hip": (0.06, 0.5), "knee": (0.08, 0.73), "ankle": (0.09, 0.96)}
SKIN, SHIRT, TROUSERS, SHOES = (214, 160, 130), (170, 40, 40), (40, 50, 90), (20, 20, 20)
WALL = (176, 186, 176)


def draw_person(
    image: NDArray[np.uint8], *, top: float, middle: float, height: float, lift: float = 0.0
) -> None:
    """Draw a person of `height` pixels into `image` (H, W, 3), its head at row `top`, column `middle`.

    `lift` from 0 to 1 raises the arms from hanging to stretched sideways.
    """
    grid = np.stack(np.indices(image.shape[:2])[::-1], axis=-1) + 0.5  # x, y of each pixel
    body = (grid - (middle, top)) / height

    def capsule(start: tuple[float, float], end: tuple[float, float], width: float, colour: object) -> None:
        a, b = np.array(start), np.array(end)
        along = np.clip((body - a) @ (b - a) / max((b - a) @ (b - a), 1e-9), 0, 1)
        distance = np.linalg.norm(body - a - along[..., None] * (b - a), axis=-1)
        image[distance < width] = colour

    for side in (-1, 1):
        at = {name: (side * x, y) for name, (x, y) in LEFT.items()}
        capsule(at["hip"], at["knee"], 0.05, TROUSERS)
        capsule(at["knee"], at["ankle"], 0.04, TROUSERS)
        capsule(at["ankle"], (side * 0.13, 0.98), 0.025, SHOES)
    capsule(NECK, HEAD, 0.03, SKIN)
    for y in (0.22, 0.3, 0.38, 0.46):
        capsule((-0.06, y), (0.06, y), 0.055, SHIRT)
    for side in (-1, 1):
        shoulder, elbow, wrist = (np.array((side * x, y)) for x, y in list(LEFT.values())[:3])
        raised = [shoulder + np.array((side * reach, 0.0)) for reach in (0.16, 0.31)]
        elbow, wrist = (rest + lift * (up - rest) for rest, up in zip((elbow, wrist), raised, strict=True))
        capsule(tuple(shoulder), tuple(elbow), 0.035, SHIRT)
        capsule(tuple(elbow), tuple(wrist), 0.025, SKIN)
    capsule(HEAD, (0.0, 0.085), 0.055, SKIN)
    capsule((0.0, 0.04), (0.0, 0.045), 0.055, (60, 40, 30))
    capsule((0.0, 0.085), (0.0, 0.095), 0.045, SKIN)
    for side in (-1, 1):
        capsule((side * 0.02, 0.075), (side * 0.02, 0.075), 0.008, SHOES)


def draw_wall(height: int, width: int) -> NDArray[np.uint8]:
    """An empty room (H, W, 3): a wall that darkens to the right, and a floor."""
    image = np.empty((height, width, 3), np.uint8)
    image[:] = WALL
    image[:] -= np.linspace(0, 40, width).astype(np.uint8)[None, :, None]
    image[int(0.9 * height) :] = (120, 100, 80)
    return image
