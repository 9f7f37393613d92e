"""Similarity matrices: how near each frame of one video is to each frame of another.

Shapes: T frames of A, S frames of B, D embedding size.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import Alignment, dtw_path, squared_distances
from cycleback.alignment.distances import spread_frames
from cycleback.applications.drift import Drift
from cycleback.applications.plots.figure import image_bytes, new_figure
from cycleback.applications.repetitions import Repetitions

Embeddings = NDArray[np.float32]
MAX_DRAWN = 800  # frames of a video compared with itself; a picture shows no more
RINGS: dict[str, Any] = {"s": 70, "facecolors": "none", "edgecolors": "#EE6677", "linewidths": 2, "zorder": 3}


def draw_similarity(
    panels: Mapping[str, tuple[Embeddings, Embeddings]],
    *,
    path: NDArray[np.int64] | None = None,
    events: tuple[Sequence[int], Sequence[int]] | None = None,
    names: tuple[str, str] = ("A", "B"),
    columns: int | None = None,
    size: tuple[float, float] | None = None,
    format: str = "png",
) -> bytes:
    """Draw one matrix per panel: how near each frame of A (rows) is to each frame of B, and their alignment.

    Args:
        panels: title -> embeddings (T, D) of A and (S, D) of B.
        path: (L, 2), matched frames of A and B: a line, or dots where it runs backwards. Default: the path
            of plain DTW.
        events: true frames of the key events in A and in B, drawn as rings that the line should pass through.
        names: of A and B.
        columns: matrices per row.
        size: inches.
        format: "png", "svg" or "pdf".
    """
    with new_figure(len(panels), size=size, columns=columns) as (figure, axes):
        for axis, (title, (a, b)) in zip(axes, panels.items(), strict=True):
            image = _draw_matrix(axis, a, b, path)
            if events is not None:
                axis.scatter(events[1], events[0], **RINGS)
            axis.set(title=title, xlabel=f"frame of {names[1]}", ylabel=f"frame of {names[0]}")
        bar = figure.colorbar(image, ax=axes, ticks=[0, 1], shrink=0.6, aspect=24, pad=0.02)
        bar.ax.set_yticklabels(["far", "near"])
        bar.outline.set_visible(False)
        return image_bytes(figure, format)


def draw_alignment(
    a: Embeddings, b: Embeddings, alignment: Alignment, *, names: tuple[str, str], format: str = "png"
) -> bytes:
    """Draw the similarity of A (T, D) and B (S, D) with the matches that an alignment found."""
    path = alignment.path
    if path is None:  # nearest: one point per frame, in no order
        path = np.stack([np.arange(len(alignment.indices)), alignment.indices], axis=1)
    return draw_similarity({"": (a, b)}, path=path, names=names, format=format)


def draw_repetitions(
    embeddings: Embeddings,
    found: Repetitions,
    *,
    name: str,
    drift: Drift | None = None,
    format: str = "png",
) -> bytes:
    """Draw how near the frames (T, D) of a video are to each other, its repetitions and their periods.

    Args:
        name: of the video, for the title.
        drift: also drawn, as the amplitude of each repetition.
        format: "png", "svg" or "pdf".
    """
    frames = spread_frames(len(embeddings), MAX_DRAWN)
    rows, times = np.asarray(embeddings, dtype=np.float64)[frames], found.times
    cuts = sorted({seconds for part in found.whole for seconds in (part.start_s, part.end_s)})
    with new_figure(2, columns=2, size=(10.4, 4.4)) as (figure, (matrix, curve)):
        extent = (times[0], times[-1], times[-1], times[0])
        similarity = _similarity(squared_distances(rows, rows))
        low, high = np.quantile(similarity, (0.02, 0.97))  # a frame is far nearer to itself than to others
        matrix.imshow(similarity, cmap="cividis", extent=extent, vmin=low, vmax=high)
        for cut in cuts:
            matrix.axhline(cut, color="white", linewidth=0.7)
            matrix.axvline(cut, color="white", linewidth=0.7)
        matrix.set(title=f"{name}: bright where two moments are alike", xlabel="seconds", ylabel="seconds")
        for cut in cuts:
            curve.axvline(cut, color="#BBBBBB", linewidth=0.8)
        curve.plot(times, found.periods, color="#4477AA", linewidth=2)
        longest = np.nanmax(found.periods, initial=0.0)
        curve.set(xlim=(times[0], times[-1]), ylim=(0, 1.2 * longest or 1))
        if drift is not None:
            _draw_amplitudes(curve, found, drift)
        title = f"{found.count} repetitions, confidence {found.confidence:.2f}"
        curve.set(title=title, xlabel="seconds", ylabel="seconds per repetition")
        return image_bytes(figure, format)


def _draw_amplitudes(axis: Any, found: Repetitions, drift: Drift) -> None:
    """Draw the amplitude of each repetition on an axis at the right; the least usual one is ringed."""
    middles = [(part.start_s + part.end_s) / 2 for part in found.whole]
    right = axis.twinx()
    right.plot(middles, drift.amplitudes, "o--", color="#EE7733", linewidth=1, markersize=5)
    worst = drift.worst - 1
    right.scatter([middles[worst]], [drift.amplitudes[worst]], **RINGS)
    right.set(ylim=(0, 1.2 * float(np.nanmax(drift.amplitudes))))
    right.set_ylabel("size of the movement (ring: least like the others)", color="#EE7733")


def shared_events(a: Mapping[str, int], b: Mapping[str, int]) -> tuple[list[int], list[int]]:
    """Return the frames of the key events that both A and B have, as `draw_similarity` takes them."""
    shared = [event for event in a if event in b]
    return [a[event] for event in shared], [b[event] for event in shared]


def _draw_matrix(axis: Any, a: Embeddings, b: Embeddings, path: NDArray[np.int64] | None) -> Any:
    """Draw the matrix of one pair and its alignment."""
    distances = squared_distances(a, b)  # (T, S)
    image = axis.imshow(
        _similarity(distances), cmap="cividis", aspect="auto", interpolation="nearest", vmin=0, vmax=1
    )
    rows, columns = (dtw_path(distances) if path is None else path).T
    if (np.diff(rows) >= 0).all() and (np.diff(columns) >= 0).all():
        axis.plot(columns, rows, color="black", linewidth=3.2, alpha=0.35, solid_capstyle="round")
        axis.plot(columns, rows, color="white", linewidth=1.6, solid_capstyle="round")
    else:
        axis.scatter(columns, rows, s=9, color="white", edgecolor="black", linewidth=0.5)
    axis.set(xlim=(-0.5, len(b) - 0.5), ylim=(len(a) - 0.5, -0.5))
    return image


def _similarity(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how near frames are, in [0, 1], from their squared distances (T, S)."""
    median = float(np.median(distances))
    return np.exp(-distances / median) if median > 0 else np.ones_like(distances)
