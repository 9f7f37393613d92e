"""A map of the frames, with some of them on it, as PNG.

Shapes: M frames of all videos together, D embedding size.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.plots.figure import image_bytes, new_figure
from cycleback.applications.plots.maps import draw_phase_dots, draw_time_dots, project, spread_points
from cycleback.comparison.thumbnails import Thumbnails
from cycleback.embeddings import EmbeddingSet

MOST_POINTS = 700  # frames on a map: t-SNE slows with their square
FRAMES_SHOWN = 18
PANEL = (5.3, 5.0)  # inches
Points = NDArray[np.float64]


def map_picture(sets: Mapping[str, EmbeddingSet], names: Sequence[str], thumbs: Thumbnails | None) -> bytes:
    """One t-SNE map a panel: a dot a frame, coloured by phase (by time where unknown), some as pictures."""
    first = next(iter(sets.values()))
    stride = -(-sum(len(first[name]) for name in names) // MOST_POINTS)
    owners = [(name, frame) for name in names for frame in range(0, len(first[name]), stride)]
    with new_figure(len(sets), size=(PANEL[0] * len(sets), PANEL[1])) as (figure, axes):
        for axis, (title, embeddings) in zip(axes, sets.items(), strict=True):
            points = project(np.concatenate([embeddings[name][::stride] for name in names]))  # (M, 2)
            for name in names:
                mine = np.array([owner == name for owner, _ in owners])
                axis.plot(*points[mine].T, color="#00000018", linewidth=0.6, zorder=1)
            _draw_dots(figure, axis, points, embeddings, owners)
            if thumbs is not None:
                _place_frames(axis, points, owners, thumbs)
            axis.set(title=title, xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
        handles, _ = axes[-1].get_legend_handles_labels()
        if handles:
            figure.legend(handles=handles, loc="outside lower center", ncols=3)
        return image_bytes(figure, "png")


def _draw_dots(
    figure: Any, axis: Any, points: Points, embeddings: EmbeddingSet, owners: Sequence[tuple[str, int]]
) -> None:
    known = {name: embeddings.phases(name) for name, _ in owners}
    if any(phases is None for phases in known.values()):
        draw_time_dots(
            figure, axis, points, np.array([frame / len(embeddings[name]) for name, frame in owners])
        )
        return
    labels = np.array([known[name][frame] for name, frame in owners])  # type: ignore[index]
    events = list(embeddings.events(owners[0][0]))
    titles = [f"before “{events[0]}”", *(f"after “{event}”" for event in events)]
    draw_phase_dots(axis, points, labels, titles)


def _place_frames(axis: Any, points: Points, owners: Sequence[tuple[str, int]], thumbs: Thumbnails) -> None:
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    for index in spread_points(points, FRAMES_SHOWN):
        image = OffsetImage(thumbs.picture(*owners[index], height=96), zoom=0.36)
        frame = {"edgecolor": "#888888", "lw": 0.6}
        axis.add_artist(AnnotationBbox(image, tuple(points[index]), pad=0.1, bboxprops=frame, zorder=3))
