"""One evaluation of held-out embeddings: every metric, for each action, then the mean over actions."""

from typing import Any, get_args

from cycleback.alignment import cycle_consistency_rate
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError
from cycleback.evaluation.events import EventError, event_error
from cycleback.evaluation.kendall import mean_tau
from cycleback.evaluation.phases import LabelledFrames, Protocol, phase_accuracy
from cycleback.evaluation.progression import phase_progression
from cycleback.evaluation.report import Report, mean_report

PAPER_STRIDE = 5  # the authors' program keeps every fifth frame of Pouring for tau


def evaluate(
    train: EmbeddingSet | None,
    held_out: EmbeddingSet,
    *,
    protocol: Protocol = "linear",
    tau_stride: int | None = None,
    seed: int = 0,
) -> Report:
    """Score `held_out`; pairs are formed within an action, and scores are means over actions.

    Without labels the label-free half remains (tau, cycle rate); without `train`, all but the classifiers.

    Args:
        train: embeddings of labelled training videos for phase classification and progression, or None.
        held_out: embeddings to score.
        protocol: "linear", or "paper" for what the authors' program does: support vector machine on the first
            videos, tau of every fifth frame without the collapsed pairs.
        tau_stride: keep every so many frames for tau; by default 1, or 5 for "paper".
        seed: draws the smaller shares of training videos.

    Returns:
        A report. Its counts: actions, videos, frames and ordered pairs of `held_out`; tau_undefined, pairs
        whose tau is undefined; event_matches, key events mapped; labelled_videos with all key events;
        train_videos and labelled_train_videos; videos_in_both, which should be 0.
    """
    if protocol not in get_args(Protocol):
        raise ValueError(f"protocol must be 'linear' or 'paper', got {protocol!r}")
    if not len(held_out):
        raise EmbeddingError("there are no held-out videos to evaluate. Split the data set, or embed more.")
    _check_same_encoder(train, held_out)
    stride = tau_stride or (PAPER_STRIDE if protocol == "paper" else 1)
    reports = {}
    for action in held_out.actions:
        taught = None if train is None or action not in train.actions else train.of_action(action)
        tested = held_out.of_action(action)
        free, free_counts = _label_free(tested, protocol, stride)
        events, event_counts = _key_events(tested)
        probes, probe_counts = _probes(taught, tested, protocol, seed)
        counts = {"actions": 1, "videos": len(tested), "frames": tested.num_frames}
        counts |= free_counts | event_counts | probe_counts
        reports[action] = Report(
            **free,
            **events,
            **probes,
            counts=counts,
            protocol=protocol,
            can_count_frames=tested.can_count_frames,
        )
    return mean_report(reports)


Scores = tuple[dict[str, Any], dict[str, int]]  # fields of a report, and counts


def _label_free(videos: EmbeddingSet, protocol: Protocol, stride: int) -> Scores:
    embeddings = [videos[name] for name in videos]
    tau = mean_tau(embeddings, stride=stride, undefined="drop" if protocol == "paper" else "zero")
    cycles = cycle_consistency_rate(embeddings) if len(embeddings) > 1 else None
    return {"tau": tau.value, "cycle_rate": cycles}, {"pairs": tau.pairs, "tau_undefined": tau.undefined}


def _key_events(videos: EmbeddingSet) -> Scores:
    embeddings, events = [videos[name] for name in videos], [videos.events(name) for name in videos]
    timed = all(videos.fps(name) is not None for name in videos)
    times = [videos.times(name) for name in videos] if timed else None
    nearest = event_error(embeddings, events, times=times, method="nearest")
    warped = event_error(embeddings, events, times=times, method="dtw")
    by_event = {e: part.median_frames for e, part in nearest.by_event.items() if part.count}
    scores = _event_scores(nearest, "") | _event_scores(warped, "_dtw") | {"event_error_by_event": by_event}
    return scores, {"event_matches": nearest.count}


def _event_scores(error: EventError, suffix: str) -> dict[str, Any]:
    scores = {"event_error_frames": error.median_frames, "event_error_ms": error.median_ms}
    scores |= {"pce1": error.within.get(1), "pce3": error.within.get(3)}
    return {name + suffix: value for name, value in scores.items()}


def _probes(train: EmbeddingSet | None, held_out: EmbeddingSet, protocol: Protocol, seed: int) -> Scores:
    """Phase classification and progression; empty without labels on both sides."""
    taught, tested = ([] if train is None else _with_phases(train)), _with_phases(held_out)
    counts = {"labelled_videos": len(tested), "train_videos": 0 if train is None else len(train)}
    shared = 0 if train is None else sum(name in train for name in held_out)
    counts |= {"labelled_train_videos": len(taught), "videos_in_both": shared}
    if train is None:
        return {}, counts
    scores: dict[str, Any] = {
        "progression": phase_progression(
            [(train[name], train.events(name)) for name in train],
            [(held_out[name], held_out.events(name)) for name in held_out],
        ).value
    }
    if taught and tested:
        accuracy = phase_accuracy(taught, tested, protocol=protocol, seed=seed)
        shares = {str(share): score for share, score in accuracy.by_fraction.items()}
        scores |= {"phase_accuracy": accuracy.value, "phase_accuracy_by_fraction": shares}
    return scores, counts


def _with_phases(videos: EmbeddingSet) -> list[LabelledFrames]:
    known = ((videos[name], videos.phases(name)) for name in videos)
    return [(block, phases) for block, phases in known if phases is not None]


def _check_same_encoder(train: EmbeddingSet | None, held_out: EmbeddingSet) -> None:
    if train is None:
        return
    if train.size != held_out.size:
        raise EmbeddingError(f"training embeddings have size {train.size}, held-out ones {held_out.size}")
    if None not in (train.encoder, held_out.encoder) and train.encoder != held_out.encoder:
        names = f"{train.encoder} and {held_out.encoder}"
        raise EmbeddingError(f"the two sets were made by different encoders, {names}. Embed both with one.")
