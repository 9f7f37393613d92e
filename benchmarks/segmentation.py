"""Find key events with a phase classifier: the best split of a video into ordered phases.

A classifier of single frames knows neither the order of phases nor how long they last. Both are known from
the labelled videos, and help a lot to find moments. The events b_1 < ... < b_E maximise

    EVIDENCE sum_t log p(phase of frame t) - sum_k log((b_k+1 - b_k) / (tempo length_k))^2 / (2 SPREAD^2)

where length_k is the mean length of the phase between the events k and k + 1 in the labelled videos. The
time before the first event and after the last carries no information. Neighbouring frames repeat each other,
so each frame is weighted by EVIDENCE. The constants were chosen on training swings.

Shapes: N frames of a video, D embedding size, E key events, K = E + 1 phases.
"""

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cycleback.embeddings import EmbeddingSet

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Classifier = Callable[[NDArray[np.float32]], Floats]

EVIDENCE = 0.3
SPREAD = 0.25  # of the logarithm of a length: a quarter longer or shorter
STRENGTH = 0.03  # inverse weight of the penalty of logistic regression
NEVER = -20.0  # log probability of a phase that no labelled frame has


def best_split(log_probabilities: Floats, lengths: Floats | None = None) -> tuple[Indices, float]:
    """Frames (E,) of the events, each the first of a phase, and the score of this split.

    Args:
        log_probabilities: (N, K) of the phases of each frame, N >= E.
        lengths: (E - 1,), expected frames from each event to the next; None: any length is as good.
    """
    count = len(log_probabilities)
    steps = np.diff(
        EVIDENCE * log_probabilities, axis=1
    )  # (N, E), gain of a frame by being in the next phase
    gains = np.cumsum(steps[::-1], axis=0)[::-1]  # (N, E), gain of all frames from this on
    gaps = np.arange(count)[None, :] - np.arange(count)[:, None]  # (N, N), from row to column
    score, came_from = gains[:, 0], []
    for event in range(1, gains.shape[1]):
        price = _prices(count, None if lengths is None else float(lengths[event - 1]))
        reached = score[:, None] - price[np.maximum(gaps, 0)]  # (N, N), by the frame of the event before
        came_from.append(reached.argmax(axis=0))
        score = reached.max(axis=0) + gains[:, event]
    frames = [int(score.argmax())]
    for back in reversed(came_from):
        frames.append(int(back[frames[-1]]))
    return np.array(frames[::-1]), float(score.max())


def _prices(count: int, length: float | None) -> Floats:
    """What a phase of 0, 1, ... `count` - 1 frames costs; none has 0 frames."""
    frames = np.arange(1, count)
    price = np.zeros(count - 1) if length is None else (np.log(frames / length) / SPREAD) ** 2 / 2
    return np.concatenate([[np.inf], price])


def mean_lengths(embeddings: EmbeddingSet, labelled: Sequence[str]) -> Floats:
    """Frames (E - 1,) from each event to the next in the labelled videos; the mean of the logarithms."""
    frames = [[embeddings.events(name)[event] for event in embeddings.event_names] for name in labelled]
    lengths: Floats = np.exp(np.log(np.maximum(np.diff(frames, axis=1), 1)).mean(axis=0))
    return lengths


def phase_classifier(embeddings: EmbeddingSet, labelled: Sequence[str], seen: Sequence[str]) -> Classifier:
    """Logistic regression: embeddings (N, D) -> log probabilities (N, K).

    Args:
        embeddings: of all videos.
        labelled: the videos to learn from; each phase counts the same, however long.
        seen: videos whose frames, without their labels, say how to scale embeddings.
    """
    from sklearn.linear_model import LogisticRegression

    frames = np.concatenate([embeddings[name] for name in seen]).astype(np.float64)
    mean, scale = frames.mean(axis=0), frames.std(axis=0) + 1e-9
    rows = (np.concatenate([embeddings[name] for name in labelled]) - mean) / scale
    phases = np.concatenate([embeddings.phases(name) for name in labelled])
    model = LogisticRegression(C=STRENGTH, class_weight="balanced", max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not settled after so many rounds
        model.fit(rows, phases)

    def classify(block: NDArray[np.float32]) -> Floats:
        found = np.full((len(block), len(embeddings.event_names) + 1), NEVER)
        found[:, model.classes_] = np.maximum(model.predict_log_proba((block - mean) / scale), NEVER)
        return found

    return classify


def find_events(log_probabilities: Floats, lengths: Floats, *, tempos: Sequence[float] = (1.0,)) -> Indices:
    """Frames (E,) of the events in a video that may play slower by one of `tempos`, whichever fits best."""
    splits = [best_split(log_probabilities, lengths * tempo) for tempo in tempos]
    return max(splits, key=lambda split: split[1])[0]
