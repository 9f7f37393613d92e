"""Report: the scores of one evaluation, with the counts they rest on."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from statistics import fmean
from typing import Any

import numpy as np

from cycleback.evaluation.events import CalibrationBin, pool_bins

MAX_ERRORS = 5000  # absolute errors kept for plots


@dataclass(frozen=True)
class Report:
    """Scores of one set of embeddings; None where labels, training videos or a second video are missing.

    Attributes:
        tau: Kendall's tau of nearest neighbours, as the protocol defines it, mean over ordered pairs of
            videos; it measures order only.
        tau_a: the same as tau-a, in which ties count as 0.
        event_error_frames: median error of key events mapped by nearest neighbours, in frames.
        event_error_ms: the same in milliseconds.
        event_error_mean_frames: mean error in frames.
        event_error_mean_ms: the same in milliseconds.
        pce1: share of key events within 1 frame.
        pce3: share within 3 frames.
        ..._dtw: the six above for key events mapped by dynamic time warping.
        cycle_rate: share of frames that cycle back to within 1 frame of their start; needs no labels.
        cycle_rate_three: the same through two other videos, in both directions.
        phase_accuracy: phase classification with all training videos.
        few_shot1: phase classification with one training video, mean over seeded draws.
        progression: mean R-squared of the time to each key event.
        precision5: share of the 5 nearest frames of other videos that are in the same phase.
        confidence_auroc: how well confidence separates right matches (within 3 frames) from wrong ones.
        calibration_error: mean gap between confidence and the share of right matches, over bins.
        phase_accuracy_by_fraction: phase classification by share of training videos.
        few_shot: number of training videos -> {"mean": accuracy, "spread": standard deviation over draws}.
        progression_by_event: R-squared of each key event.
        precision_at: the share of `precision5` for "5", "10" and "15" frames.
        event_error_by_event: median error in frames of each key event, by nearest neighbours.
        event_errors: absolute errors in frames by nearest neighbours, at most 5,000 drawn with a seed.
        calibration: confidence against share of right matches, by bin.
        intervals: score -> (low, high), 95 % interval from resampling the held-out videos.
        robust: perturbation -> scores on the perturbed held-out videos; see `perturb`.
        counts: the counts that the scores rest on, see `evaluate`.
        protocol: "linear", "paper" or "reference".
        by_action: one report per action, where there are several.
        can_count_frames: whether the embedder can solve the task by counting frames.
    """

    tau: float | None = None
    tau_a: float | None = None
    event_error_frames: float | None = None
    event_error_ms: float | None = None
    event_error_mean_frames: float | None = None
    event_error_mean_ms: float | None = None
    event_error_frames_dtw: float | None = None
    event_error_ms_dtw: float | None = None
    event_error_mean_frames_dtw: float | None = None
    event_error_mean_ms_dtw: float | None = None
    pce1: float | None = None
    pce3: float | None = None
    pce1_dtw: float | None = None
    pce3_dtw: float | None = None
    cycle_rate: float | None = None
    cycle_rate_three: float | None = None
    phase_accuracy: float | None = None
    few_shot1: float | None = None
    progression: float | None = None
    precision5: float | None = None
    confidence_auroc: float | None = None
    calibration_error: float | None = None
    phase_accuracy_by_fraction: Mapping[str, float] = field(default_factory=dict)
    few_shot: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    progression_by_event: Mapping[str, float] = field(default_factory=dict)
    precision_at: Mapping[str, float] = field(default_factory=dict)
    event_error_by_event: Mapping[str, float] = field(default_factory=dict)
    event_errors: Sequence[int] = ()
    calibration: Sequence[CalibrationBin] = ()
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    robust: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    protocol: str = "linear"
    by_action: Mapping[str, "Report"] = field(default_factory=dict)
    can_count_frames: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists, dicts and None; `from_json` reads them back."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        return plain

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

    Args:
        reports: action -> its report.
        intervals: intervals of the means, which cannot be derived from those of the actions.
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
