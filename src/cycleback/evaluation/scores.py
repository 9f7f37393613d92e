"""The table of scores: the title and format of each score, and which direction is better.

Every table of the package, the benchmarks and the documentation is built from these columns. A row maps a
name to scores as `Report.to_json` writes them. A cell that is not better than the row `time-only` carries a
dagger, because that row never looks at a frame.
"""

import html
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from cycleback.alignment.cycles import MAX_BACKWARD_SHARE
from cycleback.evaluation.report import Report

TIME_ONLY = "time-only"
DAGGER = "†"
MISSING = "–"
LEGEND = DAGGER + " not better than {baseline}: no sign of learning in that column."
INTERVALS = "[low, high]: 95 % of 1,000 resamples of the held-out videos."
UNDEFINED = {"reference": "left out", "paper": "counted as -1"}  # by protocol; all others count them as 0
ARROWS = {"lower": " ↓", "higher": " ↑", "": ""}

Rows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Column:
    """One score of a table."""

    key: str  # path to the score in a row, such as "tau" or "robust/cropped/tau"
    title: str
    pattern: str = "{:.3f}"  # format of the value
    better: Literal["lower", "higher", ""] = "higher"  # "" for a value that is not a score, such as minutes
    brief: str = ""  # format in the terminal and on report pages, where it differs
    short: str = ""  # heading in the terminal
    group: str = ""  # heading above several columns

    @property
    def heading(self) -> str:
        """The title with an arrow in the better direction."""
        return self.title + ARROWS[self.better]

    def value(self, row: Mapping[str, Any]) -> float | None:
        """Return the score of a row; of [mean, spread] over seeds, the mean."""
        stored = _look_up(row, self.key)
        value: float | None = stored[0] if isinstance(stored, list) else stored
        return value

    def text(self, row: Mapping[str, Any]) -> str:
        """Print the score; of several seeds as mean ± spread."""
        value, stored = self.value(row), _look_up(row, self.key)
        if value is None:
            return MISSING
        has_spread = isinstance(stored, list) and row.get("seeds", 1) > 1
        return self.pattern.format(value) + (f" ± {self.pattern.format(stored[1])}" if has_spread else "")

    def interval(self, row: Mapping[str, Any]) -> str:
        """Print the 95 % interval as [low, high], or "" if there is none."""
        place, _, score = self.key.rpartition("/")
        bounds = _look_up(row, f"{place}/intervals/{score}".strip("/"))
        return f"[{self.pattern}, {self.pattern}]".format(*bounds) if bounds else ""

    def beats(self, value: float, other: float) -> bool:
        """Return whether `value` is strictly better."""
        return value < other if self.better == "lower" else value > other


def _share(key: str, title: str, short: str = "") -> Column:
    return Column(key, title, brief="{:.0%}", short=short)


def _error(key: str, title: str, digits: int = 1, short: str = "") -> Column:
    return Column(key, title, f"{{:.{digits}f}}", "lower", short=short)


SCORES: Mapping[str, Column] = {
    column.key: column
    for column in (
        _error("event_error_frames", "event error, frames", short="error,\nframes"),
        _error("event_error_mean_frames", "mean event error, frames"),
        _error("event_error_ms", "event error, ms", 0, short="error,\nms"),
        _share("pce1", "within 1 frame", "within\n1"),
        _share("pce3", "within 3 frames", "within\n3"),
        _share("event_within_span", "within 1/30 of the span", "within\n1/30"),
        _error("event_error_frames_dtw", "event error DTW, frames", short="DTW,\nframes"),
        _error("event_error_mean_frames_dtw", "mean event error DTW, frames"),
        _error("event_error_ms_dtw", "event error DTW, ms", 0),
        _share("pce1_dtw", "within 1 frame DTW"),
        _share("pce3_dtw", "within 3 frames DTW"),
        _share("event_within_span_dtw", "within 1/30 of the span DTW"),
        _share("phase_accuracy", "phase accuracy", "phase\nacc."),
        _share("phase_accuracy_by_fraction/0.1", "phase accuracy, 10 % of labels"),
        _share("phase_accuracy_by_fraction/0.5", "50 % of labels"),
        _share("phase_accuracy_by_fraction/1.0", "100 % of labels"),
        _share("few_shot1", "one labelled video"),
        Column("progression", "progression", brief="{:.2f}"),
        _share("precision5", "precision@5", "prec.\n@5"),
        Column("tau", "tau", "{:.4f}", brief="{:.3f}", short="\ntau"),
        Column("tau_a", "tau-a", "{:.4f}", brief="{:.3f}"),
        _share("cycle_rate", "cycle rate", "cycle\nrate"),
        _share("cycle_rate_three", "three-way cycle rate"),
        Column("confidence_auroc", "confidence AUROC"),
    )
}
HEADLINE = (
    *("event_error_frames", "event_error_ms", "event_error_frames_dtw", "pce1", "pce3"),
    *("phase_accuracy", "precision5", "tau", "cycle_rate"),
)
ROBUST = ("event_error_frames", "event_error_frames_dtw", "tau")  # measured on perturbed videos


