"""Score held-out embeddings with every metric: per action, then the mean over actions.

Shapes: N frames of a video, V videos, R resamples of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment.confidence import tolerance
from cycleback.embeddings import EmbeddingSet, check_same_encoder
from cycleback.errors import EmbeddingError
from cycleback.evaluation.bootstrap import (
    RESAMPLES,
    draw_counts,
    middle_interval,
    resample_means,
    resample_medians,
)
from cycleback.evaluation.events import (
    EventError,
    Labels,
    event_confidences,
    event_error,
    measure_calibration,
)
from cycleback.evaluation.neighbors import Floats, NearestTable, nearest_table
from cycleback.evaluation.order import average_pairs, count_cycles, pair_orders, three_way_rate
from cycleback.evaluation.overlap import find_overlap, refuse_overlap
from cycleback.evaluation.phases import LabelledFrames, few_shot_accuracy, phase_accuracy, phase_progression
from cycleback.evaluation.protocol import Protocol, named_protocol
from cycleback.evaluation.report import Report, draw_errors, mean_report
from cycleback.evaluation.retrieval import retrieval_precision
from cycleback.evaluation.scores import TIME_ONLY


def time_only_embeddings(videos: EmbeddingSet) -> EmbeddingSet:
    """Return the same videos and labels with frame i of N embedded as i / N: no frame is looked at."""
    fractions = {name: np.arange(len(videos[name]))[:, None] / len(videos[name]) for name in videos}
    return videos.with_embeddings(fractions, encoder=TIME_ONLY)


def evaluate(
    train: EmbeddingSet | None,
    held_out: EmbeddingSet,
    *,
    protocol: str | Protocol = "linear",
    tau_stride: int | None = None,
    span: tuple[str, str] | None = None,
    seed: int = 0,
    intervals: bool = True,
    few_shot: bool = True,
    allow_overlap: bool = False,
    persons: Mapping[str, str] | None = None,
) -> Report:
    """Score `held_out`; pairs are formed within an action, and scores are means over actions.

    Without labels only tau and the cycle rates remain; without `train`, everything but the classifiers.

    Args:
        train: embeddings of labelled training videos for phase classification and progression, or None.
        held_out: embeddings to score.
        protocol: "linear", "paper" or "reference", see `cycleback.evaluation.protocol`; or your own.
        tau_stride: use every n-th frame for tau (default: as the protocol says).
        span: the two key events that begin and end the action, for the tolerance relative to its duration
            (default: the first and the last of each video). GolfDB's are ("address", "impact").
        seed: seed of all draws: shares of training videos, few-shot episodes, resamples.
        intervals: resample the held-out videos for 95 % intervals of the main scores.
        few_shot: run few-shot classification, which takes longest.
        allow_overlap: count videos that are on both sides instead of refusing them.
        persons: video name -> person, where known; nobody may be on both sides.

    Returns:
        A report. Its counts: actions, videos, frames and ordered pairs of `held_out`; tau_undefined, pairs
        whose tau is undefined, and pairs_backwards, pairs matched against time (tau-b below -0.5);
        three_way_videos, drawn for the three-way cycles; event_matches, key events mapped, and
        confidence_matches, those with a known confidence; retrieval_queries; labelled_videos with all key
        events; train_videos and labelled_train_videos; videos_in_both and persons_in_both, held-out videos
        that are also trained on or show a person who is, which should be 0.
    """
    settings = named_protocol(protocol)
    if tau_stride is not None:
        settings = replace(settings, tau_stride=tau_stride)
    if span is not None:
        settings = replace(settings, event_span=span)
        _check_span(span, held_out)
    if settings.tau_stride < 1:
        raise ValueError(f"tau_stride must be at least 1, got {settings.tau_stride}")
    if not len(held_out):
        raise EmbeddingError("there are no held-out videos to evaluate. Split the data set, or embed more.")
    if train is not None:
        if train.size != held_out.size:
            raise EmbeddingError(f"training embeddings have size {train.size}, held-out ones {held_out.size}")
        check_same_encoder({"training videos": train.encoder, "held-out videos": held_out.encoder})
    shared = [] if train is None else find_overlap(train, held_out, persons=persons)
    if not allow_overlap:
        refuse_overlap(shared)
    reports, parts = {}, []
    for action in held_out.actions:
        taught = None if train is None or action not in train.actions else train.of_action(action)
        tested = held_out.of_action(action)
        scorer = ActionScorer(taught, tested, settings, seed=seed, intervals=intervals, few_shot=few_shot)
        findings = scorer.run()
        overlaps = [overlap for overlap in shared if overlap.held_out in tested]
        findings.counts["persons_in_both"] = sum(overlap.is_person for overlap in overlaps)
        findings.counts["videos_in_both"] = len(overlaps) - findings.counts["persons_in_both"]
        reports[action] = findings.report(settings, can_count_frames=tested.can_count_frames)
        parts.append(findings)
    return mean_report(reports, intervals=_mean_intervals(parts))


@dataclass
class Findings:
    """Results so far: fields of a report, counts, and resampled scores (R,)."""

    scores: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    samples: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def report(self, protocol: Protocol, *, can_count_frames: bool) -> Report:
        """Return the report, with an interval for each resampled score."""
        intervals = {name: middle_interval(values) for name, values in self.samples.items()}
        return Report(
            **self.scores,
            intervals={name: bounds for name, bounds in intervals.items() if bounds is not None},
            counts=self.counts,
            protocol=protocol.name,
            can_count_frames=can_count_frames,
        )


def _mean_intervals(parts: list[Findings]) -> dict[str, tuple[float, float]]:
    """Return intervals of means over actions; an action that cannot be resampled stays at its score."""
    intervals = {}
    for name in dict.fromkeys(name for part in parts for name in part.samples):
        rows = []
        for part in parts:
            if (score := part.scores.get(name)) is not None:
                samples = part.samples.get(name, np.full(RESAMPLES, np.nan))
                rows.append(np.where(np.isnan(samples), score, samples))
        bounds = middle_interval(np.mean(rows, axis=0)) if rows else None
        if bounds is not None:
            intervals[name] = bounds
    return intervals


@dataclass(frozen=True)
class ActionScorer:
    """Scores the held-out videos of one action; see `evaluate` for the attributes."""

    train: EmbeddingSet | None
    held_out: EmbeddingSet
    protocol: Protocol
    seed: int = 0
    intervals: bool = True
    few_shot: bool = True

    def run(self) -> Findings:
        """Compute every metric that the labels allow."""
        videos = self.held_out
        findings = Findings(counts={"actions": 1, "videos": len(videos), "frames": videos.num_frames})
        nearest = nearest_table([videos[name] for name in videos])
        self._order(findings, nearest)
        self._cycles(findings, nearest)
        self._key_events(findings, nearest)
        self._retrieval(findings)
        self._progression(findings)
        self._phases(findings)
        return findings

    def _resamples(self, videos: int | None = None) -> NDArray[np.float64]:
        """Draw counts (R, V) of the held-out videos; draws of different actions are independent."""
        number = len(self.held_out) if videos is None else videos
        seed = (self.seed, crc32(self.held_out.actions[0].encode()))
        return draw_counts(number if self.intervals else 0, seed=seed)

    def _order(self, findings: Findings, nearest: NearestTable) -> None:
        """Kendall's tau."""
        settings = self.protocol
        blocks = [self.held_out[name][:: settings.tau_stride] for name in self.held_out]
        order = pair_orders(nearest if settings.tau_stride == 1 else nearest_table(blocks))
        tau = average_pairs(order.taus(settings.tau_variant), settings.tau_undefined)
        plain = order.taus("a")
        pairs = ~np.eye(len(plain), dtype=bool)
        findings.scores |= {"tau": tau.value, "tau_a": average_pairs(plain, settings.tau_undefined).value}
        findings.counts |= {"pairs": tau.pairs, "tau_undefined": int(np.isnan(plain[pairs]).sum())}
        findings.counts["pairs_backwards"] = int(order.is_backward[pairs].sum())
        if len(counts := self._resamples()):
            known = ~np.isnan(tau.table)
            findings.samples["tau"] = resample_means(np.nan_to_num(tau.table), known, counts)

    def _cycles(self, findings: Findings, nearest: NearestTable) -> None:
        """Cycle-consistency rates."""
        table = count_cycles(nearest)
        three, used = three_way_rate([self.held_out[name] for name in self.held_out], seed=self.seed)
        findings.scores |= {"cycle_rate": table.rate, "cycle_rate_three": three}
        findings.counts["three_way_videos"] = used
        if len(counts := self._resamples()):
            findings.samples["cycle_rate"] = resample_means(table.home, table.total, counts)

    def _key_events(self, findings: Findings, nearest: NearestTable) -> None:
        """Errors of key events, by nearest neighbours and by dynamic time warping, and their confidence."""
        videos = self.held_out
        embeddings: list[Floats] = [videos[name] for name in videos]
        events = [videos.events(name) for name in videos]
        is_timed = all(videos.fps(name) is not None for name in videos)
        times = [videos.times(name) for name in videos] if is_timed else None
        span = self.protocol.event_span
        near = event_error(embeddings, events, times=times, span=span, nearest=nearest)
        warped = event_error(embeddings, events, times=times, span=span, method="dtw")
        findings.counts |= {"event_matches": near.count, "confidence_matches": 0}
        findings.scores |= _event_scores(near, "") | _event_scores(warped, "_dtw")
        findings.scores["event_error_by_event"] = {
            event: part.median_frames for event, part in near.by_event.items() if part.count
        }
        findings.scores["event_errors"] = draw_errors(near.errors.tolist(), seed=self.seed)
        if not near.count:
            return
        labels = Labels.of(events)
        self._confidence(findings, embeddings, labels, near)
        if len(counts := self._resamples()):
            findings.samples |= resample_events(near, labels, counts, "")
            findings.samples |= resample_events(warped, labels, counts, "_dtw")

    def _confidence(
        self, findings: Findings, embeddings: list[Floats], labels: Labels, errors: EventError
    ) -> None:
        """Whether confident matches of key events are right."""
        confidences = event_confidences(embeddings, labels, seed=self.seed)[errors.videos, errors.labels]
        known = ~np.isnan(confidences)
        allowed = np.array([tolerance(len(video)) for video in embeddings])[errors.videos]
        result = measure_calibration(confidences[known], (errors.errors <= allowed)[known])
        findings.scores |= {"calibration": result.bins, "calibration_error": result.error}
        findings.scores["confidence_auroc"] = result.auroc
        findings.counts["confidence_matches"] = result.count

    def _retrieval(self, findings: Findings) -> None:
        """Precision of the nearest frames of other videos."""
        precision = retrieval_precision(with_phases(self.held_out))
        findings.counts["retrieval_queries"] = precision.queries
        findings.scores["precision_at"] = {str(k): share for k, share in precision.at.items()}
        findings.scores["precision5"] = precision.at.get(5)

    def _progression(self, findings: Findings) -> None:
        """R-squared of the time to each key event."""
        if self.train is None:
            return
        sides = [[(part[n], part.events(n)) for n in part] for part in (self.train, self.held_out)]
        progression = phase_progression(*sides, shift=self.protocol.progression_shift)
        findings.scores |= {"progression": progression.value, "progression_by_event": progression.by_event}
        if len(counts := self._resamples()):
            findings.samples["progression"] = progression.resample(counts)

    def _phases(self, findings: Findings) -> None:
        """Phase classification, with all labels and with few."""
        taught = [] if self.train is None else with_phases(self.train)
        tested = with_phases(self.held_out)
        findings.counts |= {"labelled_videos": len(tested), "labelled_train_videos": len(taught)}
        findings.counts["train_videos"] = 0 if self.train is None else len(self.train)
        if not taught or not tested:
            return
        accuracy = phase_accuracy(taught, tested, protocol=self.protocol, seed=self.seed)
        shares = {str(share): score for share, score in accuracy.by_fraction.items()}
        findings.scores |= {"phase_accuracy": accuracy.value, "phase_accuracy_by_fraction": shares}
        if len(counts := self._resamples(len(tested))):
            findings.samples["phase_accuracy"] = resample_means(accuracy.right, accuracy.lengths, counts)
        if self.few_shot:
            few = few_shot_accuracy(taught, tested, seed=self.seed, protocol=self.protocol)
            findings.scores["few_shot"] = {
                str(k): {"mean": float(np.mean(shares)), "spread": float(np.std(shares))}
                for k, shares in few.items()
            }
            findings.scores["few_shot1"] = float(np.mean(few[1])) if 1 in few else None


