"""Rows x columns with honest marks, as HTML and as Markdown.

A row is what `Row.to_json` gives. A cell that is not better than the time-only row carries a dagger: there is
no sign of learning in it. The best of the others is bold.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Rows = Mapping[str, Mapping[str, Any]]
FLOOR = "time"
DAGGER = "†"
LEGEND = (
    f"{DAGGER} not better than time only, which never looks at a frame: no sign of learning in that cell. "
    "Bold: the best of the others. Small: 95 % interval from resampling the held-out videos."
)


@dataclass(frozen=True)
class Column:
    """How one score is found and shown.

    Attributes:
        title: in the head of the table.
        path: keys that lead from a row to the number.
        pattern: of the number.
        lower: whether lower is better.
        group: of columns that stand below one heading.
        has_interval: whether to show the 95 % interval, where there is one.
    """

    title: str
    path: tuple[str, ...]
    pattern: str = "{:.3f}"
    lower: bool = False
    group: str = ""
    has_interval: bool = True

    def value(self, row: Mapping[str, Any]) -> float | None:
        """The number of a row, or None."""
        number: float | None = _at(row, self.path)
        return number

    def interval(self, row: Mapping[str, Any]) -> tuple[float, float] | None:
        """Its 95 % interval, where the report has one."""
        if not self.has_interval:
            return None
        *place, score = self.path
        limits: tuple[float, float] | None = _at(row, (*place, "intervals", score))
        return limits

    def beats(self, value: float, other: float) -> bool:
        """Whether `value` is truly better."""
        return value < other if self.lower else value > other


def _at(row: Any, path: Sequence[str]) -> Any:
    """What the keys lead to, or None."""
    for key in path:
        row = row.get(key) if isinstance(row, Mapping) else None
    return row


@dataclass(frozen=True)
class Cell:
    """One number, ready to be shown."""

    text: str
    interval: str = ""
    is_below: bool = False
    is_best: bool = False


def shown(columns: Sequence[Column], rows: Rows) -> list[Column]:
    """The columns in which any row has a number."""
    return [column for column in columns if any(column.value(row) is not None for row in rows.values())]


def cells(column: Column, rows: Rows) -> dict[str, Cell]:
    """A column of the table, by row."""
    values = {name: column.value(row) for name, row in rows.items()}
    floor = values.get(FLOOR)
    above = {
        name: value
        for name, value in values.items()
        if value is not None and name != FLOOR and (floor is None or column.beats(value, floor))
    }
    best = "" if not above else column.pattern.format((min if column.lower else max)(above.values()))
    found = {}
    for name, value in values.items():
        if value is None:
            found[name] = Cell("–")
            continue
        limits = column.interval(rows[name])
        bounds = "" if limits is None else f"{column.pattern} – {column.pattern}".format(*limits)
        is_below = name != FLOOR and floor is not None and name not in above
        text = column.pattern.format(value)
        found[name] = Cell(text, bounds, is_below, text == best and name in above)
    return found


def html_table(columns: Sequence[Column], rows: Rows, *, caption: str) -> str:
    """The table, or nothing where no row has a number."""
    columns = shown(columns, rows)
    if not columns:
        return ""
    table = [cells(column, rows) for column in columns]
    head = "".join(f'<th scope="col">{html.escape(c.title)}<i>{_better(c)}</i></th>' for c in columns)
    body = "".join(
        f'<tr{_kind(row)}><th scope="row">{html.escape(row["title"])}</th>'
        + "".join(_html_cell(column[name]) for column in table)
        + "</tr>"
        for name, row in rows.items()
    )
    groups = _group_head(columns)
    return (
        f'<div class="scroll"><table><caption>{html.escape(caption)}</caption>'
        f"<thead>{groups}<tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def markdown_table(columns: Sequence[Column], rows: Rows) -> str:
    """The same as Markdown; nothing where no row has a number."""
    columns = shown(columns, rows)
    if not columns:
        return ""
    table = [cells(column, rows) for column in columns]
    titles = [f"{column.group} {column.title} {_better(column)}".strip() for column in columns]
    lines = [_line(["", *titles]), _line(["---", *("---:" for _ in columns)])]
    for name, row in rows.items():
        lines.append(_line([row["title"], *(_markdown_cell(column[name]) for column in table)]))
    return "\n".join(lines) + "\n"


def _better(column: Column) -> str:
    return "↓" if column.lower else "↑"


def _kind(row: Mapping[str, Any]) -> str:
    return ' class="baseline"' if row.get("role", "trained") != "trained" else ""


def _group_head(columns: Sequence[Column]) -> str:
    """A line above the titles with the names of the groups, where there are any."""
    if not any(column.group for column in columns):
        return ""
    groups = dict.fromkeys(column.group for column in columns)
    spans = "".join(
        f'<th scope="colgroup" colspan="{sum(c.group == group for c in columns)}">{html.escape(group)}</th>'
        for group in groups
    )
    return f'<tr class="groups"><td></td>{spans}</tr>'


def _html_cell(cell: Cell) -> str:
    kind = ' class="below"' if cell.is_below else ' class="best"' if cell.is_best else ""
    mark = f'<sup title="not better than time only">{DAGGER}</sup>' if cell.is_below else ""
    interval = f"<small>{cell.interval}</small>" if cell.interval else ""
    return f"<td{kind}>{cell.text}{mark}{interval}</td>"


def _markdown_cell(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.is_best else cell.text + (f" {DAGGER}" if cell.is_below else "")
    return f"{text} ({cell.interval})" if cell.interval else text


def _line(parts: Sequence[str]) -> str:
    return "| " + " | ".join(parts) + " |"
