"""Frames of the videos around a map, each tied to its dot.

Shapes: P points of a map, K of them chosen.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.video import probe, read_frames

PIXELS = 160  # of a thumbnail's height
PER_SIDE = 5  # thumbnails along each side, the corners counted twice
SIDE = 0.15  # of the axes' width or height that a thumbnail takes
BORDER = 0.09  # from the edge of the axes to the middle of a thumbnail
INNER = (0.22, 0.78)  # part of the axes that the dots keep to
Points = NDArray[np.float64]


def frame_reader(paths: Mapping[str, Path | None]) -> Callable[[str, int], NDArray[np.uint8]] | None:
    """A function that reads frame n of a named video, small; None where a video is not there."""
    files = {name: path for name, path in paths.items() if path is not None and path.is_file()}
    if len(files) < len(paths):
        return None

    def read(name: str, frame: int) -> NDArray[np.uint8]:
        info = probe(files[name])
        height = min(PIXELS, info.height)
        size = (height, max(1, round(info.width * height / info.height)))
        image: NDArray[np.uint8] = read_frames(files[name], [frame], size=size)[0]
        return image

    return read


def spread_out(points: Points, count: int = 4 * (PER_SIDE - 1)) -> list[int]:
    """Numbers of `count` of the points (P, 2), each as far as can be from those before it."""
    chosen = [0]
    nearest = np.linalg.norm(points - points[0], axis=1)
    while len(chosen) < min(count, len(points)) and nearest.max() > 0:
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return chosen


def draw_thumbnails(
    axis: Any,
    points: Points,
    chosen: Sequence[int],
    *,
    pictures: Sequence[NDArray[np.uint8]],
    colours: Sequence[Any],
) -> None:
    """Put `pictures` around the map, framed in the `colours` of their dots, with a line to each dot."""
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage
    from scipy.optimize import linear_sum_assignment

    places = _keep_inside(axis, points)  # (P, 2)
    slots = _around()
    costs = np.linalg.norm(places[list(chosen)][:, None] - slots[None], axis=2)  # (K, slots)
    width, height = axis.figure.get_size_inches()
    for row, slot in zip(*linear_sum_assignment(costs), strict=True):
        picture = pictures[row]
        scale = min(SIDE * height / picture.shape[0], SIDE * width / picture.shape[1])  # inches a pixel
        box = AnnotationBbox(
            OffsetImage(picture, zoom=72 * scale),
            points[chosen[row]],
            xybox=slots[slot],
            boxcoords="axes fraction",
            pad=0.12,
            bboxprops={"edgecolor": colours[row], "linewidth": 1.6},
            arrowprops={"arrowstyle": "-", "color": "#999999", "linewidth": 0.7, "shrinkB": 2},
            zorder=3,
        )
        box.set_in_layout(False)
        axis.add_artist(box)
        axis.scatter(*points[chosen[row]], s=34, color="none", edgecolor="#333333", linewidth=0.9, zorder=4)


def _keep_inside(axis: Any, points: Points) -> Points:
    """Set the limits so that all points (P, 2) lie in the inner part; returns them as shares of the axes."""
    low, span = points.min(axis=0), np.maximum(np.ptp(points, axis=0), 1e-9)
    scale = span / (INNER[1] - INNER[0])
    start = low - INNER[0] * scale
    axis.set(xlim=(start[0], start[0] + scale[0]), ylim=(start[1], start[1] + scale[1]))
    return np.asarray((points - start) / scale)


def _around() -> Points:
    """Places (4 (PER_SIDE - 1), 2) along the border of the axes, as shares of them."""
    line = np.linspace(BORDER, 1 - BORDER, PER_SIDE)
    corners = [(x, y) for x in line for y in line if BORDER in (x, y) or line[-1] in (x, y)]
    return np.array(corners)
