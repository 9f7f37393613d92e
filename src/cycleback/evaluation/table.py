"""Several reports as one table, with honest marks."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cycleback.alignment.cycles import MAX_BACKWARD_SHARE
from cycleback.evaluation.baselines import TIME_ONLY
from cycleback.evaluation.report import Report


@dataclass(frozen=True)
class Column:
    """How one score is shown, of the videos as they are or of a perturbation of them."""

    title: str
    score: str
    decimals: int
    higher_is_better: bool = True
    perturbation: str | None = None

    def value(self, report: Report) -> float | None:
        """The score in a report."""
        if self.perturbation is not None:
            return report.robust.get(self.perturbation, {}).get(self.score)
        score: float | None = getattr(report, self.score)
        return score

    def beats(self, value: float, baseline: float) -> bool:
        """Whether `value` is truly better."""
        return value > baseline if self.higher_is_better else value < baseline

    def is_marked(self, report: Report, floor: Report | None) -> bool:
        """Whether a report has this score, and it is not better than that of `floor`."""
        value, limit = self.value(report), None if floor is None else self.value(floor)
        return value is not None and limit is not None and not self.beats(value, limit)

    def cell(self, report: Report, floor: Report | None, *, intervals: bool = False) -> str:
        """The number, its interval where asked for, and a dagger where it is not better than `floor`."""
        value = self.value(report)
        if value is None:
            return "–"
        mark = " †" if self.is_marked(report, floor) else ""
        bounds = report.intervals.get(self.score) if intervals and self.perturbation is None else None
        around = f" [{self._text(bounds[0])}, {self._text(bounds[1])}]" if bounds else ""
        return f"{self._text(value)}{around}{mark}"

    def _text(self, value: float) -> str:
        return f"{value:.{self.decimals}f}"


COLUMNS = (
    Column("event error, frames ↓", "event_error_frames", 1, higher_is_better=False),
    Column("mean ↓", "event_error_mean_frames", 1, higher_is_better=False),
    Column("ms ↓", "event_error_ms", 0, higher_is_better=False),
    Column("PCE@1 ↑", "pce1", 3),
    Column("PCE@3 ↑", "pce3", 3),
    Column("event error DTW, frames ↓", "event_error_frames_dtw", 1, higher_is_better=False),
    Column("DTW mean ↓", "event_error_mean_frames_dtw", 1, higher_is_better=False),
    Column("DTW ms ↓", "event_error_ms_dtw", 0, higher_is_better=False),
    Column("PCE@1 DTW ↑", "pce1_dtw", 3),
    Column("PCE@3 DTW ↑", "pce3_dtw", 3),
    Column("phase accuracy ↑", "phase_accuracy", 3),
    Column("one labelled video ↑", "few_shot1", 3),
    Column("progression ↑", "progression", 3),
    Column("precision@5 ↑", "precision5", 3),
    Column("tau ↑", "tau", 4),
    Column("tau-a ↑", "tau_a", 4),
    Column("cycle rate ↑", "cycle_rate", 3),
    Column("three-way ↑", "cycle_rate_three", 3),
    Column("confidence AUROC ↑", "confidence_auroc", 3),
)
ROBUST_SCORES = ("event_error_frames", "event_error_frames_dtw")  # shown for each perturbation
UNDEFINED = {"reference": "left out", "paper": "counted as -1"}  # by protocol; in all others they are 0
ORDER = "Videos that look different may be learned against time: train with loss.weights.order=0.3."
COUNTING = "{name}: this embedder can count frames, which satisfies cycle-consistency without looking."
LEGEND = "† not better than {baseline}: no sign of learning in that column."
INTERVALS = "[low, high]: 95 % of 1,000 resamples of the held-out videos."


def to_markdown(rows: Mapping[str, Report], *, baseline: str = TIME_ONLY, intervals: bool = False) -> str:
    """A Markdown table, one row a report; cells that do not beat the row `baseline` carry a dagger.

    Columns that no report has are left out; a missing number is a dash. With `intervals`, numbers that were
    resampled are shown as `3.0 [2.5, 4.0]`.
    """
    columns = shown_columns(rows)
    head = ["", *(column.title for column in columns)]
    lines = [_line(head), _line(["---", *("---:" for _ in columns)])]
    for name, row in rows.items():
        floor = None if name == baseline else rows.get(baseline)
        lines.append(_line([name, *(column.cell(row, floor, intervals=intervals) for column in columns)]))
    table = "\n".join(lines)
    legends = [LEGEND.format(baseline=baseline)] if "†" in table else []
    legends += [INTERVALS] if intervals and any(row.intervals for row in rows.values()) else []
    return "\n\n".join([table, *legends, *notes(rows)]) + "\n"


def shown_columns(rows: Mapping[str, Report]) -> list[Column]:
    """The columns that any of the reports has a number for, robust ones last."""
    robust = [
        replace(column, title=f"{kind}: {column.title}", perturbation=kind)
        for kind in dict.fromkeys(kind for row in rows.values() for kind in row.robust)
        for column in COLUMNS
        if column.score in ROBUST_SCORES
    ]
    known = [*COLUMNS, *robust]
    return [column for column in known if any(column.value(row) is not None for row in rows.values())]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def notes(rows: Mapping[str, Report]) -> list[str]:
    """What a reader must know to trust the numbers: collapsed pairs, leaks, embedders that count."""
    found = []
    for name, row in rows.items():
        lost, pairs = row.counts.get("tau_undefined", 0), row.counts.get("pairs", 0)
        if lost:
            counted = UNDEFINED.get(row.protocol, "counted as 0")
            found += [f"{name}: tau is undefined for {lost} of {pairs} pairs ({counted})."]
        if (backwards := row.counts.get("pairs_backwards", 0)) > MAX_BACKWARD_SHARE * pairs:
            found += [f"{name}: {backwards} of {pairs} pairs are matched backwards in time. {ORDER}"]
        if shared := row.counts.get("videos_in_both", 0):
            found += [f"{name}: {shared} held-out videos are among the training videos."]
        if shared := row.counts.get("persons_in_both", 0):
            found += [f"{name}: {shared} held-out videos show a person who is also trained on."]
        if row.can_count_frames:
            found += [COUNTING.format(name=name)]
    return found
