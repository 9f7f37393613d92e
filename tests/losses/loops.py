"""The losses once more, straight from the papers: one frame at a time, float64, no batching.

Each video is a numpy array (T, D).
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SimilarityOf = Callable[[Array, Array], float]
FrameError = Callable[[Array, Array, int], float]  # logits of one walk (T,), times (T,), its start frame


def softmax(logits: Array) -> Array:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def minus_squared_distance(a: Array, b: Array) -> float:
    return float(-np.sum((a - b) ** 2))


def cosine(a: Array, b: Array) -> float:
    return float(a @ b / math.sqrt(a @ a) / math.sqrt(b @ b))


def walk(
    path: Sequence[Array], i: int, scale: float, similarity: SimilarityOf = minus_squared_distance
) -> Array:
    """Logits (T,) of landing on each frame of `path[0]`, from its frame `i` by way of the rest of `path`.

    `scale` divides the similarity.
    """
    here = path[0][i]
    for video in path[1:]:
        alpha = softmax(np.array([similarity(here, other) / scale for other in video]))
        here = sum(weight * other for weight, other in zip(alpha, video, strict=True))
    return np.array([similarity(here, frame) / scale for frame in path[0]])


def moments(logits: Array, times: Array) -> tuple[float, float]:
    beta = softmax(logits)
    mean = sum(b * t for b, t in zip(beta, times, strict=True))
    variance = sum(b * (t - mean) ** 2 for b, t in zip(beta, times, strict=True))
    return float(mean), float(variance)


def regression(logits: Array, times: Array, i: int, log_power: int = 2) -> float:
    """`log_power` 2 prices log sigma^2, 1 prices log sigma."""
    mean, variance = moments(logits, times)
    return (times[i] - mean) ** 2 / variance + 1e-3 * math.log(math.sqrt(variance) ** log_power)


def mse(logits: Array, times: Array, i: int) -> float:
    return (times[i] - moments(logits, times)[0]) ** 2


def huber(logits: Array, times: Array, i: int, delta: float = 0.1) -> float:
    error = abs(times[i] - moments(logits, times)[0])
    return 0.5 * error**2 if error <= delta else delta * error - 0.5 * delta**2


def classification(logits: Array, times: Array, i: int, smoothing: float = 0.0) -> float:
    target = np.full(len(logits), smoothing / len(logits))
    target[i] += 1 - smoothing
    return float(-sum(y * math.log(p) for y, p in zip(target, softmax(logits), strict=True)))


def frame_errors(
    videos: Sequence[Array], times: Sequence[Array], error: FrameError, scale: float
) -> Iterator[float]:
    for a, u in enumerate(videos):
        for b, v in enumerate(videos):
            if a != b:
                for i in range(len(u)):
                    yield error(walk([u, v], i, scale), times[a], i)


def tcc_loop(videos: Sequence[Array], times: Sequence[Array], error: FrameError, scale: float) -> float:
    """Mean of `error` over every frame of every ordered pair of different videos."""
    return float(np.mean(list(frame_errors(videos, times, error, scale))))


def cycles_loop(
    videos: Sequence[Array],
    times: Sequence[Array],
    cycles: Sequence[tuple[Sequence[int], int]],
    error: FrameError,
    scale: float,
    similarity: SimilarityOf = minus_squared_distance,
) -> float:
    """Mean of `error` over cycles, each the videos it visits and its start frame in the first of them."""
    walks = [(walk([videos[v] for v in path], i, scale, similarity), path[0], i) for path, i in cycles]
    return float(np.mean([error(logits, times[first], i) for logits, first, i in walks]))


def tcn_loop(anchors: Sequence[Array], positives: Sequence[Array], l2_weight: float = 0.002) -> float:
    """N-pairs loss and price on the norms of each video; mean over videos."""
    per_video = []
    for a, p in zip(anchors, positives, strict=True):
        entropies = [-math.log(softmax(np.array([row @ other for other in p]))[i]) for i, row in enumerate(a)]
        norms = np.mean([row @ row for row in a]) + np.mean([row @ row for row in p])
        per_video.append(np.mean(entropies) + 0.25 * l2_weight * norms)
    return float(np.mean(per_video))


def sal_loop(
    videos: Sequence[Array],
    triplets: Sequence[Sequence[Sequence[int]]],
    shuffled: Sequence[Sequence[int]],
    layers: Sequence[tuple[Array, Array]],
) -> float:
    """Mean cross-entropy of the classifier, `layers` with ReLU between, on each triplet of each video."""
    entropies = []
    for video, of_video, labels in zip(videos, triplets, shuffled, strict=True):
        for frames, label in zip(of_video, labels, strict=True):
            signal = np.concatenate([video[frame] for frame in frames])
            for weight, bias in layers[:-1]:
                signal = np.maximum(weight @ signal + bias, 0)
            weight, bias = layers[-1]
            entropies.append(-math.log(softmax(weight @ signal + bias)[label]))
    return float(np.mean(entropies))


def supervised_loop(
    videos: Sequence[Array], phases: Sequence[Sequence[int]], weight: Array, bias: Array, smoothing: float
) -> float:
    """Mean cross-entropy over the frames whose phase is not -1."""
    errors = [
        classification(weight @ frame + bias, bias, phase, smoothing)
        for video, labels in zip(videos, phases, strict=True)
        for frame, phase in zip(video, labels, strict=True)
        if phase != -1
    ]
    return float(np.mean(errors))


def order_loop(videos: Sequence[Array], times: Sequence[Array], temperature: float = 0.1) -> float:
    """Minus the correlation of times and matched times, where it is negative; mean over ordered pairs."""
    costs = []
    for i, u in enumerate(videos):
        for j, v in enumerate(videos):
            if i == j:
                continue
            matched = []
            for row in u:
                distances = np.array([(row - other) @ (row - other) for other in v])
                matched.append(softmax(-distances / (temperature * len(row))) @ times[j])
            costs.append(max(0.0, -np.corrcoef(times[i], matched)[0, 1]))
    return float(np.mean(costs))
