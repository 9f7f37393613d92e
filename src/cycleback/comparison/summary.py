"""What the table says, in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from cycleback.comparison.tables import FLOOR, Rows
from cycleback.evaluation import Report, notes

Scores = Mapping[str, Any]


def best_method(rows: Rows) -> str:
    """The row learned without labels that has the least key-event error.

    Of equal medians the one with more events within 3 frames; without key events, the one that cycles back
    most often. Without such a row, one learned with labels; without any, a baseline that looks at frames.
    """
    without = {name for name, row in rows.items() if row["role"] == "trained" and not _is_taught(row)}
    learned = without or {name for name, row in rows.items() if row["role"] == "trained"}
    candidates = learned or {name for name in rows if name != FLOOR}
    return min((name for name in rows if name in candidates), key=lambda name: _rank(rows[name]["report"]))


def _is_taught(row: Mapping[str, Any]) -> bool:
    """Whether it learned from labels."""
    return "supervised" in row["losses"]


def _rank(scores: Scores) -> tuple[float, float, float]:
    error, within = scores["event_error_frames"], scores["pce3"]
    if error is None:
        return 0.0, 0.0, -(scores["cycle_rate"] or 0.0)
    return error, -(within or 0.0), -(scores["tau"] or 0.0)


def reading(rows: Rows) -> list[str]:
    """Sentences: which row is best, whether it beats looking at no frame, which rows do not."""
    best = best_method(rows)
    if rows[best]["report"]["event_error_frames"] is None:
        return _reading_without_labels(rows, best)
    return [
        _best_sentence(rows[best]),
        _against(rows, best),
        *_overlap(rows, best),
        *_with_labels(rows, best),
        *_no_learning(rows),
        *_lost(rows, best),
    ]


def warnings(rows: Rows, reports: Mapping[str, Report], left_out: Sequence[str] = ()) -> list[str]:
    """What a reader must know to trust the numbers."""
    titled = {rows[name]["title"]: report for name, report in reports.items() if name != FLOOR}
    return [*left_out, *notes(titled), *_few_videos(rows)]


def _best_sentence(row: Mapping[str, Any]) -> str:
    scores = row["report"]
    time = "" if scores["event_error_ms"] is None else f" ({scores['event_error_ms']:.0f} ms)"
    share = "" if scores["pce3"] is None else f"; {scores['pce3']:.0%} land within 3 frames"
    error = f"{scores['event_error_frames']:.1f} frames{time}"
    return f"{_started(row['title'])} lands key events closest: {error} from the truth (median){share}."


def _against(rows: Rows, best: str) -> str:
    """Whether the best row beats those that learned nothing."""
    ours = rows[best]["report"]["event_error_frames"]
    verdicts = []
    for name in ("time", "imagenet", "random"):
        other = rows[name]["report"]["event_error_frames"] if name in rows and name != best else None
        if other is not None:
            word = "beats" if ours < other else "equals" if ours == other else "does not beat"
            verdicts.append(f"{word} the {rows[name]['title']} row ({other:.1f})")
    return f"It {_joined(verdicts)}." if verdicts else ""


def _overlap(rows: Rows, best: str) -> list[str]:
    """Learned rows whose interval overlaps that of the best: they are not told apart."""
    limits = (rows[best]["report"].get("intervals") or {}).get("event_error_frames")
    if limits is None:
        return []
    close = []
    for name, row in rows.items():
        other = (row["report"].get("intervals") or {}).get("event_error_frames")
        if (
            name != best
            and row["role"] == "trained"
            and not _is_taught(row)
            and other
            and other[0] <= limits[1]
        ):
            close.append(row["title"])
    if not close:
        return []
    return [
        f"Its interval overlaps with that of {_joined(close)}: more held-out videos would tell them apart."
    ]


def _with_labels(rows: Rows, best: str) -> list[str]:
    """What the labels of the training videos would have brought."""
    reached = [
        f"{row['title']} {error:.1f} frames"
        for name, row in rows.items()
        if name != best and _is_taught(row) and (error := row["report"]["event_error_frames"]) is not None
    ]
    return [f"Taught with the labels of the training videos: {_joined(reached)}."] if reached else []


def _no_learning(rows: Rows) -> list[str]:
    floor = rows[FLOOR]["report"]["event_error_frames"]
    weak = [
        row["title"]
        for row in rows.values()
        if row["role"] == "trained"
        and (error := row["report"]["event_error_frames"]) is not None
        and error >= floor
    ]
    verb = "does" if len(weak) == 1 else "do"
    return [f"{_started(_joined(weak))} {verb} not beat time only in key-event error."] if weak else []


def _lost(rows: Rows, best: str) -> list[str]:
    """How the best row stands a cut, another speed, a lead-in."""
    sentences = []
    for kind, scores in (rows[best]["report"].get("robust") or {}).items():
        error, floor = scores["event_error_frames"], _robust_floor(rows, kind)
        if error is not None and floor is not None:
            sentences.append(f"{kind} {error:.1f} (time only {floor:.1f})")
    return [f"On perturbed videos its error is: {', '.join(sentences)}."] if sentences else []


def _robust_floor(rows: Rows, kind: str) -> float | None:
    found = (rows[FLOOR]["report"].get("robust") or {}).get(kind) or {}
    error: float | None = found.get("event_error_frames")
    return error


def _reading_without_labels(rows: Rows, best: str) -> list[str]:
    rate = rows[best]["report"]["cycle_rate"]
    said = (
        "" if rate is None else f" {_started(rows[best]['title'])} does so most often: {rate:.0%} of frames."
    )
    return [
        "The held-out videos have no key events, so no row can be held against the truth.",
        f"What remains is whether frames cycle back to where they started.{said} Time only always does, by "
        "construction: look at the pictures below before you trust a row.",
    ]


def _few_videos(rows: Rows) -> list[str]:
    videos = rows[FLOOR]["report"]["counts"].get("videos", 0)
    return (
        [f"Only {videos} videos were held out: differences between rows are uncertain."] if videos < 8 else []
    )


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


def _started(words: str) -> str:
    """The words as the beginning of a sentence."""
    return words[:1].upper() + words[1:]
