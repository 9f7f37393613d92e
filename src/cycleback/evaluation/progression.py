"""Phase progression: how well a linear map of the embedding tells the time to each key event (paper 4.1).

The target of frame t and event e is (t - frame of e) / N. Ordinary least squares with intercept on the
training videos, one R-squared an event over all held-out frames together, then the plain mean over events.
R-squared is 1 for a perfect map, 0 for the mean, and can be negative.

Shapes: N frames of a video, D embedding size, M frames of several videos, E key events, V held-out videos, R
resamples of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cycleback.evaluation.neighbors import Floats

FLAT = 1e-6  # a direction this much weaker than the strongest is rounding: embeddings are float32
LabelledVideo = tuple[Floats, Mapping[str, int]]  # embeddings (N, D), frame of each key event


@dataclass(frozen=True)
class Progression:
    """Mean R-squared over key events; None where no event is labelled on both sides."""

    value: float | None
    by_event: Mapping[str, float]
    frames: int
    sums: Mapping[str, "Sums"] = field(default_factory=dict, repr=False, compare=False)

    def resampled(self, counts: Floats) -> NDArray[np.float64]:
        """The value (R,) with each held-out video counted as often as `counts` (R, V) says."""
        if not self.sums:
            return np.full(len(counts), np.nan)
        scores = np.stack([part.r_squared(counts) for part in self.sums.values()])  # (E, R)
        means: NDArray[np.float64] = scores.mean(axis=0)
        return means  # undefined where a key event is in none of the videos


@dataclass(frozen=True)
class Sums:
    """What R-squared of one key event needs of each held-out video (V,); 0 where it is not labelled."""

    frames: NDArray[np.float64]
    targets: NDArray[np.float64]
    squares: NDArray[np.float64]
    errors: NDArray[np.float64]

    def r_squared(self, counts: Floats) -> NDArray[np.float64]:
        """R-squared (R,) with each video counted as often as `counts` (R, V) says; 0 without spread."""
        frames, targets, squares, errors = (
            counts @ part for part in (self.frames, self.targets, self.squares, self.errors)
        )
        spread = squares - np.square(targets) / np.where(frames > 0, frames, np.nan)
        scores = 1 - np.divide(errors, spread, out=np.ones_like(errors), where=spread > 1e-12 * squares)
        return np.where(frames > 0, scores, np.nan)


def phase_progression(
    train: Sequence[LabelledVideo], held_out: Sequence[LabelledVideo], *, shift: int = 0
) -> Progression:
    """R-squared of linear regression from embeddings to the time relative to each key event.

    A video counts for the events it has labels of.

    Args:
        train: (embeddings (N, D), frame of each key event) of the training videos.
        held_out: the same of the held-out videos.
        shift: frames added to every key event; the authors' program counts from the frame before it, -1.
    """
    train, held_out = _shifted(train, shift), _shifted(held_out, shift)
    names = dict.fromkeys(event for _, events in train for event in events)
    groups: dict[tuple[int, ...], list[str]] = {}  # events labelled in the same videos: one regression
    for event in names:
        if any(event in events for _, events in held_out):
            groups.setdefault(_having(train, event), []).append(event)
    sums: dict[str, Sums] = {}
    for videos, events in groups.items():
        weights = _least_squares([train[video] for video in videos], events)  # (D + 1, E)
        for event, column in zip(events, weights.T, strict=True):
            sums[event] = _sums(held_out, event, column)
    sums = {event: sums[event] for event in names if event in sums}
    scores = {event: float(part.r_squared(np.ones((1, len(held_out))))[0]) for event, part in sums.items()}
    frames = sum(len(block) for block, events in held_out if any(event in sums for event in events))
    value = float(np.mean(list(scores.values()))) if scores else None
    return Progression(value, scores, frames, sums)


def _shifted(videos: Sequence[LabelledVideo], shift: int) -> list[LabelledVideo]:
    return [(block, {event: frame + shift for event, frame in events.items()}) for block, events in videos]


def _having(videos: Sequence[LabelledVideo], event: str) -> tuple[int, ...]:
    return tuple(position for position, (_, events) in enumerate(videos) if event in events)


def _least_squares(videos: Sequence[LabelledVideo], events: Sequence[str]) -> NDArray[np.float64]:
    """Weights (D + 1, E), the intercept last; the smallest ones where several fit equally well."""
    features = np.concatenate([np.asarray(block, dtype=np.float64) for block, _ in videos])  # (M, D)
    targets = np.concatenate([_targets(video, events) for video in videos])  # (M, E)
    mean = features.mean(axis=0)
    slope = np.linalg.lstsq(features - mean, targets - targets.mean(axis=0), rcond=FLAT)[0]
    return np.vstack([slope, targets.mean(axis=0) - mean @ slope])


def _targets(video: LabelledVideo, events: Sequence[str]) -> NDArray[np.float64]:
    """Signed time (N, E) from each event, as a fraction of the video."""
    block, frames = video
    frame = np.array([frames[event] for event in events])
    offsets: NDArray[np.float64] = (np.arange(len(block))[:, None] - frame) / len(block)
    return offsets


def _sums(videos: Sequence[LabelledVideo], event: str, weights: NDArray[np.float64]) -> Sums:
    """Sums over the frames of each video."""
    rows = np.zeros((len(videos), 4))
    for row, (block, frames) in zip(rows, videos, strict=True):
        if event in frames:
            targets = _targets((block, frames), [event])[:, 0]  # (N,)
            missed = targets - (block @ weights[:-1] + weights[-1])
            row[:] = len(block), targets.sum(), np.square(targets).sum(), np.square(missed).sum()
    return Sums(*rows.T)
