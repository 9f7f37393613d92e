"""Maps: embeddings in two dimensions, one dot per frame, one line per video, frames around them.

Shapes: N frames of a video, D embedding size, P points of a map, K of them with a thumbnail.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.plots.figure import PHASE_COLOURS, TIME_COLOURS, image_bytes, new_figure
from cycleback.data.records import SEQUENCE_SUFFIX
from cycleback.errors import UserError, one_of, require
from cycleback.video import probe, read_frames

Embeddings = NDArray[np.float32]
Phases = NDArray[np.int64]
Image = NDArray[np.uint8]
Points = NDArray[np.float64]
PROJECTIONS = ("tsne", "pca")
MAX_POINTS = 2000  # about four seconds of t-SNE
MIN_TSNE_POINTS = 5  # fewer have no neighbourhoods
THUMBNAIL_PIXELS = 160  # height
THUMBNAILS_PER_SIDE = 5  # the corners counted twice
THUMBNAIL_SIDE = 0.15  # of the axes' width or height
THUMBNAIL_BORDER = 0.09  # from the edge of the axes to the middle of a thumbnail
INNER = (0.22, 0.78)  # part of the axes that holds the dots


def draw_map(
    videos: Mapping[str, Embeddings],
    *,
    by: str = "tsne",
    phases: Mapping[str, Phases] | None = None,
    phase_names: Sequence[str] = (),
    thumbnail: Callable[[str, int], Image] | None = None,
    seed: int = 0,
    size: tuple[float, float] | None = None,
    format: str = "png",
) -> bytes:
    """Draw one map of all videos, coloured by phase where the phases of all are known, else by time.

    Args:
        videos: name -> embeddings (N, D).
        by: "tsne" (keeps neighbours) or "pca" (keeps the directions of largest variance).
        phases: name -> phase (N,) of each frame.
        thumbnail: returns the picture (H, W, 3) of a frame of a video; some are shown around the map.
        size: inches.
        format: "png", "svg" or "pdf".
    """
    stride = -(-sum(map(len, videos.values())) // MAX_POINTS)
    frames = [(name, frame) for name, rows in videos.items() for frame in range(0, len(rows), stride)]
    points = project(np.concatenate([rows[::stride] for rows in videos.values()]), by=by, seed=seed)
    ends = np.cumsum([len(rows[::stride]) for rows in videos.values()])[:-1]
    by_phase = phases is not None and set(videos) <= set(phases)
    with new_figure(1, size=size or (8.0, 6.6)) as (figure, (axis,)):
        for line in np.split(points, ends):
            axis.plot(*line.T, color="#888888", alpha=0.35, linewidth=0.8, zorder=1)
        if by_phase and phases is not None:
            labels = np.array([phases[name][frame] for name, frame in frames])
            colours = draw_phase_dots(axis, points, labels, phase_names)
            figure.legend(markerscale=2.5, loc="outside lower center", ncols=3, columnspacing=1.4)
        else:
            shares = np.array([frame / max(1, len(videos[name]) - 1) for name, frame in frames])
            colours = draw_time_dots(figure, axis, points, shares)
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
        if thumbnail is not None:
            chosen = spread_points(points)
            pictures = [thumbnail(*frames[place]) for place in chosen]
            _draw_thumbnails(axis, points, chosen, pictures=pictures, colours=[colours[k] for k in chosen])
        return image_bytes(figure, format)


def project(rows: Embeddings, *, by: str = "tsne", seed: int = 0) -> Points:
    """Project embeddings (P, D) to points (P, 2)."""
    if by not in PROJECTIONS:
        raise UserError(f"no map by {by!r}: expected {one_of(PROJECTIONS)}")
    if by == "tsne" and len(rows) >= MIN_TSNE_POINTS and np.ptp(rows, axis=0).any():
        manifold = require("sklearn.manifold", extra="plot", purpose="a t-SNE picture")
        perplexity = float(min(30, max(2, (len(rows) - 1) // 3)))
        tsne = manifold.TSNE(perplexity=perplexity, init="pca", random_state=seed)
        return np.asarray(tsne.fit_transform(rows), dtype=np.float64)
    centred = np.asarray(rows - rows.mean(axis=0), dtype=np.float64)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(rows), 2))
    points[:, : len(directions[:2])] = centred @ directions[:2].T
    return points


def draw_phase_dots(axis: Any, points: Points, labels: Phases, phase_names: Sequence[str]) -> list[Any]:
    """Draw points (P, 2) as dots in the colour of their phase; return the colours."""
    for phase in np.unique(labels):
        name = phase_names[phase] if phase < len(phase_names) else f"phase {phase + 1}"
        axis.scatter(*points[labels == phase].T, s=9, color=_phase_colour(phase), label=name, zorder=2)
    return [_phase_colour(phase) for phase in labels]


def _phase_colour(phase: int) -> str:
    return PHASE_COLOURS[phase % len(PHASE_COLOURS)]


def draw_time_dots(figure: Any, axis: Any, points: Points, shares: Points) -> list[Any]:
    """Draw points (P, 2) as dots coloured by their share of the video, with a bar; return the colours."""
    dots = axis.scatter(*points.T, s=9, c=shares, cmap=TIME_COLOURS, vmin=0, vmax=1, zorder=2)
    bar = figure.colorbar(dots, ax=axis, ticks=[0, 1], shrink=0.5, aspect=24, pad=0.02)
    bar.ax.set_yticklabels(["first frame", "last frame"])
    bar.outline.set_visible(False)
    return list(dots.to_rgba(shares))


def open_thumbnails(paths: Mapping[str, Path | None]) -> Callable[[str, int], Image] | None:
    """Return a function that reads frame n of a named video, small; None if one has no video file."""
    files = {
        name: path
        for name, path in paths.items()
        if path is not None and path.is_file() and path.suffix.lower() != SEQUENCE_SUFFIX
    }
    if len(files) < len(paths):
        return None

    def read(name: str, frame: int) -> Image:
        info = probe(files[name])
        height = min(THUMBNAIL_PIXELS, info.height)
        size = (height, max(1, round(info.aspect * height)))
        image: Image = read_frames(files[name], [frame], size=size)[0]
        return image

    return read


def spread_points(points: Points, count: int = 4 * (THUMBNAILS_PER_SIDE - 1)) -> list[int]:
    """Choose `count` of the points (P, 2), each as far as possible from those before it."""
    chosen = [0]
    nearest = np.linalg.norm(points - points[0], axis=1)
    while len(chosen) < min(count, len(points)) and nearest.max() > 0:
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return chosen


def _draw_thumbnails(
    axis: Any,
    points: Points,
    chosen: Sequence[int],
    *,
    pictures: Sequence[Image],
    colours: Sequence[Any],
) -> None:
    """Draw `pictures` around the map, framed in the `colours` of their dots, with a line to each dot."""
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage
    from scipy.optimize import linear_sum_assignment

    places = _set_limits(axis, points)  # (P, 2)
    slots = _border_slots()
    costs = np.linalg.norm(places[list(chosen)][:, None] - slots[None], axis=2)  # (K, slots)
    width, height = axis.figure.get_size_inches()
    for row, slot in zip(*linear_sum_assignment(costs), strict=True):
        picture = pictures[row]
        scale = THUMBNAIL_SIDE * min(height / picture.shape[0], width / picture.shape[1])  # inches per pixel
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


def _set_limits(axis: Any, points: Points) -> Points:
    """Set the limits so that all points (P, 2) lie in the inner part; return them as shares of the axes."""
    low, span = points.min(axis=0), np.maximum(np.ptp(points, axis=0), 1e-9)
    scale = span / (INNER[1] - INNER[0])
    start = low - INNER[0] * scale
    axis.set(xlim=(start[0], start[0] + scale[0]), ylim=(start[1], start[1] + scale[1]))
    return np.asarray((points - start) / scale)


def _border_slots() -> Points:
    """Places (4 (THUMBNAILS_PER_SIDE - 1), 2) along the border of the axes, as shares of them."""
    line = np.linspace(THUMBNAIL_BORDER, 1 - THUMBNAIL_BORDER, THUMBNAILS_PER_SIDE)
    corners = [(x, y) for x in line for y in line if THUMBNAIL_BORDER in (x, y) or line[-1] in (x, y)]
    return np.array(corners)