def columns(*keys: str, brief: bool = False, under: str = "", group: str = "") -> list[Column]:
    """Return the columns of these scores, with the heading `group` above them.

    `under` is the place of the scores in a row, such as "robust/cropped". With `brief`, shares are printed as
    percentages and other values with fewer decimals.
    """
    chosen = [SCORES[key] for key in keys]
    patterns = [(column.brief if brief else "") or column.pattern for column in chosen]
    return [
        replace(column, key=f"{under}/{column.key}".strip("/"), pattern=pattern, group=group)
        for column, pattern in zip(chosen, patterns, strict=True)
    ]


def _look_up(row: Mapping[str, Any], path: str) -> Any:
    """Return the value at a/b in nested mappings, or None."""
    value: Any = row
    for key in path.split("/"):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


@dataclass(frozen=True)
class Cell:
    """One value of a table as text."""

    text: str
    interval: str = ""
    is_below: bool = False  # not better than the baseline
    is_best: bool = False  # the best of those better than the baseline

    def markdown(self, *, intervals: bool = False, bold: bool = False) -> str:
        """Return the text with its dagger, and with its interval if `intervals`."""
        text = f"**{self.text}**" if bold and self.is_best else self.text
        parts = [text, self.interval if intervals else "", DAGGER if self.is_below else ""]
        return " ".join(part for part in parts if part)


def known_columns(candidates: Sequence[Column], rows: Rows) -> list[Column]:
    """Return the columns in which any row has a value."""
    return [column for column in candidates if any(column.value(row) is not None for row in rows.values())]


def column_cells(column: Column, rows: Rows, *, baseline: str = TIME_ONLY) -> dict[str, Cell]:
    """Return row name -> cell of one column; equal texts are best together."""
    values = {name: column.value(row) for name, row in rows.items()}
    known = {name: value for name, value in values.items() if value is not None}
    floor = known.pop(baseline, None)
    above = {n: value for n, value in known.items() if floor is None or column.beats(value, floor)}
    best = column.pattern.format((min if column.better == "lower" else max)(above.values())) if above else ""
    return {
        name: Cell(
            column.text(row),
            column.interval(row),
            is_below=bool(column.better) and name in known and name not in above,
            is_best=bool(column.better) and name in above and column.pattern.format(above[name]) == best,
        )
        for name, row in rows.items()
    }


