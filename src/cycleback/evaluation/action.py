"""All scores of the held-out videos of one action.

Shapes: V videos, R resamples of them.
"""

from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cycleback.embeddings import EmbeddingSet
from cycleback.evaluation.bootstrap import draw_counts, middle_interval, resample_means, resample_medians
from cycleback.evaluation.events import (
    EventError,
    Labels,
    event_confidences,
    event_error,
    measure_calibration,
)
from cycleback.evaluation.neighbors import Floats, NearestTable, nearest_table
from cycleback.evaluation.order import average_pairs, count_cycles, pair_orders, three_way_rate
from cycleback.evaluation.phases import LabelledFrames, few_shot_accuracy, phase_accuracy, phase_progression
from cycleback.evaluation.protocol import Protocol
from cycleback.evaluation.report import Report, kept_errors
from cycleback.evaluation.retrieval import retrieval_precision

TOLERANCE = 3  # frames; a key event mapped this near counts as right


@dataclass
class Findings:
    """What has been found so far: fields of a report, counts, and resampled scores (R,)."""

    scores: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    samples: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def report(self, protocol: Protocol, *, can_count_frames: bool) -> Report:
        """The report, with an interval of each resampled score."""
        found = {name: middle_interval(values) for name, values in self.samples.items()}
        intervals = {name: bounds for name, bounds in found.items() if bounds is not None}
        return Report(
            **self.scores,
            intervals=intervals,
            counts=self.counts,
            protocol=protocol.name,
            can_count_frames=can_count_frames,
        )


