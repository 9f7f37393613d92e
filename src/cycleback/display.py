"""How results show themselves in a notebook: small HTML tables and line drawings, for `_repr_html_`."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

MAX_ROWS = 20  # of a table; the rest is counted
SIDE = 220  # of a drawing, in pixels
MAX_POINTS = 400  # of a line


def show_rows(rows: Sequence[Mapping[str, Any]], *, caption: str) -> str:
    """Return a table with the keys of the first row as its head, and the caption above it."""
    title = f"<caption style='text-align:left'>{escape(caption)}</caption>"
    if not rows:
        return f"<table>{title}</table>"
    head = "".join(f"<th style='text-align:left'>{escape(str(key))}</th>" for key in rows[0])
    lines = [_show_row(row.values()) for row in islice(rows, MAX_ROWS)]
    more = len(rows) - MAX_ROWS
    rest = f"<tr><td colspan={len(rows[0])}>… and {more} more</td></tr>" if more > 0 else ""
    return f"<table>{title}<tr>{head}</tr>{''.join(lines)}{rest}</table>"


def _show_row(values: Iterable[Any]) -> str:
    texts = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
    return "<tr>" + "".join(f"<td style='text-align:left'>{escape(text)}</td>" for text in texts) + "</tr>"


def draw_line(xs: Sequence[float], ys: Sequence[float], *, width: float, height: float, caption: str) -> str:
    """Return a line through (x, y) as SVG; x runs from 0 to `width` to the right, y to `height` downwards."""
    step = max(1, len(xs) // MAX_POINTS)
    points = [*zip(xs[::step], ys[::step], strict=True), (xs[-1], ys[-1])]
    scale_x, scale_y = SIDE / max(width, 1e-9), SIDE / max(height, 1e-9)
    path = " ".join(f"{x * scale_x:.1f},{y * scale_y:.1f}" for x, y in points)
    return (
        f"<figure style='margin:0'><svg width='{SIDE}' height='{SIDE}' viewBox='0 0 {SIDE} {SIDE}' "
        f"role='img' aria-label='{escape(caption)}'>"
        "<rect width='100%' height='100%' fill='none' stroke='gray'/>"
        f"<polyline points='{path}' fill='none' stroke='#15803d' stroke-width='2'/></svg>"
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