def _check_span(span: tuple[str, str], videos: EmbeddingSet) -> None:
    """Raise if no video has the two events of the span."""
    if not any(set(span) <= set(videos.events(name)) for name in videos):
        known = ", ".join(videos.event_names) or "none"
        raise EmbeddingError(
            f"no held-out video has both events of the span {span[0]},{span[1]}. Its events: {known}."
        )


def _event_scores(error: EventError, suffix: str) -> dict[str, Any]:
    """Return the fields of a report that hold key-event errors."""
    scores = {"event_error_frames": error.median_frames, "event_error_ms": error.median_ms}
    scores |= {"event_error_mean_frames": error.mean_frames, "event_error_mean_ms": error.mean_ms}
    scores |= {"pce1": error.within.get(1), "pce3": error.within.get(3)}
    scores["event_within_span"] = error.within_span
    return {name + suffix: value for name, value in scores.items()}


def resample_events(
    error: EventError, labels: Labels, counts: NDArray[np.float64], suffix: str
) -> dict[str, NDArray[np.float64]]:
    """Return median error and PCE (R,) with each held-out video counted as often as `counts` (R, V) says."""
    queries, size = labels.videos[error.labels], counts.shape[1]
    samples = {"event_error_frames": resample_medians(error.errors, counts, queries, error.videos)}
    cells = queries * size + error.videos
    known = ~np.isnan(error.tolerances)
    every = np.ones_like(known)
    for name, within, counted in (
        ("pce1", 1, every),
        ("pce3", 3, every),
        ("event_within_span", error.tolerances, known),
    ):
        is_near = (error.errors <= within) & counted
        near, total = (
            np.bincount(cells[chosen], minlength=size**2).reshape(size, size) for chosen in (is_near, counted)
        )
        if counted.any():
            samples[name] = resample_means(near, total, counts)
    return {name + suffix: values for name, values in samples.items()}


def with_phases(videos: EmbeddingSet) -> list[LabelledFrames]:
    """Return embeddings and phases of the videos that have all key events labelled."""
    known = ((videos[name], videos.phases(name)) for name in videos)
    return [(block, phases) for block, phases in known if phases is not None]
