"""Several reports as one table, with honest marks."""

from collections.abc import Mapping
from dataclasses import dataclass

from cycleback.evaluation.baselines import TIME_ONLY
from cycleback.evaluation.report import Report


@dataclass(frozen=True)
class Column:
    """How one score is shown."""

    title: str
    score: str
    decimals: int
    higher_is_better: bool = True

    def beats(self, value: float, baseline: float) -> bool:
        """Whether `value` is truly better."""
        return value > baseline if self.higher_is_better else value < baseline


COLUMNS = (
    Column("event error, frames ↓", "event_error_frames", 1, higher_is_better=False),
    Column("ms ↓", "event_error_ms", 0, higher_is_better=False),
    Column("PCE@1 ↑", "pce1", 3),
    Column("PCE@3 ↑", "pce3", 3),
    Column("event error DTW, frames ↓", "event_error_frames_dtw", 1, higher_is_better=False),
    Column("DTW ms ↓", "event_error_ms_dtw", 0, higher_is_better=False),
    Column("PCE@1 DTW ↑", "pce1_dtw", 3),
    Column("PCE@3 DTW ↑", "pce3_dtw", 3),
    Column("phase accuracy ↑", "phase_accuracy", 3),
    Column("progression ↑", "progression", 3),
    Column("tau ↑", "tau", 4),
    Column("cycle rate ↑", "cycle_rate", 3),
)
COUNTING = "{name}: this embedder can count frames, which satisfies cycle-consistency without looking."
LEGEND = "† not better than {baseline}: no sign of learning in that column."


def to_markdown(rows: Mapping[str, Report], *, baseline: str = TIME_ONLY) -> str:
    """A Markdown table, one row a report; cells that do not beat the row `baseline` carry a dagger.

    Columns that no report has are left out; a missing number is a dash.
    """
    columns = [c for c in COLUMNS if any(getattr(row, c.score) is not None for row in rows.values())]
    head = ["", *(column.title for column in columns)]
    lines = [_line(head), _line(["---", *("---:" for _ in columns)])]
    floor = rows.get(baseline)
    for name, row in rows.items():
        cells = [_cell(column, row, None if name == baseline else floor) for column in columns]
        lines.append(_line([name, *cells]))
    if any("†" in line for line in lines):
        lines += ["", LEGEND.format(baseline=baseline)]
    for note in notes(rows):
        lines += ["", note]
    return "\n".join(lines) + "\n"


def _cell(column: Column, row: Report, floor: Report | None) -> str:
    value = getattr(row, column.score)
    if value is None:
        return "–"
    limit = None if floor is None else getattr(floor, column.score)
    mark = "" if limit is None or column.beats(value, limit) else " †"
    return f"{value:.{column.decimals}f}{mark}"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def notes(rows: Mapping[str, Report]) -> list[str]:
    """What a reader must know to trust the numbers: collapsed pairs, leaks, embedders that count."""
    found = []
    for name, row in rows.items():
        lost, pairs = row.counts.get("tau_undefined", 0), row.counts.get("pairs", 0)
        if lost:
            counted = "left out" if row.protocol == "paper" else "counted as 0"
            found += [f"{name}: tau is undefined for {lost} of {pairs} pairs ({counted})."]
        if shared := row.counts.get("videos_in_both", 0):
            found += [f"{name}: {shared} held-out videos are among the training videos."]
        if row.can_count_frames:
            found += [COUNTING.format(name=name)]
    return found
