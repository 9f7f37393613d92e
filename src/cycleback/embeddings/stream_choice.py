"""Choose without labels how much each stream of some videos counts, and which videos are mirrored.

Both choices compare videos by dynamic time warping. The *gain* of two videos (`cycleback.alignment.likeness`)
is about 0.07 for smooth noise, and 0.25 to 0.7 for a stream that shows the same action in both.

Shapes: N frames of a video, V size of its vectors.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment.distances import pairwise_squared, spread_items, thin
from cycleback.alignment.likeness import measure_gain, path_distance, trust_gain
from cycleback.models.streams import SCALES

Floats = NDArray[np.float32]
Sampled = NDArray[np.float64]  # evenly spread frames of a video

MAX_PAIRS = 24  # of videos that are compared to weigh streams
MAX_REFERENCES = 12  # videos with which each is compared to find mirrored ones
MAX_FRAMES = 256  # compared per video
MIN_ADVANTAGE = 0.03  # by which a mirrored video must be nearer, as a logarithm of distances
ROUNDS = 10  # at most, until the references agree on who is mirrored


def weigh_streams(videos: Sequence[Mapping[str, Floats]]) -> dict[str, float]:
    """Choose the weight of each stream for some videos.

    A stream that tells the moments of these videos apart, alike in all of them, keeps its usual scale. One
    whose frames match no better than by chance gets 0, and so does one that is silent, such as pose where no
    person is seen. A single video cannot be compared: its streams keep their scales unless they are silent.

    Args:
        videos: for each video its vectors (N, V) by stream.
    """
    weights: dict[str, float] = {}
    for stream in videos[0] if videos else ():
        heard = [_sample(video[stream]) for video in videos if video[stream].any()]
        if 2 * len(heard) < len(videos):
            weights[stream] = 0.0
            continue
        gains = [measure_gain(pairwise_squared(heard[u], heard[v])) for u, v in _choose_pairs(len(heard))]
        share = trust_gain(float(np.mean(gains))) if gains else 1.0
        weights[stream] = round(share * SCALES[stream], 3)
    if not any(weights.values()):  # nothing stands out: what is heard at all must do
        return {stream: SCALES[stream] if _is_heard(videos, stream) else 0.0 for stream in weights}
    return weights


def _is_heard(videos: Sequence[Mapping[str, Floats]], stream: str) -> bool:
    return any(video[stream].any() for video in videos)


def _choose_pairs(count: int) -> list[tuple[int, int]]:
    """Return at most MAX_PAIRS pairs that spread over `count` videos."""
    pairs = [(u, (u + step) % count) for step in range(1, count // 2 + 1) for u in range(count)]
    unique = list({tuple(sorted(pair)): pair for pair in pairs}.values())
    return spread_items(unique, MAX_PAIRS)


def _sample(vectors: Floats) -> Sampled:
    """Return at most MAX_FRAMES frames of a video (N, V), as precise as distances need."""
    return thin(vectors.astype(np.float64), MAX_FRAMES)


def find_mirrored(
    videos: Sequence[tuple[Floats, Floats]], *, references: Iterable[Floats] | None = None
) -> list[bool]:
    """Return which videos show the action mirrored, such as a left-handed player among right-handed ones.

    Each video is compared with some others as it is and mirrored. Without `references`, the videos agree
    among themselves, and the larger part counts as not mirrored; of equal parts, that of the first video.

    Args:
        videos: vectors (N, V) of each video, and those of the mirrored video; they are asked for one by one.
        references: vectors (N, V) of videos that are oriented already; the first few count.
    """
    if references is not None:
        known = [_sample(reference) for reference in islice(references, MAX_REFERENCES)]
        pairs = (tuple(map(_sample, videos[u])) for u in range(len(videos)))
        sums = [sum(_advantage(reference, *pair) for reference in known) for pair in pairs]
        return [advantage > MIN_ADVANTAGE * len(known) for advantage in sums]
    chosen = spread_items(range(len(videos)), MAX_REFERENCES)
    compared = {v: _sample(videos[v][0]) for v in chosen}
    table = np.zeros((len(videos), len(chosen)))  # above 0: nearer to that reference when mirrored
    for u in range(len(videos)):
        plain, turned = map(_sample, videos[u])
        table[u] = [0.0 if u == v else _advantage(compared[v], plain, turned) for v in chosen]
    signs = np.ones(len(chosen))
    for _ in range(ROUNDS):
        before = signs.copy()
        for place in [*range(1, len(chosen)), 0]:  # one by one: two that turn at once stay opposite for ever
            vote = table[chosen[place]] @ signs
            signs[place] = -1.0 if vote > MIN_ADVANTAGE * len(chosen) else 1.0
        if (before == signs).all():
            break
    is_mirrored = table @ signs > MIN_ADVANTAGE * len(chosen)
    others = len(videos) - is_mirrored.sum()
    is_larger = is_mirrored.sum() > others or (is_mirrored.sum() == others and is_mirrored[0])
    return (~is_mirrored if is_larger else is_mirrored).tolist()  # type: ignore[no-any-return]


def _advantage(reference: Sampled, plain: Sampled, turned: Sampled) -> float:
    """Return by how much a video is nearer to `reference` when mirrored, as a logarithm of distances."""
    near, far = (path_distance(pairwise_squared(reference, vectors)) for vectors in (turned, plain))
    return float(np.log(far + 1e-9) - np.log(near + 1e-9))
