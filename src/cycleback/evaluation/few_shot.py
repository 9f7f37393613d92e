"""Few-shot phase classification: how far do the labels of a handful of videos reach (paper 5)?

Each episode draws k training videos without replacement, trains the protocol's classifier on all their frames
and tests it on the held-out frames. Logistic regression is on embeddings standardised by all training videos,
which takes no labels, and stops after 100 iterations.

Shapes: N frames of a video, D embedding size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cycleback.evaluation.classifiers import fit_classifier, standardised
from cycleback.evaluation.phases import LabelledFrames, pooled_frames
from cycleback.evaluation.protocol import Protocol, named_protocol

EPISODES = 50
MAX_ITERATIONS = 100


@dataclass(frozen=True)
class Episodes:
    """Accuracy of each episode, their mean, and their standard deviation."""

    accuracies: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean accuracy."""
        return float(np.mean(self.accuracies))

    @property
    def spread(self) -> float:
        """Standard deviation of single episodes."""
        return float(np.std(self.accuracies))


def few_shot_accuracy(
    train: Sequence[LabelledFrames],
    held_out: Sequence[LabelledFrames],
    *,
    videos: Sequence[int] | None = None,
    episodes: int = EPISODES,
    seed: int = 0,
    stride: int = 1,
    protocol: str | Protocol = "linear",
) -> Mapping[int, Episodes]:
    """Accuracy by number of labelled training videos, for those numbers that there are videos for.

    Args:
        train: (embeddings (N, D), phases (N,)) of the training videos.
        held_out: the same of the held-out videos.
        videos: numbers of training videos; by default those of the protocol.
        episodes: draws for each number.
        seed: of the draws.
        stride: test on every so many frames of the held-out videos only.
        protocol: names the classifier.
    """
    settings = named_protocol(protocol)
    numbers = settings.few_shot_videos if videos is None else tuple(videos)
    if episodes < 1 or stride < 1 or not numbers or min(numbers) < 1:
        got = f"{episodes} episodes, stride {stride}, {numbers} videos"
        raise ValueError(
            f"expected at least one episode, stride and number of videos of 1 or more, got {got}"
        )
    if not train or not held_out:
        raise ValueError(
            f"expected videos on both sides, got {len(train)} to learn from, {len(held_out)} held out"
        )
    shots = _Shots(train, [(block[::stride], phases[::stride]) for block, phases in held_out], settings)
    rng = np.random.default_rng(seed)
    found = {}
    for number in numbers:
        draws = [np.sort(rng.permutation(len(train))[:number]) for _ in range(episodes)]
        if number <= len(train):
            found[number] = Episodes(tuple(shots.accuracy(draw) for draw in draws))
    return found


class _Shots:
    """Training videos ready to be drawn from; the same draw is only learned once."""

    def __init__(
        self, train: Sequence[LabelledFrames], held_out: Sequence[LabelledFrames], settings: Protocol
    ) -> None:
        known, self.phases = pooled_frames(train)
        others, self.truth = pooled_frames(held_out)
        is_scaled = settings.classifier == "logistic"
        self.known, self.others = standardised(known, others) if is_scaled else (known, others)
        self.starts = np.cumsum([0, *(len(block) for block, _ in train)])
        self.classifier = settings.classifier
        self.done: dict[tuple[int, ...], float] = {}

    def accuracy(self, videos: NDArray[np.int64]) -> float:
        """Share of held-out frames whose phase is found from the labels of `videos`."""
        key = tuple(int(video) for video in videos)
        if key not in self.done:
            rows = np.concatenate([np.arange(self.starts[v], self.starts[v + 1]) for v in key])
            predict = fit_classifier(
                self.classifier, self.known[rows], self.phases[rows], max_iterations=MAX_ITERATIONS
            )
            self.done[key] = float((predict(self.others) == self.truth).mean())
        return self.done[key]
