"""Progress curves: how far through the action each video is, against its own time.

Shapes: N frames of a video.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.pace import SMOOTHING_S, Method, reference_pace, smoothed
from cycleback.applications.plots.figure import PHASE_COLOURS, image_bytes, new_figure
from cycleback.embeddings import EmbeddingSet

MOST_NAMED = 8  # curves that can be told apart by colour; more are drawn in grey
Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Seconds (N,) of a video and how far through the reference's action it is then (N,), in [0, 1]."""


def progress_curves(
    embeddings: EmbeddingSet, names: Sequence[str], *, reference: str, method: Method = "dtw"
) -> dict[str, Curve]:
    """For each named video, its place in the reference's action at each of its frames."""
    clock = embeddings.times(reference)
    end = float(clock[-1]) or 1.0
    curves: dict[str, Curve] = {}
    for name in names:
        times = embeddings.times(name)
        match = reference_pace(embeddings, [reference], reference=name, method=method)[0]
        curves[name] = times, smoothed(times, clock[match], smoothing_s=SMOOTHING_S) / end
    return curves


def progress_picture(
    curves: Mapping[str, Curve],
    *,
    reference: str,
    events: Mapping[str, Mapping[str, int]] | None = None,
    size: tuple[float, float] | None = None,
    format: str = "png",
) -> bytes:
    """One curve a video; where all do the same, their curves are as high.

    Args:
        curves: name -> seconds and progress, see `progress_curves`.
        reference: the video that the progress is measured by.
        events: name -> {event: frame}; dots on the curves, which should lie on the lines of the reference's.
        size: inches.
        format: "png", "svg" or "pdf".
    """
    events = events or {}
    with new_figure(1, size=size or (8.0, 4.6)) as (figure, (axis,)):
        few = len(curves) <= MOST_NAMED
        for number, (name, curve) in enumerate(curves.items()):
            colour = PHASE_COLOURS[number] if few else "#4477AA"
            is_reference = name == reference
            _draw(axis, curve, colour, name if few else None, bold=is_reference, faint=not few)
            _draw_events(axis, curve, events.get(name, {}), colour if few else "#222222")
        if reference in curves:
            _name_events(axis, curves[reference], events.get(reference, {}))
        axis.set(xlabel="time in the video, s", ylabel=f"progress of the action\n(as in {reference})")
        axis.set(ylim=(-0.03, 1.03), yticks=[0, 0.25, 0.5, 0.75, 1])
        axis.set_yticklabels(["0 %", "25 %", "50 %", "75 %", "100 %"])
        axis.margins(x=0.01)
        if few:
            axis.legend(loc="lower right")
        return image_bytes(figure, format)


def _draw(axis: Any, curve: Curve, colour: str, label: str | None, *, bold: bool, faint: bool) -> None:
    width = 2.6 if bold else 0.9 if faint else 1.6
    alpha = 0.5 if faint and not bold else 1.0
    axis.plot(*curve, color=colour, label=label, linewidth=width, alpha=alpha, zorder=3 if bold else 2)


def _draw_events(axis: Any, curve: Curve, frames: Mapping[str, int], colour: str) -> None:
    """A dot a key event."""
    places = list(frames.values())
    axis.scatter(curve[0][places], curve[1][places], s=26, color=colour, edgecolor="white", zorder=4)


def _name_events(axis: Any, curve: Curve, frames: Mapping[str, int]) -> None:
    """The reference's key events as lines across, named at the right."""
    for name, frame in frames.items():
        height = float(curve[1][frame])
        axis.axhline(height, color="#BBBBBB", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        axis.annotate(
            name,
            (1.01, height),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=9,
            color="#555555",
            annotation_clip=False,
        )
