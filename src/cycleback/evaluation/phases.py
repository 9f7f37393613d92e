"""Phases from embeddings: classification, few-shot classification and progression (paper 4.1 and 5).

Phase classification trains a simple classifier on a share of the training videos. The protocol sets the
classifier and the choice of videos, since classifiers differ by several percent.

Few-shot classification draws k training videos without replacement per episode, trains on all their frames
and tests on the held-out frames. Logistic regression runs for at most 100 iterations on embeddings
standardised by all training videos, which needs no labels.

Phase progression predicts the time to each key event by a linear map. The target of frame t and event e is
(t - frame of e) / N. Ordinary least squares with intercept is fitted to the training videos. R-squared is
computed per event over all held-out frames together, then averaged over events. It is 1 for a perfect map, 0
for the mean, and can be negative.

Shapes: N frames of a video, D embedding size, M frames of several videos, E key events, V held-out videos, R
resamples of them.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cycleback.evaluation.neighbors import Floats
from cycleback.evaluation.protocol import Classifier, Protocol, named_protocol

Features = NDArray[np.float64]
Phases = NDArray[np.int64]
LabelledFrames = tuple[Floats, Phases]  # embeddings (N, D), phases (N,) of one video
LabelledEvents = tuple[Floats, Mapping[str, int]]  # embeddings (N, D), frame of each key event
FRACTIONS = (0.1, 0.5, 1.0)
EPISODES = 50
EPISODE_ITERATIONS = 100
MIN_STRENGTH = 1e-6  # a direction weaker than this, relative to the strongest, is float32 rounding


@dataclass(frozen=True)
class PhaseAccuracy:
    """Share of held-out frames whose phase was found, by the share of training videos used.

    `right` and `lengths` (V,) count, per video, the frames found with the largest share and all frames.
    """

    by_fraction: Mapping[float, float]
    right: NDArray[np.int64] = field(compare=False, repr=False)
    lengths: NDArray[np.int64] = field(compare=False, repr=False)

    @property
    def value(self) -> float:
        """Accuracy with the largest share of the training videos."""
        return self.by_fraction[max(self.by_fraction)]


def phase_accuracy(
    train: Sequence[LabelledFrames],
    held_out: Sequence[LabelledFrames],
    *,
    protocol: str | Protocol = "linear",
    fractions: Sequence[float] = FRACTIONS,
    seed: int = 0,
) -> PhaseAccuracy:
    """Train on (embeddings (N, D), phases (N,)) of some videos, test on all frames of the others.

    A phase that does not occur in training cannot be found: its frames count as wrong.
    """
    settings = named_protocol(protocol)
    if not train or not held_out or not fractions or not all(0 < share <= 1 for share in fractions):
        got = f"{len(train)} training videos, {len(held_out)} held-out videos, fractions {tuple(fractions)}"
        raise ValueError(f"expected videos on both sides and fractions in (0, 1], got {got}")
    order = np.random.default_rng(seed).permutation(len(train))
    order = np.arange(len(train)) if settings.first_videos else order
    counts = {share: max(1, int(share * len(train))) for share in sorted(fractions)}
    features, phases = pool_frames(held_out)
    scores, is_right = {}, np.empty(0, dtype=bool)
    for share, count in counts.items():
        known, truth = pool_frames([train[video] for video in order[:count]])
        others = features
        if settings.classifier == "logistic":
            known, others = standardize(known, features)
        is_right = fit_classifier(settings.classifier, known, truth)(others) == phases
        scores[share] = float(is_right.mean())
    lengths = np.array([len(block) for block, _ in held_out])
    right = np.add.reduceat(is_right.astype(np.int64), np.cumsum([0, *lengths[:-1]]))
    return PhaseAccuracy(scores, right, lengths)


def few_shot_accuracy(
    train: Sequence[LabelledFrames],
    held_out: Sequence[LabelledFrames],
    *,
    videos: Sequence[int] | None = None,
    episodes: int = EPISODES,
    seed: int = 0,
    protocol: str | Protocol = "linear",
) -> Mapping[int, tuple[float, ...]]:
    """Return the accuracies of all episodes by number of labelled training videos.

    Args:
        train: (embeddings (N, D), phases (N,)) of the training videos.
        held_out: The same of the held-out videos.
        videos: Numbers of training videos; by default those of the protocol. Larger than `train`: left out.
        episodes: Draws per number.
        seed: Of the draws.
        protocol: Sets the classifier.
    """
    settings = named_protocol(protocol)
    numbers = settings.few_shot_videos if videos is None else tuple(videos)
    if episodes < 1 or not numbers or min(numbers) < 1:
        raise ValueError(
            f"expected episodes and numbers of videos of 1 or more, got {episodes} episodes, {numbers} videos"
        )
    if not train or not held_out:
        raise ValueError(
            f"expected videos on both sides, got {len(train)} to learn from, {len(held_out)} held out"
        )
    (known, phases), (others, truth) = pool_frames(train), pool_frames(held_out)
    if settings.classifier == "logistic":
        known, others = standardize(known, others)
    starts = np.cumsum([0, *(len(block) for block, _ in train)])

    @cache  # a repeated draw is not trained again
    def train_and_test(drawn: tuple[int, ...]) -> float:
        rows = np.concatenate([np.arange(starts[video], starts[video + 1]) for video in drawn])
        predict = fit_classifier(
            settings.classifier, known[rows], phases[rows], max_iterations=EPISODE_ITERATIONS
        )
        return float((predict(others) == truth).mean())

    rng = np.random.default_rng(seed)
    accuracies = {}
    for number in numbers:
        draws = [tuple(np.sort(rng.permutation(len(train))[:number]).tolist()) for _ in range(episodes)]
        if number <= len(train):
            accuracies[number] = tuple(map(train_and_test, draws))
    return accuracies


def fit_classifier(
    classifier: Classifier, features: Features, phases: Phases, *, max_iterations: int = 1000
) -> Callable[[Features], Phases]:
    """Learn from `features` (M, D) and `phases` (M,) a function from embeddings (M, D) to phases (M,).

    For "logistic", features should be standardised; it may stop before it has converged. With a single phase,
    every prediction is that phase.
    """
    if len(np.unique(phases)) == 1:
        return lambda rows: np.full(len(rows), phases[0])
    if classifier == "svm":
        from sklearn.svm import SVC

        return SVC(C=1.0, kernel="rbf", gamma="scale").fit(features, phases).predict  # type: ignore[no-any-return]
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=max_iterations).fit(features, phases)
    return model.predict  # type: ignore[no-any-return]


def standardize(features: Features, others: Features) -> tuple[Features, Features]:
    """Scale both to mean 0 and variance 1 per dimension of `features`; a constant dimension becomes 0."""
    mean, spread = features.mean(axis=0), features.std(axis=0)
    rounding = 10 * np.finfo(np.float64).eps * np.abs(mean)
    scale = np.where(spread > rounding, spread, 1.0)
    return (features - mean) / scale, (others - mean) / scale


def pool_frames(videos: Sequence[LabelledFrames]) -> tuple[Features, Phases]:
    """Return all frames (M, D) and phases (M,) of several videos."""
    for features, phases in videos:
        if len(features) != len(phases):
            raise ValueError(f"{len(phases)} phase labels for {len(features)} frames")
    pooled = np.concatenate([np.asarray(features, dtype=np.float64) for features, _ in videos])
    return pooled, np.concatenate([phases for _, phases in videos])


@dataclass(frozen=True)
class Progression:
    """Mean R-squared over key events; None where no event is labelled on both sides."""

    value: float | None
    by_event: Mapping[str, float]
    sums: Mapping[str, "Sums"] = field(default_factory=dict, repr=False, compare=False)

    def resample(self, counts: Floats) -> NDArray[np.float64]:
        """Return the value (R,) with each held-out video counted as often as `counts` (R, V) says.

        It is undefined where a key event is in none of the videos drawn.
        """
        if not self.sums:
            return np.full(len(counts), np.nan)
        scores = np.stack([part.r_squared(counts) for part in self.sums.values()])  # (E, R)
        means: NDArray[np.float64] = scores.mean(axis=0)
        return means


@dataclass(frozen=True)
class Sums:
    """Sums per held-out video (V,) for R-squared of one key event; 0 where it is not labelled."""

    frames: NDArray[np.float64]
    targets: NDArray[np.float64]
    squares: NDArray[np.float64]
    errors: NDArray[np.float64]

    def r_squared(self, counts: Floats) -> NDArray[np.float64]:
        """Return R-squared (R,) with videos counted as `counts` (R, V) says; 0 without spread."""
        frames, targets, squares, errors = (
            counts @ part for part in (self.frames, self.targets, self.squares, self.errors)
        )
        spread = squares - np.square(targets) / np.where(frames > 0, frames, np.nan)
        scores = 1 - np.divide(errors, spread, out=np.ones_like(errors), where=spread > 1e-12 * squares)
        return np.where(frames > 0, scores, np.nan)


def phase_progression(
    train: Sequence[LabelledEvents], held_out: Sequence[LabelledEvents], *, shift: int = 0
) -> Progression:
    """Return R-squared of linear regression from embeddings to the time relative to each key event.

    A video is (embeddings (N, D), frame of each key event) and counts for the events labelled in it. `shift`
    is added to every key event; the authors' program counts from the frame before it, -1.
    """
    train, held_out = (
        [(block, {event: frame + shift for event, frame in events.items()}) for block, events in videos]
        for videos in (train, held_out)
    )
    names = dict.fromkeys(event for _, events in train for event in events)
    groups: dict[tuple[int, ...], list[str]] = {}  # events labelled in the same videos: one regression
    for event in names:
        if any(event in events for _, events in held_out):
            labelled = tuple(video for video, (_, events) in enumerate(train) if event in events)
            groups.setdefault(labelled, []).append(event)
    sums: dict[str, Sums] = {}
    for videos, events in groups.items():
        weights = _fit_least_squares([train[video] for video in videos], events)  # (D + 1, E)
        for event, column in zip(events, weights.T, strict=True):
            sums[event] = _sum_errors(held_out, event, column)
    sums = {event: sums[event] for event in names if event in sums}
    scores = {event: float(part.r_squared(np.ones((1, len(held_out))))[0]) for event, part in sums.items()}
    value = float(np.mean(list(scores.values()))) if scores else None
    return Progression(value, scores, sums)


def _fit_least_squares(videos: Sequence[LabelledEvents], events: Sequence[str]) -> NDArray[np.float64]:
    """Return weights (D + 1, E), the intercept last; the smallest weights where several fit equally well."""
    features = np.concatenate([np.asarray(block, dtype=np.float64) for block, _ in videos])  # (M, D)
    targets = np.concatenate([_times_to(video, events) for video in videos])  # (M, E)
    mean = features.mean(axis=0)
    slope = np.linalg.lstsq(features - mean, targets - targets.mean(axis=0), rcond=MIN_STRENGTH)[0]
    return np.vstack([slope, targets.mean(axis=0) - mean @ slope])


def _times_to(video: LabelledEvents, events: Sequence[str]) -> NDArray[np.float64]:
    """Return the signed time (N, E) from each event, as a fraction of the video."""
    block, frames = video
    frame = np.array([frames[event] for event in events])
    offsets: NDArray[np.float64] = (np.arange(len(block))[:, None] - frame) / len(block)
    return offsets


def _sum_errors(videos: Sequence[LabelledEvents], event: str, weights: NDArray[np.float64]) -> Sums:
    """Sum targets and errors over the frames of each video."""
    rows = np.zeros((len(videos), 4))
    for row, (block, frames) in zip(rows, videos, strict=True):
        if event in frames:
            targets = _times_to((block, frames), [event])[:, 0]  # (N,)
            missed = targets - (block @ weights[:-1] + weights[-1])
            row[:] = len(block), targets.sum(), np.square(targets).sum(), np.square(missed).sum()
    return Sums(*rows.T)