def markdown_table(
    candidates: Sequence[Column],
    rows: Rows,
    *,
    corner: str = "",
    titles: Mapping[str, str] | None = None,
    baseline: str = TIME_ONLY,
    intervals: bool = False,
    bold: bool = False,
) -> str:
    """Return a Markdown table with one line per row; columns without values are left out.

    Args:
        corner: heading of the row names.
        titles: row name -> its title, where it differs.
        baseline: row that the others must beat; cells that do not carry a dagger.
        intervals: show 95 % intervals.
        bold: print the best cell of each column in bold.
    """
    filled = known_columns(candidates, rows)
    table = [column_cells(column, rows, baseline=baseline) for column in filled]
    lines = [
        [corner, *(f"{column.group}: {column.heading}".removeprefix(": ") for column in filled)],
        ["---", *("---:" for _ in filled)],
    ]
    for name in rows:
        cells = (column[name].markdown(intervals=intervals, bold=bold) for column in table)
        lines.append([(titles or {}).get(name, name), *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def html_table(
    candidates: Sequence[Column],
    rows: Rows,
    *,
    caption: str,
    titles: Mapping[str, str],
    baselines: Collection[str] = (),
    intervals: bool = True,
) -> str:
    """Return an HTML table, or "" where no row has a value; rows in `baselines` get a class of their own."""
    filled = known_columns(candidates, rows)
    if not filled:
        return ""
    table = [column_cells(column, rows) for column in filled]
    head = "".join(f'<th scope="col">{html.escape(column.heading)}</th>' for column in filled)
    body = ""
    for name in rows:
        kind = ' class="baseline"' if name in baselines else ""
        cells = "".join(_html(column[name], intervals=intervals) for column in table)
        body += f'<tr{kind}><th scope="row">{html.escape(titles[name])}</th>{cells}</tr>'
    return (
        f'<div class="scroll"><table><caption>{html.escape(caption)}</caption>'
        f"<thead>{_group_line(filled)}<tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _group_line(filled: Sequence[Column]) -> str:
    groups = dict.fromkeys(column.group for column in filled)
    if not any(groups):
        return ""
    spans = "".join(
        f'<th scope="colgroup" colspan="{sum(c.group == group for c in filled)}">{html.escape(group)}</th>'
        for group in groups
    )
    return f'<tr class="groups"><td></td>{spans}</tr>'


def _html(cell: Cell, *, intervals: bool) -> str:
    kind = ' class="below"' if cell.is_below else ' class="best"' if cell.is_best else ""
    mark = f'<sup title="not better than {TIME_ONLY}">{DAGGER}</sup>' if cell.is_below else ""
    interval = f"<small>{cell.interval}</small>" if intervals and cell.interval else ""
    return f"<td{kind}>{cell.text}{mark}{interval}</td>"


def to_markdown(rows: Mapping[str, Report], *, baseline: str = TIME_ONLY, intervals: bool = False) -> str:
    """Return all scores of several reports as a Markdown table with a legend and notes.

    Cells that do not beat the row `baseline` carry a dagger. With `intervals`, resampled scores are shown as
    `3.0 [2.5, 4.0]`.
    """
    plain = {name: report.to_json() for name, report in rows.items()}
    kinds = dict.fromkeys(kind for report in rows.values() for kind in report.robust)
    candidates = columns(*(key for key in SCORES if "/" not in key))
    for kind in kinds:
        candidates += columns(
            "event_error_frames", "event_error_frames_dtw", under=f"robust/{kind}", group=kind
        )
    table = markdown_table(candidates, plain, baseline=baseline, intervals=intervals)
    legends = [LEGEND.format(baseline=baseline)] if DAGGER in table else []
    legends += [INTERVALS] if intervals and any(report.intervals for report in rows.values()) else []
    return "\n\n".join([table, *legends, *notes(rows)]) + "\n"


def notes(rows: Mapping[str, Report]) -> list[str]:
    """List the facts that limit trust in the reports: undefined pairs, overlap, frame counting."""
    sentences = []
    for name, report in rows.items():
        counts = report.counts
        pairs = counts.get("pairs", 0)
        if undefined := counts.get("tau_undefined", 0):
            handling = UNDEFINED.get(report.protocol, "counted as 0")
            sentences.append(f"{name}: tau is undefined for {undefined} of {pairs} pairs ({handling}).")
        if (backwards := counts.get("pairs_backwards", 0)) > MAX_BACKWARD_SHARE * pairs:
            sentences.append(
                f"{name}: {backwards} of {pairs} pairs are matched backwards in time. Cycles have no "
                "direction: train with loss.weights.order=0.3."
            )
        if shared := counts.get("videos_in_both", 0):
            sentences.append(f"{name}: {shared} held-out videos are among the training videos.")
        if shared := counts.get("persons_in_both", 0):
            sentences.append(
                f"{name}: {shared} held-out videos show a person who is also in the training videos."
            )
        if report.can_count_frames:
            sentences.append(
                f"{name}: this embedder can count frames, which satisfies cycle-consistency without looking."
            )
    return sentences
