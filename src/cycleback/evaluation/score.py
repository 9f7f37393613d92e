"""One evaluation of held-out embeddings: every metric, for each action, then the mean over actions."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cycleback.embeddings import EmbeddingSet, check_same_encoder
from cycleback.errors import EmbeddingError
from cycleback.evaluation.action import ActionScorer, Findings
from cycleback.evaluation.bootstrap import RESAMPLES, middle_interval
from cycleback.evaluation.overlap import find_overlap, refuse_overlap
from cycleback.evaluation.protocol import Protocol, named_protocol
from cycleback.evaluation.report import Report, mean_report


def evaluate(
    train: EmbeddingSet | None,
    held_out: EmbeddingSet,
    *,
    protocol: str | Protocol = "linear",
    tau_stride: int | None = None,
    seed: int = 0,
    intervals: bool = True,
    few_shot: bool = True,
    allow_overlap: bool = False,
    persons: Mapping[str, str] | None = None,
) -> Report:
    """Score `held_out`; pairs are formed within an action, and scores are means over actions.

    Without labels the label-free half remains (tau, cycle rates); without `train`, all but the classifiers.

    Args:
        train: embeddings of labelled training videos for phase classification and progression, or None.
        held_out: embeddings to score.
        protocol: "linear", "paper" or "reference", see `cycleback.evaluation.protocol`; or your own.
        tau_stride: keep every so many frames for tau; by default as the protocol says.
        seed: of all draws: shares of training videos, few-shot episodes, resamples.
        intervals: whether to resample the held-out videos, for 95 % intervals of the main scores.
        few_shot: whether to do few-shot classification, which takes longest.
        allow_overlap: whether a video may be on both sides; then it is counted, and else it is an error.
        persons: video name -> person, where known; nobody may be on both sides.

    Returns:
        A report. Its counts: actions, videos, frames and ordered pairs of `held_out`; tau_undefined, pairs
        whose tau is undefined, and pairs_backwards, those matched against time (tau-b below -0.5);
        three_way_videos, drawn for the three-way cycles; event_matches, key events mapped, and
        confidence_matches, those of them whose confidence was looked at; retrieval_queries; labelled_videos
        with all key events; train_videos and labelled_train_videos; videos_in_both and persons_in_both,
        held-out videos that are trained on or show someone who is, which should be 0.
    """
    settings = named_protocol(protocol)
    if tau_stride is not None:
        settings = replace(settings, tau_stride=tau_stride)
    if settings.tau_stride < 1:
        raise ValueError(f"tau_stride must be at least 1, got {settings.tau_stride}")
    if not len(held_out):
        raise EmbeddingError("there are no held-out videos to evaluate. Split the data set, or embed more.")
    _check_same_encoder(train, held_out)
    shared = [] if train is None else find_overlap(train, held_out, persons=persons)
    if not allow_overlap:
        refuse_overlap(shared)
    reports, samples = {}, []
    for action in held_out.actions:
        taught = None if train is None or action not in train.actions else train.of_action(action)
        tested = held_out.of_action(action)
        found = ActionScorer(taught, tested, settings, seed=seed, intervals=intervals, few_shot=few_shot)
        findings = found.findings()
        here = [overlap for overlap in shared if overlap.held_out in tested]
        findings.counts["persons_in_both"] = sum(overlap.is_person for overlap in here)
        findings.counts["videos_in_both"] = len(here) - findings.counts["persons_in_both"]
        reports[action] = findings.report(settings, can_count_frames=tested.can_count_frames)
        samples.append(findings)
    return mean_report(reports, intervals=_mean_intervals(samples))


def _mean_intervals(parts: list[Findings]) -> dict[str, tuple[float, float]]:
    """Intervals of means over actions; an action that cannot be resampled stays at its score."""
    found = {}
    for name in dict.fromkeys(name for part in parts for name in part.samples):
        scored = [part for part in parts if part.scores.get(name) is not None]
        rows = [_filled(part.samples.get(name), part.scores[name]) for part in scored]
        bounds = middle_interval(np.mean(rows, axis=0)) if rows else None
        if bounds is not None:
            found[name] = bounds
    return found


def _filled(samples: NDArray[np.float64] | None, score: float) -> NDArray[np.float64]:
    return np.full(RESAMPLES, score) if samples is None else np.where(np.isnan(samples), score, samples)


def _check_same_encoder(train: EmbeddingSet | None, held_out: EmbeddingSet) -> None:
    if train is None:
        return
    if train.size != held_out.size:
        raise EmbeddingError(f"training embeddings have size {train.size}, held-out ones {held_out.size}")
    check_same_encoder({"training videos": train.encoder, "held-out videos": held_out.encoder})