@dataclass(frozen=True)
class ActionScorer:
    """Scores the held-out videos of one action, with the training videos of that action where there are any.

    Attributes:
        train: embeddings of the training videos, or None.
        held_out: embeddings to score.
        protocol: settings.
        seed: of all draws.
        intervals: whether to resample.
        few_shot: whether to do few-shot classification, the longest part.
    """

    train: EmbeddingSet | None
    held_out: EmbeddingSet
    protocol: Protocol
    seed: int = 0
    intervals: bool = True
    few_shot: bool = True

    def findings(self) -> Findings:
        """Every metric that the labels allow."""
        videos = self.held_out
        found = Findings(counts={"actions": 1, "videos": len(videos), "frames": videos.num_frames})
        nearest = nearest_table([videos[name] for name in videos])
        self._order(found, nearest)
        self._cycles(found, nearest)
        self._key_events(found, nearest)
        self._retrieval(found)
        self._progression(found)
        self._phases(found)
        return found

    def _resamples(self, videos: int | None = None) -> NDArray[np.float64]:
        """Counts (R, V) of the held-out videos, or of so many; draws of different actions are independent."""
        number = len(self.held_out) if videos is None else videos
        seed = (self.seed, crc32(self.held_out.actions[0].encode()))
        return draw_counts(number if self.intervals else 0, seed=seed)

    def _order(self, found: Findings, nearest: NearestTable) -> None:
        """Kendall's tau."""
        settings = self.protocol
        blocks = [self.held_out[name][:: settings.tau_stride] for name in self.held_out]
        order = pair_orders(nearest if settings.tau_stride == 1 else nearest_table(blocks))
        tau = average_pairs(order.taus(settings.tau_variant), settings.tau_undefined)
        plain = order.taus("a")
        pairs = ~np.eye(len(plain), dtype=bool)
        found.scores |= {"tau": tau.value, "tau_a": average_pairs(plain, settings.tau_undefined).value}
        found.counts |= {"pairs": tau.pairs, "tau_undefined": int(np.isnan(plain[pairs]).sum())}
        found.counts["pairs_backwards"] = int(order.is_backward[pairs].sum())
        if len(counts := self._resamples()):
            known = ~np.isnan(tau.table)
            found.samples["tau"] = resample_means(np.nan_to_num(tau.table), known, counts)

    def _cycles(self, found: Findings, nearest: NearestTable) -> None:
        """Cycle-consistency rates."""
        table = count_cycles(nearest)
        three, used = three_way_rate([self.held_out[name] for name in self.held_out], seed=self.seed)
        found.scores |= {"cycle_rate": table.rate, "cycle_rate_three": three}
        found.counts["three_way_videos"] = used
        if len(counts := self._resamples()):
            found.samples["cycle_rate"] = resample_means(table.home, table.total, counts)

    def _key_events(self, found: Findings, nearest: NearestTable) -> None:
        """Errors of key events, by nearest neighbours and by dynamic time warping, and their confidence."""
        videos = self.held_out
        embeddings: list[Floats] = [videos[name] for name in videos]
        events = [videos.events(name) for name in videos]
        timed = all(videos.fps(name) is not None for name in videos)
        times = [videos.times(name) for name in videos] if timed else None
        near = event_error(embeddings, events, times=times, nearest=nearest)
        warped = event_error(embeddings, events, times=times, method="dtw")
        found.counts |= {"event_matches": near.count, "confidence_matches": 0}
        found.scores |= event_scores(near, "") | event_scores(warped, "_dtw")
        found.scores["event_error_by_event"] = {
            event: part.median_frames for event, part in near.by_event.items() if part.count
        }
        found.scores["event_errors"] = kept_errors(near.errors.tolist(), seed=self.seed)
        if not near.count:
            return
        labels = Labels.of(events)
        self._confidence(found, embeddings, labels, near)
        if len(counts := self._resamples()):
            found.samples |= resampled_events(near, labels, counts, "")
            found.samples |= resampled_events(warped, labels, counts, "_dtw")

    def _confidence(
        self, found: Findings, embeddings: list[Floats], labels: Labels, errors: EventError
    ) -> None:
        """Whether matches of key events that are confident are right."""
        sure = event_confidences(embeddings, labels, seed=self.seed)[errors.videos, errors.labels]
        known = ~np.isnan(sure)
        trust = measure_calibration(sure[known], (errors.errors <= TOLERANCE)[known])
        found.scores |= {"calibration": trust.bins, "calibration_error": trust.error}
        found.scores["confidence_auroc"] = trust.auroc
        found.counts["confidence_matches"] = trust.count

    def _retrieval(self, found: Findings) -> None:
        """Precision of the nearest frames of other videos."""
        precision = retrieval_precision(with_phases(self.held_out))
        found.counts["retrieval_queries"] = precision.queries
        found.scores["precision_at"] = {str(k): share for k, share in precision.at.items()}
        found.scores["precision5"] = precision.at.get(5)

    def _progression(self, found: Findings) -> None:
        """R-squared of the time to each key event."""
        if self.train is None:
            return
        sides = [[(part[n], part.events(n)) for n in part] for part in (self.train, self.held_out)]
        progression = phase_progression(*sides, shift=self.protocol.progression_shift)
        found.scores |= {"progression": progression.value, "progression_by_event": progression.by_event}
        if len(counts := self._resamples()):
            found.samples["progression"] = progression.resample(counts)

    def _phases(self, found: Findings) -> None:
        """Phase classification, with all labels and with few."""
        taught = [] if self.train is None else with_phases(self.train)
        tested = with_phases(self.held_out)
        found.counts |= {"labelled_videos": len(tested), "labelled_train_videos": len(taught)}
        found.counts["train_videos"] = 0 if self.train is None else len(self.train)
        if not taught or not tested:
            return
        accuracy = phase_accuracy(taught, tested, protocol=self.protocol, seed=self.seed)
        shares = {str(share): score for share, score in accuracy.by_fraction.items()}
        found.scores |= {"phase_accuracy": accuracy.value, "phase_accuracy_by_fraction": shares}
        if len(counts := self._resamples(len(tested))):
            found.samples["phase_accuracy"] = resample_means(accuracy.right, accuracy.lengths, counts)
        if self.few_shot:
            few = few_shot_accuracy(taught, tested, seed=self.seed, protocol=self.protocol)
            found.scores["few_shot"] = {str(k): {"mean": e.mean, "spread": e.spread} for k, e in few.items()}
            found.scores["few_shot1"] = few[1].mean if 1 in few else None


def event_scores(error: EventError, suffix: str) -> dict[str, Any]:
    """The fields of a report that hold key-event errors."""
    scores = {"event_error_frames": error.median_frames, "event_error_ms": error.median_ms}
    scores |= {"event_error_mean_frames": error.mean_frames, "event_error_mean_ms": error.mean_ms}
    scores |= {"pce1": error.within.get(1), "pce3": error.within.get(3)}
    return {name + suffix: value for name, value in scores.items()}


def resampled_events(
    error: EventError, labels: Labels, counts: NDArray[np.float64], suffix: str
) -> dict[str, NDArray[np.float64]]:
    """Median error and PCE (R,) with the held-out videos counted as `counts` (R, V) says."""
    queries, size = labels.videos[error.labels], counts.shape[1]
    found = {"event_error_frames": resample_medians(error.errors, counts, queries, error.videos)}
    cells = queries * size + error.videos
    total = np.bincount(cells, minlength=size**2).reshape(size, size)
    for name, within in (("pce1", 1), ("pce3", 3)):
        near = np.bincount(cells[error.errors <= within], minlength=size**2).reshape(size, size)
        found[name] = resample_means(near, total, counts)
    return {name + suffix: values for name, values in found.items()}


def with_phases(videos: EmbeddingSet) -> list[LabelledFrames]:
    """Embeddings and phases of the videos that have all key events labelled."""
    known = ((videos[name], videos.phases(name)) for name in videos)
    return [(block, phases) for block, phases in known if phases is not None]
