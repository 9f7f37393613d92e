"""Pictures of embeddings as PNG bytes: similarity matrices and t-SNE maps, colour-blind safe."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import dtw_path, squared_distances
from cycleback.errors import require

PHASE_COLOURS = (
    "#4477AA",
    "#EE6677",
    "#228833",
    "#CCBB44",
    "#66CCEE",
    "#AA3377",
    "#BBBBBB",
    "#EE7733",
    "#009988",
)
Embeddings = NDArray[np.float32]


def similarity_picture(
    panels: Mapping[str, tuple[Embeddings, Embeddings]],
    *,
    events: tuple[Sequence[int], Sequence[int]] | None = None,
) -> bytes:
    """One matrix a panel: how near each frame of A (rows) is to each frame of B; the line is the alignment.

    Args:
        panels: title -> embeddings (T, D) of A and (S, D) of B.
        events: true frames of the key events in A and in B, drawn as rings the line should pass through.
    """
    figure, axes = _canvas(len(panels))
    for axis, (title, (a, b)) in zip(axes, panels.items(), strict=True):
        distances = squared_distances(a, b)
        path = dtw_path(distances)
        axis.imshow(
            np.exp(-distances / np.median(distances)), cmap="cividis", aspect="auto", interpolation="nearest"
        )
        axis.plot(path[:, 1], path[:, 0], color="white", linewidth=1.6)
        if events is not None:
            axis.scatter(
                events[1], events[0], s=70, facecolors="none", edgecolors="#EE6677", linewidths=2, zorder=3
            )
        axis.set(title=title, xlabel="frame of B", ylabel="frame of A")
    return _png(figure)


def tsne_picture(
    panels: Mapping[str, Sequence[Embeddings]],
    phases: Sequence[NDArray[np.int64]],
    *,
    phase_names: Sequence[str] = (),
    stride: int = 2,
    seed: int = 0,
) -> bytes:
    """One t-SNE map a panel: a dot a frame, a line a video, coloured by the true phase."""
    manifold = require("sklearn.manifold", extra="plot", purpose="a t-SNE picture")
    labels = np.concatenate([phase[::stride] for phase in phases])
    figure, axes = _canvas(len(panels))
    for axis, (title, videos) in zip(axes, panels.items(), strict=True):
        rows = np.concatenate([video[::stride] for video in videos])
        perplexity = float(min(30, max(2, (len(rows) - 1) // 3)))
        points = manifold.TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(rows)
        start = 0
        for video in videos:
            end = start + len(video[::stride])
            axis.plot(*points[start:end].T, color="#00000022", linewidth=0.6, zorder=1)
            start = end
        for phase in np.unique(labels):
            chosen = points[labels == phase]
            name = phase_names[phase] if phase < len(phase_names) else f"phase {phase + 1}"
            axis.scatter(
                *chosen.T, s=7, color=PHASE_COLOURS[phase % len(PHASE_COLOURS)], label=name, zorder=2
            )
        axis.set(title=title, xticks=[], yticks=[])
    axes[-1].legend(markerscale=2.5, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return _png(figure)


def _canvas(panels: int) -> tuple[Any, list[Any]]:
    """A figure with `panels` axes in a row; needs no screen and leaves matplotlib's global state alone."""
    require("matplotlib", extra="plot", purpose="a picture")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * panels, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(1, panels, squeeze=False)[0])


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    return buffer.getvalue()
