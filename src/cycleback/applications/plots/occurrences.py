"""Draw a recording as a line of time: how well each place shows the action, what was found, and the cuts."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment.distances import spread_items
from cycleback.applications.find import Occurrence, Occurrences
from cycleback.applications.plots.figure import image_bytes, new_figure
from cycleback.video import read_frames

MAX_POINTS = 2000  # of the curve
MAX_THUMBNAILS = 8
MAX_NUMBERED = 40  # more numbers than that would overlap
THUMBNAIL_HEIGHT = 200  # pixels
SIZE = (11.0, 4.6)  # inches
FOUND, CURVE, CUT = "#228833", "#4477AA", "#BBBBBB"


def draw_occurrences(
    found: Occurrences, video: str | os.PathLike[str] | None = None, *, title: str, format: str = "png"
) -> bytes:
    """Draw the likeness over time, the occurrences and the cuts, with pictures from the middle of some.

    Args:
        video: where the pictures are read; None draws none.
        format: "png", "svg" or "pdf".
    """
    chosen = spread_items(list(enumerate(found.found, start=1)), MAX_THUMBNAILS)
    images = _read_middles(video, [each for _, each in chosen]) if video is not None and chosen else []
    with new_figure(1, size=SIZE if images else (SIZE[0], 2.8)) as (figure, (axis,)):
        if images:
            axis.remove()
            grid = figure.add_gridspec(2, len(images), height_ratios=(1, 1.5))
            for place, ((number, each), image) in enumerate(zip(chosen, images, strict=True)):
                _draw_thumbnail(
                    figure.add_subplot(grid[0, place]), image, f"{number}: {_clock(each.start_s)}"
                )
            axis = figure.add_subplot(grid[1, :])
        _draw_line(axis, found)
        axis.set_title(title, loc="left")
        return image_bytes(figure, format)


def _read_middles(
    video: str | os.PathLike[str], occurrences: Sequence[Occurrence]
) -> list[NDArray[np.uint8]]:
    """Return the middle frame of each occurrence."""
    from cycleback.video import probe

    info = probe(video)
    size = (THUMBNAIL_HEIGHT, max(2, round(info.aspect * THUMBNAIL_HEIGHT)))
    middles = [(each.start + each.stop - 1) // 2 for each in occurrences]
    return list(read_frames(video, middles, size=size))


def _draw_thumbnail(axis: Any, image: NDArray[np.uint8], text: str) -> None:
    axis.imshow(image)
    axis.set_axis_off()
    axis.set_title(text, fontsize=9)


def _draw_line(axis: Any, found: Occurrences) -> None:
    """Draw the curve, the occurrences in green, and the cuts as lines."""
    scale, unit = (60.0, "minutes") if found.times[-1] > 180 else (1.0, "seconds")
    seconds, values = thin_curve(found.times, found.curve)
    axis.vlines(np.array(found.cuts_s) / scale, 0, 0.06, color=CUT, linewidth=1, label="shot change")
    for number, each in enumerate(found.found, start=1):
        label = f"found, {len(found.found)} in all" if number == 1 else None
        span = (each.start_s / scale, each.end_s / scale)
        axis.axvspan(*span, color=FOUND, alpha=0.25, linewidth=0, label=label)
        if len(found.found) <= MAX_NUMBERED:
            axis.text(sum(span) / 2, 0.99, number, ha="center", va="top", fontsize=8, color=FOUND)
    axis.plot(seconds / scale, values, color=CURVE, linewidth=1, label="likeness of the best part here")
    axis.axhline(
        found.threshold, color="#888888", linewidth=0.8, linestyle=":", label="confidence about one half"
    )
    end = max(float(found.times[-1]) / scale, 1e-3)
    axis.set(xlim=(0, end), ylim=(0, 1), xlabel=unit, ylabel="likeness")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4)


def thin_curve(
    times: NDArray[np.float64], curve: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Return at most MAX_POINTS seconds and values of a curve (N,): the greatest of each stretch."""
    starts = np.unique(np.linspace(0, len(curve), MAX_POINTS, endpoint=False).astype(np.int64))
    return times[starts], np.maximum.reduceat(curve, starts)


def _clock(second: float) -> str:
    """Format seconds as 12.3 s, or as 1:02.3 from a minute on."""
    return f"{second:.1f} s" if second < 60 else f"{int(second // 60)}:{second % 60:04.1f}"
