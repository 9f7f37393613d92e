"""Report: the scores of one evaluation, with the counts they rest on."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from statistics import fmean
from typing import Any

import numpy as np

from cycleback.display import show_rows
from cycleback.evaluation.events import CalibrationBin, pool_bins

SHOWN = ("event_error_frames", "event_error_frames_dtw", "pce3", "tau", "cycle_rate", "phase_accuracy")
MAX_ERRORS = 5000  # absolute errors kept for plots


@dataclass(frozen=True)
class Report:
    """Scores of one set of embeddings; None where labels, training videos or a second video are missing.

    Errors are those of key events mapped to other videos by the nearest frame; `..._dtw` are the same for
    dynamic time warping.
    """

    tau: float | None = None  # Kendall's tau as the protocol defines it, mean over ordered pairs; order only
    tau_a: float | None = None  # the same as tau-a, in which ties count as 0
    event_error_frames: float | None = None  # median
    event_error_ms: float | None = None  # the same in milliseconds
    event_error_mean_frames: float | None = None
    event_error_mean_ms: float | None = None
    event_error_frames_dtw: float | None = None
    event_error_ms_dtw: float | None = None
    event_error_mean_frames_dtw: float | None = None
    event_error_mean_ms_dtw: float | None = None
    pce1: float | None = None  # share of key events within 1 frame
    pce3: float | None = None  # share within 3 frames
    event_within_span: float | None = None  # share within 1/30 of the action's span, see `span_tolerances`
    pce1_dtw: float | None = None
    pce3_dtw: float | None = None
    event_within_span_dtw: float | None = None
    cycle_rate: float | None = None  # share of frames that cycle back to within 1 frame; needs no labels
    cycle_rate_three: float | None = None  # the same through two other videos, in both directions
    phase_accuracy: float | None = None  # phase classification with all training videos
    few_shot1: float | None = None  # phase classification with one training video, mean over seeded draws
    progression: float | None = None  # mean R-squared of the time to each key event
    precision5: float | None = (
        None  # share of the 5 nearest frames of other videos that are in the same phase
    )
    # how well confidence separates matches within its tolerance, 5 % of the video or 3 frames, from others
    confidence_auroc: float | None = None
    calibration_error: float | None = (
        None  # mean gap between confidence and share of right matches, over bins
    )
    phase_accuracy_by_fraction: Mapping[str, float] = field(default_factory=dict)  # of training videos
    few_shot: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # videos -> "mean", "spread"
    progression_by_event: Mapping[str, float] = field(default_factory=dict)  # R-squared
    precision_at: Mapping[str, float] = field(default_factory=dict)  # as `precision5`, for "5", "10" and "15"
    event_error_by_event: Mapping[str, float] = field(default_factory=dict)  # median, in frames
    event_errors: Sequence[int] = ()  # absolute errors in frames, at most 5,000 drawn with a seed
    calibration: Sequence[CalibrationBin] = ()  # confidence against share of right matches
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # 95 %, from resampling videos
    robust: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)  # perturbation -> scores
    counts: Mapping[str, int] = field(default_factory=dict)  # that the scores rest on, see `evaluate`
    protocol: str = "linear"  # or "paper" or "reference"
    by_action: Mapping[str, "Report"] = field(default_factory=dict)  # where there are several actions
    can_count_frames: bool = False  # whether the embedder can solve the task by counting frames

    def __repr__(self) -> str:
        """Name the scores that are known and the number of videos; `to_json` has everything."""
        known = {name: getattr(self, name) for name in SCORES if getattr(self, name) is not None}
        shown = [f"{name}={value:.4g}" for name, value in known.items() if name in SHOWN]
        videos = [f"{self.counts['videos']} videos"] if "videos" in self.counts else []
        return f"Report({', '.join([*shown, *videos])})"

    def to_json(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists, dicts and None; `from_json` reads them back."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        return plain

    def _repr_html_(self) -> str:
        """Show the scores as a table in a notebook, with 95 % intervals where they are known."""
        known = {name: value for name in SCORES if (value := getattr(self, name)) is not None}
        intervals = {name: f"{low:.4g} to {high:.4g}" for name, (low, high) in self.intervals.items()}
        rows = [{"score": name, "value": known[name], "95 %": intervals.get(name, "")} for name in known]
        counts = ", ".join(f"{count} {what}" for what, count in self.counts.items())
        return show_rows(rows, caption=f"Protocol {self.protocol}: {counts}")

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Report":
        """Read the values of `to_json`; fields that this version does not know are left out."""
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        by_action = {action: cls.from_json(part) for action, part in values.get("by_action", {}).items()}
        return cls(**known | {"by_action": by_action})


SCORES = tuple(f.name for f in fields(Report) if f.type == float | None)


def mean_report(
    reports: Mapping[str, Report], *, intervals: Mapping[str, tuple[float, float]] | None = None
) -> Report:
    """Combine the reports of several actions: scores are means over the actions that have them, counts sums.

    `intervals` are those of the means, which cannot be derived from the intervals of the actions.
    """
    parts = list(reports.values())
    if len(parts) == 1:
        return parts[0]
    scores: dict[str, Any] = {name: _mean(getattr(part, name) for part in parts) for name in SCORES}
    return Report(
        **scores,
        phase_accuracy_by_fraction=_mean_by_key([part.phase_accuracy_by_fraction for part in parts]),
        precision_at=_mean_by_key([part.precision_at for part in parts]),
        few_shot=_mean_few_shot([part.few_shot for part in parts]),
        progression_by_event=_prefix_actions(reports, "progression_by_event"),
        event_error_by_event=_prefix_actions(reports, "event_error_by_event"),
        event_errors=draw_errors([error for part in parts for error in part.event_errors]),
        calibration=pool_bins([part.calibration for part in parts]),
        intervals=intervals or {},
        counts={name: sum(part.counts[name] for part in parts) for name in parts[0].counts},
        protocol=parts[0].protocol,
        by_action=dict(reports),
        can_count_frames=any(part.can_count_frames for part in parts),
    )


def draw_errors(errors: Sequence[int], *, count: int = MAX_ERRORS, seed: int = 0) -> list[int]:
    """Draw at most `count` of the errors with a seed; they stay in order."""
    if len(errors) <= count:
        return [int(error) for error in errors]
    chosen = np.sort(np.random.default_rng(seed).choice(len(errors), count, replace=False))
    return [int(errors[position]) for position in chosen]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _mean_by_key(mappings: Sequence[Mapping[str, float]]) -> dict[str, float]:
    keys = sorted({key for mapping in mappings for key in mapping}, key=float)
    return {key: fmean(mapping[key] for mapping in mappings if key in mapping) for key in keys}


def _mean_few_shot(parts: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Average mean and spread over actions."""
    means = {
        name: _mean_by_key([{k: v[name] for k, v in p.items()} for p in parts]) for name in ("mean", "spread")
    }
    return {videos: {name: means[name][videos] for name in means} for videos in means["mean"]}


def _prefix_actions(reports: Mapping[str, Report], name: str) -> dict[str, float]:
    """Join a field by key event of several actions; keys become `action: event`."""
    parts = {action: getattr(report, name) for action, report in reports.items()}
    return {f"{action}: {event}": value for action, part in parts.items() for event, value in part.items()}
