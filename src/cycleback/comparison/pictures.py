"""Pictures of embeddings as PNG: similarity matrices as training goes on, and a map with frames on it.

Shapes: N, T, S frames of a video, D embedding size, M frames of all videos together.
"""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import dtw_path, squared_distances
from cycleback.applications.plots import PHASE_COLOURS
from cycleback.comparison.figures import canvas
from cycleback.comparison.thumbnails import Thumbnails
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import require

MOST_POINTS = 700  # frames on a map: t-SNE slows with their square
FRAMES_SHOWN = 18
Points = NDArray[np.float64]


def similarity_picture(
    panels: Mapping[str, tuple[NDArray[np.float32], NDArray[np.float32]]],
    *,
    events: tuple[Sequence[int], Sequence[int]] = ((), ()),
) -> bytes:
    """One matrix a panel: bright where a frame of B is like one of A; line: alignment; rings: true events.

    Args:
        panels: title -> embeddings (T, D) of A and (S, D) of B.
        events: true frames of the key events in A and in B.
    """
    figure, axes = canvas(len(panels), width=2.55 * len(panels), height=2.7)
    for axis, (title, (a, b)) in zip(axes, panels.items(), strict=True):
        distances = squared_distances(a, b)
        path = dtw_path(distances)
        scale = float(np.median(distances)) or 1.0
        axis.grid(visible=False)
        axis.imshow(np.exp(-distances / scale), cmap="cividis", aspect="auto", interpolation="nearest")
        axis.plot(path[:, 1], path[:, 0], color="white", linewidth=1.2)
        axis.scatter(
            events[1], events[0], s=46, facecolors="none", edgecolors="#EE6677", linewidths=1.8, zorder=3
        )
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("frame of B", fontsize=8)
    axes[0].set_ylabel("frame of A", fontsize=8)
    return png(figure)


def map_picture(sets: Mapping[str, EmbeddingSet], names: Sequence[str], thumbs: Thumbnails | None) -> bytes:
    """One t-SNE map a panel: a dot a frame, coloured by phase (by time where unknown), some as pictures."""
    first = next(iter(sets.values()))
    stride = -(-sum(len(first[name]) for name in names) // MOST_POINTS)
    owners = [(name, frame) for name in names for frame in range(0, len(first[name]), stride)]
    figure, axes = canvas(len(sets), width=5.3 * len(sets), height=5.0)
    for axis, (title, embeddings) in zip(axes, sets.items(), strict=True):
        rows = np.concatenate([embeddings[name][::stride] for name in names])  # (M, D)
        points = _tsne(rows)
        axis.grid(visible=False)
        for name in names:
            mine = np.array([owner == name for owner, _ in owners])
            axis.plot(*points[mine].T, color="#00000018", linewidth=0.6, zorder=1)
        _scatter(axis, points, embeddings, owners)
        if thumbs is not None:
            _place_frames(axis, points, owners, thumbs)
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
        axis.set_title(title, fontsize=11)
    handles, _ = axes[-1].get_legend_handles_labels()
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return png(figure)


def spread_points(points: Points, count: int) -> list[int]:
    """Indices of `count` points far from each other: each next one the farthest from all before."""
    chosen = [int(np.argmin(points[:, 0]))]
    nearest = np.full(len(points), np.inf)
    while len(chosen) < min(count, len(points)):
        nearest = np.minimum(nearest, np.square(points - points[chosen[-1]]).sum(axis=1))
        chosen.append(int(np.argmax(nearest)))
    return chosen


def _tsne(rows: NDArray[np.float32]) -> Points:
    """Points (M, 2) of embeddings (M, D)."""
    manifold = require("sklearn.manifold", extra="plot", purpose="a map of frames")
    perplexity = float(min(30, max(1, (len(rows) - 1) // 3)))
    init = "pca" if rows.shape[1] > 1 and np.ptp(rows) > 0 else "random"
    points: Points = manifold.TSNE(perplexity=perplexity, init=init, random_state=0).fit_transform(rows)
    return points


def _scatter(axis: Any, points: Points, embeddings: EmbeddingSet, owners: Sequence[tuple[str, int]]) -> None:
    known = {name: embeddings.phases(name) for name, _ in owners}
    if any(phases is None for phases in known.values()):
        times = [frame / len(embeddings[name]) for name, frame in owners]
        axis.scatter(*points.T, s=9, c=times, cmap="cividis", zorder=2)
        return
    labels = np.array([known[name][frame] for name, frame in owners])  # type: ignore[index]
    events = list(embeddings.events(owners[0][0]))
    for phase in np.unique(labels):
        title = f"after “{events[phase - 1]}”" if phase else f"before “{events[0]}”"
        colour = PHASE_COLOURS[phase % len(PHASE_COLOURS)]
        axis.scatter(*points[labels == phase].T, s=9, color=colour, label=title, zorder=2)


def _place_frames(axis: Any, points: Points, owners: Sequence[tuple[str, int]], thumbs: Thumbnails) -> None:
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    for index in spread_points(points, FRAMES_SHOWN):
        name, frame = owners[index]
        image = OffsetImage(thumbs.picture(name, frame, height=96), zoom=0.36)
        box = AnnotationBbox(
            image, tuple(points[index]), pad=0.1, bboxprops={"edgecolor": "#888888", "lw": 0.6}
        )
        box.set_zorder(3)
        axis.add_artist(box)


def png(figure: Any) -> bytes:
    """A figure as PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    return buffer.getvalue()
