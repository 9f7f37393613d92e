"""Phase progression: how well a linear map of the embedding tells the time to each key event (paper 4.1).

The target of frame t and event e is (t - frame of e) / N. Ordinary least squares with intercept on the
training videos, one R-squared an event over all held-out frames together, then the plain mean over events.
R-squared is 1 for a perfect map, 0 for the mean, and can be negative.

Shapes: N frames of a video, D embedding size, M frames of several videos, E key events.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cycleback.evaluation.neighbors import Floats

LabelledVideo = tuple[Floats, Mapping[str, int]]  # embeddings (N, D), frame of each key event


@dataclass(frozen=True)
class Progression:
    """Mean R-squared over key events; None where no event is labelled on both sides."""

    value: float | None
    by_event: Mapping[str, float]
    frames: int


def phase_progression(train: Sequence[LabelledVideo], held_out: Sequence[LabelledVideo]) -> Progression:
    """R-squared of linear regression from embeddings to the time relative to each key event.

    A video counts for the events it has labels of.
    """
    names = dict.fromkeys(event for _, events in train for event in events)
    groups: dict[
        tuple[int, ...], list[str]
    ] = {}  # events labelled in the same training videos: one regression
    for event in names:
        if any(event in events for _, events in held_out):
            groups.setdefault(_having(train, event), []).append(event)
    scores: dict[str, float] = {}
    for videos, events in groups.items():
        weights = _least_squares([train[video] for video in videos], events)  # (D + 1, E)
        for event, column in zip(events, weights.T, strict=True):
            scores[event] = _r_squared([held_out[video] for video in _having(held_out, event)], event, column)
    frames = sum(len(block) for block, events in held_out if any(event in scores for event in events))
    ordered = {event: scores[event] for event in names if event in scores}
    return Progression(float(np.mean(list(ordered.values()))) if ordered else None, ordered, frames)


def _having(videos: Sequence[LabelledVideo], event: str) -> tuple[int, ...]:
    return tuple(position for position, (_, events) in enumerate(videos) if event in events)


def _least_squares(videos: Sequence[LabelledVideo], events: Sequence[str]) -> NDArray[np.float64]:
    """Weights (D + 1, E), the intercept last; the smallest ones where several fit equally well."""
    features = np.concatenate([np.asarray(block, dtype=np.float64) for block, _ in videos])  # (M, D)
    targets = np.concatenate([_targets(video, events) for video in videos])  # (M, E)
    mean = features.mean(axis=0)
    slope = np.linalg.lstsq(features - mean, targets - targets.mean(axis=0), rcond=None)[0]
    return np.vstack([slope, targets.mean(axis=0) - mean @ slope])


def _targets(video: LabelledVideo, events: Sequence[str]) -> NDArray[np.float64]:
    """Signed time (N, E) from each event, as a fraction of the video."""
    block, frames = video
    frame = np.array([frames[event] for event in events])
    offsets: NDArray[np.float64] = (np.arange(len(block))[:, None] - frame) / len(block)
    return offsets


def _r_squared(videos: Sequence[LabelledVideo], event: str, weights: NDArray[np.float64]) -> float:
    targets = np.concatenate([_targets(video, [event])[:, 0] for video in videos])  # (M,)
    predicted = np.concatenate([block @ weights[:-1] + weights[-1] for block, _ in videos])
    spread = float(np.square(targets - targets.mean()).sum())
    return 1 - float(np.square(targets - predicted).sum()) / spread if spread > 0 else 0.0
