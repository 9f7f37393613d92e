"""Maps: embeddings in two dimensions, a dot a frame, a line a video.

Shapes: N frames of a video, D embedding size, P points of a map.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.plots.figure import PHASE_COLOURS, TIME_COLOURS, image_bytes, new_figure
from cycleback.applications.plots.thumbnails import draw_thumbnails, spread_out
from cycleback.errors import UserError, one_of, require

Embeddings = NDArray[np.float32]
Phases = NDArray[np.int64]
Image = NDArray[np.uint8]
WAYS = ("tsne", "pca")
MOST_POINTS = 2000  # about four seconds of t-SNE
LEAST_TSNE = 5  # points; fewer have no neighbourhoods to keep


def map_picture(
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
    """One map of all videos, coloured by phase where the phases of all are known, else by time.

    Args:
        videos: name -> embeddings (N, D).
        by: "tsne" (keeps neighbours) or "pca" (keeps the large directions).
        phases: name -> phase (N,) of each frame.
        thumbnail: the picture (H, W, 3) of a frame of a video; some are then shown around the map.
        size: inches.
        format: "png", "svg" or "pdf".
    """
    stride = -(-sum(map(len, videos.values())) // MOST_POINTS)
    frames = [(name, frame) for name, rows in videos.items() for frame in range(0, len(rows), stride)]
    points = project(np.concatenate([rows[::stride] for rows in videos.values()]), by=by, seed=seed)
    ends = np.cumsum([len(rows[::stride]) for rows in videos.values()])[:-1]
    by_phase = phases is not None and set(videos) <= set(phases)
    with new_figure(1, size=size or (8.0, 6.6)) as (figure, (axis,)):
        for line in np.split(points, ends):
            axis.plot(*line.T, color="#888888", alpha=0.35, linewidth=0.8, zorder=1)
        if by_phase and phases is not None:
            labels = np.array([phases[name][frame] for name, frame in frames])
            colours = dots_by_phase(axis, points, labels, phase_names)
            figure.legend(markerscale=2.5, loc="outside lower center", ncols=3, columnspacing=1.4)
        else:
            shares = np.array([frame / max(1, len(videos[name]) - 1) for name, frame in frames])
            colours = dots_by_time(figure, axis, points, shares)
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
        if thumbnail is not None:
            chosen = spread_out(points)
            pictures = [thumbnail(*frames[place]) for place in chosen]
            draw_thumbnails(axis, points, chosen, pictures=pictures, colours=[colours[k] for k in chosen])
        return image_bytes(figure, format)


def tsne_picture(
    panels: Mapping[str, Sequence[Embeddings]],
    phases: Sequence[Phases],
    *,
    phase_names: Sequence[str] = (),
    stride: int = 2,
    seed: int = 0,
    format: str = "png",
) -> bytes:
    """One t-SNE map a panel: a dot a frame, a line a video, coloured by the true phase.

    Args:
        panels: title -> embeddings (N, D) of each video.
        phases: phase (N,) of each frame, a video each.
        stride: every how many frames there is a dot.
    """
    labels = np.concatenate([phase[::stride] for phase in phases])
    with new_figure(len(panels)) as (figure, axes):
        for axis, (title, videos) in zip(axes, panels.items(), strict=True):
            points = project(np.concatenate([video[::stride] for video in videos]), by="tsne", seed=seed)
            ends = np.cumsum([len(video[::stride]) for video in videos])[:-1]
            for line in np.split(points, ends):
                axis.plot(*line.T, color="#00000022", linewidth=0.6, zorder=1)
            dots_by_phase(axis, points, labels, phase_names)
            axis.set(title=title, xticks=[], yticks=[])
        axes[-1].legend(markerscale=2.5, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return image_bytes(figure, format)


def project(rows: Embeddings, *, by: str = "tsne", seed: int = 0) -> NDArray[np.float64]:
    """Embeddings (P, D) as points (P, 2)."""
    if by not in WAYS:
        raise UserError(f"no map by {by!r}: expected {one_of(WAYS)}")
    if by == "tsne" and len(rows) >= LEAST_TSNE and np.ptp(rows, axis=0).any():
        manifold = require("sklearn.manifold", extra="plot", purpose="a t-SNE picture")
        perplexity = float(min(30, max(2, (len(rows) - 1) // 3)))
        tsne = manifold.TSNE(perplexity=perplexity, init="pca", random_state=seed)
        return np.asarray(tsne.fit_transform(rows), dtype=np.float64)
    centred = np.asarray(rows - rows.mean(axis=0), dtype=np.float64)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(rows), 2))
    points[:, : len(directions[:2])] = centred @ directions[:2].T
    return points


def dots_by_phase(
    axis: Any,
    points: NDArray[np.float64],
    labels: Phases,
    phase_names: Sequence[str],
) -> list[Any]:
    """A dot a point (P, 2) in the colour of its phase; returns the colours."""
    for phase in np.unique(labels):
        name = phase_names[phase] if phase < len(phase_names) else f"phase {phase + 1}"
        axis.scatter(*points[labels == phase].T, s=9, color=_phase_colour(phase), label=name, zorder=2)
    return [_phase_colour(phase) for phase in labels]


def _phase_colour(phase: int) -> str:
    return PHASE_COLOURS[phase % len(PHASE_COLOURS)]


def dots_by_time(
    figure: Any, axis: Any, points: NDArray[np.float64], shares: NDArray[np.float64]
) -> list[Any]:
    """A dot a point (P, 2) in the colour of its share of the video, and a colour bar; returns the colours."""
    dots = axis.scatter(*points.T, s=9, c=shares, cmap=TIME_COLOURS, vmin=0, vmax=1, zorder=2)
    bar = figure.colorbar(dots, ax=axis, ticks=[0, 1], shrink=0.5, aspect=24, pad=0.02)
    bar.ax.set_yticklabels(["first frame", "last frame"])
    bar.outline.set_visible(False)
    return list(dots.to_rgba(shares))
