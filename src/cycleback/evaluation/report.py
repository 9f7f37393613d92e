"""Report: the numbers of one evaluation, each with what it was counted over."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from statistics import fmean
from typing import Any

import numpy as np

from cycleback.evaluation.events import CalibrationBin, pool_bins

MOST_ERRORS = 5000  # absolute errors kept for plots


@dataclass(frozen=True)
class Report:
    """Scores of one set of embeddings; None where labels, training videos or a second video are missing.

    Attributes:
        tau: Kendall's tau of nearest neighbours, as the protocol defines it, mean over ordered pairs of
            videos; says order, not moment.
        tau_a: the same as tau-a, in which ties earn nothing.
        event_error_frames: median error of key events mapped by nearest neighbours, in frames.
        event_error_ms: the same in milliseconds.
        event_error_mean_frames: mean error of the same, in frames.
        event_error_mean_ms: the same in milliseconds.
        event_error_frames_dtw: median error of key events mapped by dynamic time warping, in frames.
        event_error_ms_dtw: the same in milliseconds.
        event_error_mean_frames_dtw: mean error of the same, in frames.
        event_error_mean_ms_dtw: the same in milliseconds.
        pce1: share of key events within 1 frame, by nearest neighbours.
        pce3: share within 3 frames.
        pce1_dtw: share within 1 frame, by dynamic time warping.
        pce3_dtw: share within 3 frames.
        cycle_rate: share of frames that come back to within 1 frame of where they started; needs no labels.
        cycle_rate_three: the same by way of two other videos, both ways round.
        phase_accuracy: phase classification with all training videos.
        few_shot1: phase classification with one training video, mean over seeded draws.
        progression: mean R-squared of the time to each key event.
        precision5: share of the 5 nearest frames of other videos that are in the same phase.
        confidence_auroc: how well confidence tells right matches of key events (within 3 frames) from wrong.
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
        counts: what the numbers rest on, see `evaluate`.
        protocol: "linear", "paper" or "reference".
        by_action: the reports of single actions, where there are several.
        can_count_frames: whether the embedder may have solved the task by counting frames.
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
        """Plain numbers, strings, lists, dicts and None."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        return plain


SCORES = tuple(f.name for f in fields(Report) if f.type == float | None)


def mean_report(
    reports: Mapping[str, Report], *, intervals: Mapping[str, tuple[float, float]] | None = None
) -> Report:
    """One report of several actions: scores are means over the actions that have them, counts are sums.

    Args:
        reports: the report of each action.
        intervals: those of the means, which cannot be told from the intervals of the actions.
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
        progression_by_event=_named({name: part.progression_by_event for name, part in reports.items()}),
        event_error_by_event=_named({name: part.event_error_by_event for name, part in reports.items()}),
        event_errors=kept_errors([error for part in parts for error in part.event_errors]),
        calibration=pool_bins([part.calibration for part in parts]),
        intervals=intervals or {},
        counts={name: sum(part.counts[name] for part in parts) for name in parts[0].counts},
        protocol=parts[0].protocol,
        by_action=dict(reports),
        can_count_frames=any(part.can_count_frames for part in parts),
    )


def kept_errors(errors: Sequence[int], *, most: int = MOST_ERRORS, seed: int = 0) -> list[int]:
    """At most so many of `errors`, in order, drawn with a seed."""
    if len(errors) <= most:
        return [int(error) for error in errors]
    chosen = np.sort(np.random.default_rng(seed).choice(len(errors), most, replace=False))
    return [int(errors[position]) for position in chosen]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _mean_by_key(mappings: Sequence[Mapping[str, float]]) -> dict[str, float]:
    keys = sorted({key for mapping in mappings for key in mapping}, key=float)
    return {key: fmean(mapping[key] for mapping in mappings if key in mapping) for key in keys}


def _mean_few_shot(parts: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Means over actions of the mean and of the spread."""
    what = {
        name: _mean_by_key([{k: v[name] for k, v in p.items()} for p in parts]) for name in ("mean", "spread")
    }
    return {videos: {name: what[name][videos] for name in what} for videos in what["mean"]}


def _named(parts: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return {f"{action}: {event}": value for action, part in parts.items() for event, value in part.items()}
