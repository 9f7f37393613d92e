"""Report: the numbers of one evaluation, each with what it was counted over."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from statistics import fmean
from typing import Any


@dataclass(frozen=True)
class Report:
    """Scores of one set of embeddings; None where labels, training videos or a second video are missing.

    Attributes:
        tau: Kendall's tau-b of nearest neighbours, mean over ordered pairs of videos; says order, not moment.
        event_error_frames: median error of key events mapped by nearest neighbours, in frames.
        event_error_ms: the same in milliseconds.
        event_error_frames_dtw: median error of key events mapped by dynamic time warping, in frames.
        event_error_ms_dtw: the same in milliseconds.
        pce1: share of key events within 1 frame, by nearest neighbours.
        pce3: share within 3 frames.
        pce1_dtw: share within 1 frame, by dynamic time warping.
        pce3_dtw: share within 3 frames.
        cycle_rate: share of frames that come back to within 1 frame of where they started; needs no labels.
        phase_accuracy: phase classification with all training videos.
        progression: mean R-squared of the time to each key event.
        phase_accuracy_by_fraction: phase classification by share of training videos.
        event_error_by_event: median error in frames of each key event, by nearest neighbours.
        counts: what the numbers rest on, see `evaluate`.
        protocol: "linear" or "paper".
        by_action: the reports of single actions, where there are several.
        can_count_frames: whether the embedder may have solved the task by counting frames.
    """

    tau: float | None = None
    event_error_frames: float | None = None
    event_error_ms: float | None = None
    event_error_frames_dtw: float | None = None
    event_error_ms_dtw: float | None = None
    pce1: float | None = None
    pce3: float | None = None
    pce1_dtw: float | None = None
    pce3_dtw: float | None = None
    cycle_rate: float | None = None
    phase_accuracy: float | None = None
    progression: float | None = None
    phase_accuracy_by_fraction: Mapping[str, float] = field(default_factory=dict)
    event_error_by_event: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    protocol: str = "linear"
    by_action: Mapping[str, "Report"] = field(default_factory=dict)
    can_count_frames: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, strings, dicts and None."""
        return asdict(self)


SCORES = tuple(f.name for f in fields(Report) if f.type == float | None)


def mean_report(reports: Mapping[str, Report]) -> Report:
    """One report of several actions: scores are means over the actions that have them, counts are sums."""
    parts = list(reports.values())
    if len(parts) == 1:
        return parts[0]
    shares = {share for part in parts for share in part.phase_accuracy_by_fraction}
    events = {
        f"{action}: {event}": error
        for action, part in reports.items()
        for event, error in part.event_error_by_event.items()
    }
    return Report(
        **{name: _mean(getattr(part, name) for part in parts) for name in SCORES},
        phase_accuracy_by_fraction={
            share: fmean(by[share] for part in parts if share in (by := part.phase_accuracy_by_fraction))
            for share in sorted(shares)
        },
        event_error_by_event=events,
        counts={name: sum(part.counts[name] for part in parts) for name in parts[0].counts},
        protocol=parts[0].protocol,
        by_action=dict(reports),
        can_count_frames=any(part.can_count_frames for part in parts),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
