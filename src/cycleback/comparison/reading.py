"""The results of a comparison in sentences."""

from collections.abc import Mapping, Sequence
from typing import Any

from cycleback.comparison.methods import BASELINES
from cycleback.evaluation import TIME_ONLY, Report, notes

Rows = Mapping[str, Mapping[str, Any]]
MIN_VIDEOS = 8  # held out; fewer get a warning


def best_method(rows: Rows) -> str:
    """Return the row trained without labels that has the smallest key-event error.

    Ties go to the row with more events within 3 frames; without key events, the highest cycle rate wins.
    Without such a row, one trained with labels is taken; without any, a baseline that looks at frames.
    """
    trained = [name for name in rows if name not in BASELINES]
    candidates = [name for name in trained if not _uses_labels(rows[name])] or trained
    return min(candidates or [name for name in rows if name != TIME_ONLY], key=lambda name: _rank(rows[name]))


def _uses_labels(row: Mapping[str, Any]) -> bool:
    return "supervised" in row["losses"]


def _rank(row: Mapping[str, Any]) -> tuple[float, float, float]:
    scores = row["report"]
    if scores["event_error_frames"] is None:
        return 0.0, 0.0, -(scores["cycle_rate"] or 0.0)
    return scores["event_error_frames"], -(scores["pce3"] or 0.0), -(scores["tau"] or 0.0)


def write_reading(rows: Rows) -> list[str]:
    """Say which row is best, whether it beats the baselines, and which rows do not."""
    best = best_method(rows)
    if _error(rows[best]) is None:
        return _reading_without_labels(rows[best])
    sentences = [_best_sentence(rows, best), _against_baselines(rows, best), _overlap(rows, best)]
    sentences += [_with_labels(rows, best), _without_learning(rows), _perturbed(rows, best)]
    return [sentence for sentence in sentences if sentence]


def list_warnings(rows: Rows, reports: Mapping[str, Report], left_out: Sequence[str] = ()) -> list[str]:
    """List the facts that limit trust in the scores."""
    titled = {rows[name]["title"]: report for name, report in reports.items() if name != TIME_ONLY}
    videos = rows[TIME_ONLY]["report"]["counts"].get("videos", 0)
    few = [f"Only {videos} videos were held out: differences between rows are uncertain."]
    return [*left_out, *notes(titled), *(few if videos < MIN_VIDEOS else [])]


def _error(row: Mapping[str, Any]) -> float | None:
    error: float | None = row["report"]["event_error_frames"]
    return error


def _best_sentence(rows: Rows, best: str) -> str:
    """Say how exact the best row is; a row without training may be more exact."""
    row, ours = rows[best], _error(rows[best]) or 0.0
    scores = row["report"]
    others = [_error(rows[name]) for name in BASELINES if name in rows and name != best]
    is_beaten = any(other is not None and other < ours for other in others)
    group = " of the trained rows" if is_beaten else ""
    time = "" if scores["event_error_ms"] is None else f" ({scores['event_error_ms']:.0f} ms)"
    share = "" if scores["pce3"] is None else f"; {scores['pce3']:.0%} land within 3 frames"
    error = f"{scores['event_error_frames']:.1f} frames{time}"
    return f"{_capitalise(row['title'])} maps key events best{group}: {error} from the truth (median){share}."


def _against_baselines(rows: Rows, best: str) -> str:
    ours, verdicts = _error(rows[best]) or 0.0, []
    for name in BASELINES:
        other = _error(rows[name]) if name in rows and name != best else None
        if other is not None:
            word = "beats" if ours < other else "equals" if ours == other else "does not beat"
            verdicts.append(f"{word} {rows[name]['title']} ({other:.1f})")
    return f"It {_join(verdicts)}." if verdicts else ""


def _overlap(rows: Rows, best: str) -> str:
    """Name the trained rows that the intervals cannot tell from the best one."""
    limits = (rows[best]["report"].get("intervals") or {}).get("event_error_frames")
    close = []
    for name, row in rows.items():
        other = (row["report"].get("intervals") or {}).get("event_error_frames")
        is_rival = name != best and name not in BASELINES and not _uses_labels(row)
        if is_rival and limits and other and other[0] <= limits[1]:
            close.append(row["title"])
    rivals = _join(close)
    return (
        f"Its interval overlaps with that of {rivals}: only more held-out videos can tell." if close else ""
    )


def _with_labels(rows: Rows, best: str) -> str:
    reached = [
        f"{row['title']} {_error(row):.1f} frames"
        for name, row in rows.items()
        if name != best and _uses_labels(row) and _error(row) is not None
    ]
    return f"Trained with the labels of the training videos: {_join(reached)}." if reached else ""


def _without_learning(rows: Rows) -> str:
    floor = _error(rows[TIME_ONLY])
    weak = [
        row["title"]
        for name, row in rows.items()
        if name not in BASELINES and (error := _error(row)) is not None and (floor is None or error >= floor)
    ]
    verb = "does" if len(weak) == 1 else "do"
    return f"{_capitalise(_join(weak))} {verb} not beat {TIME_ONLY} in key-event error." if weak else ""


def _perturbed(rows: Rows, best: str) -> str:
    """Say how the best row copes with a cut, another speed and a lead-in."""
    parts = []
    for kind, scores in (rows[best]["report"].get("robust") or {}).items():
        error = scores["event_error_frames"]
        floor = ((rows[TIME_ONLY]["report"].get("robust") or {}).get(kind) or {}).get("event_error_frames")
        if error is not None and floor is not None:
            parts.append(f"{kind} {error:.1f} ({TIME_ONLY} {floor:.1f})")
    return f"On perturbed videos its error in frames is: {', '.join(parts)}." if parts else ""


def _reading_without_labels(row: Mapping[str, Any]) -> list[str]:
    rate = row["report"]["cycle_rate"]
    best = "" if rate is None else f" {_capitalise(row['title'])} has the highest rate: {rate:.0%} of frames."
    return [
        "The held-out videos have no key events, so no row can be compared with the truth.",
        f"Only the share of frames that cycle back to their start can be measured.{best} For {TIME_ONLY} it "
        "is near 100 % by construction: look at the pictures below before you trust a row.",
    ]


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


def _capitalise(words: str) -> str:
    return words[:1].upper() + words[1:]
