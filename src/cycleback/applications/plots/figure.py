"""The style, figure and file formats that all pictures share; no screen is needed."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cycleback.errors import UserError, one_of, require

FORMATS = ("png", "svg", "pdf")
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
TIME_COLOURS = "viridis"  # its brightness rises, so it is readable in grey, too
PANEL = (5.2, 4.4)  # inches
STYLE = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "axes.edgecolor": "#555555",
    "axes.labelcolor": "#222222",
    "text.color": "#222222",
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "savefig.dpi": 150,
    "svg.fonttype": "none",  # keep text as text: it can be searched, edited and set in any font
    "pdf.fonttype": 42,
    "text.parse_math": False,  # a name with $ is a name, not a formula
    "svg.hashsalt": "cycleback",  # makes files reproducible
}


@contextmanager
def new_figure(
    count: int, *, size: tuple[float, float] | None = None, columns: int | None = None
) -> Iterator[tuple[Any, list[Any]]]:
    """Open a matplotlib figure with `count` axes in our style; matplotlib's own settings stay unchanged.

    Args:
        size: width and height in inches; default: 5.2 x 4.4 per panel.
        columns: panels per row; default: all.
    """
    matplotlib = require("matplotlib", extra="plot", purpose="a picture")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = columns or count
    down = -(-count // across)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size or (PANEL[0] * across, PANEL[1] * down), layout="constrained")
        FigureCanvasAgg(figure)
        axes = list(figure.subplots(down, across, squeeze=False).flat)
        for empty in axes[count:]:
            empty.set_axis_off()
        yield figure, axes[:count]


def image_bytes(figure: Any, format: str) -> bytes:
    """Encode the figure as "png", "svg" or "pdf"; the same figure gives the same bytes."""
    if format not in FORMATS:
        raise UserError(f"no picture format {format!r}: expected {one_of(FORMATS)}")
    buffer = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(format)
    figure.savefig(buffer, format=format, metadata=undated)
    return buffer.getvalue()
