"""Hard cycles: follow nearest neighbours to other videos and back, and see who comes home (paper 3.1).

The share of frames that do is a score that needs no labels. Collapsed embeddings score low, since all frames
land on the first; but so do frames that hold still, so compare it between encoders on the same videos.

Shapes: N frames of a video, T of video a, S of video b, D embedding size; V videos with M frames in all.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from cycleback.alignment.distances import pairwise_squared
from cycleback.alignment.inputs import Floats, Indices, as_pair, as_videos


def cycle_back(a: ArrayLike, b: ArrayLike) -> Indices:
    """Frame of `a` (T, D) that each of its frames lands on (T,), by way of its neighbour in `b` (S, D).

    Frame i is cycle-consistent if it lands on i. Of equally near frames the first is taken.
    """
    distances = pairwise_squared(*as_pair(a, b))  # (T, S)
    landing: Indices = distances.argmin(axis=0)[distances.argmin(axis=1)]
    return landing


def cycle_consistency_rate(
    embeddings: Sequence[ArrayLike], *, tolerance: int = 1, three_way: bool = False
) -> float:
    """Share of frames that land within `tolerance` of their start, over all ordered pairs of videos.

    Args:
        embeddings: (N, D) for each video, at least two; N may differ.
        tolerance: Frames by which a landing may miss. 0 is the paper's definition.
        three_way: Walk through two other videos instead, U -> V -> W -> U and U -> W -> V -> U; a frame
            counts only if both walks come home. Needs three videos.

    Returns:
        In [0, 1]; every frame of every pair (or triple) counts the same.
    """
    if tolerance < 0:
        raise ValueError(f"tolerance must not be negative, got {tolerance}")
    needed = 3 if three_way else 2
    if len(embeddings) < needed:
        raise ValueError(f"cycles need at least {needed} videos, got {len(embeddings)}")
    videos = as_videos(embeddings, at_least=needed)
    nearest, starts = _nearest_table(videos), np.cumsum([0, *map(len, videos)])
    walks = _three_way_errors if three_way else _two_way_errors
    home = total = 0
    for errors in walks(nearest, starts):
        home += int(np.count_nonzero(errors <= tolerance))
        total += errors.size
    return home / total


def backward_rate(embeddings: Sequence[ArrayLike]) -> float:
    """Share of ordered pairs of videos that are matched backwards: later frames have earlier neighbours.

    Cycles come home all the same, so the rate above cannot tell. Chance is about a half.

    Args:
        embeddings: (N, D) for each video, at least two; N may differ.
    """
    videos = as_videos(embeddings, at_least=2)
    nearest, starts = _nearest_table(videos), np.cumsum([0, *map(len, videos)])
    backwards = 0
    for u, video in enumerate(videos):
        others = np.delete(nearest[:, starts[u] : starts[u + 1]], u, axis=0)  # (V - 1, N)
        times = np.arange(len(video)) - (len(video) - 1) / 2
        backwards += int(np.count_nonzero(others @ times < 0))
    return backwards / (len(videos) * (len(videos) - 1))


def _nearest_table(videos: Sequence[Floats]) -> Indices:
    """Table (V, M): for each frame of all videos laid end to end, its nearest frame in each video.

    Both sides and entries count over all videos, so a walk is a chain of look-ups. One distance matrix serves
    both directions of a pair.
    """
    starts = np.cumsum([0, *map(len, videos)])
    table = np.tile(np.arange(starts[-1]), (len(videos), 1))
    for i in range(len(videos)):
        for j in range(i):
            distances = pairwise_squared(videos[i], videos[j])
            table[j, starts[i] : starts[i + 1]] = starts[j] + distances.argmin(axis=1)
            table[i, starts[j] : starts[j + 1]] = starts[i] + distances.argmin(axis=0)
    return table


def _two_way_errors(nearest: Indices, starts: Indices) -> Iterator[Indices]:
    """For each video U, by how many frames U -> V -> U misses: (V - 1, N)."""
    for u in range(len(nearest)):
        frames = np.arange(starts[u], starts[u + 1])  # (N,)
        others = np.delete(nearest[:, frames], u, axis=0)  # (V - 1, N)
        yield np.abs(nearest[u][others] - frames)


def _three_way_errors(nearest: Indices, starts: Indices) -> Iterator[Indices]:
    """For each U and V, the larger miss of U -> V -> W -> U and U -> W -> V -> U over all W: (V - 2, N)."""
    for u in range(len(nearest)):
        frames = np.arange(starts[u], starts[u + 1])  # (N,)
        for v in range(len(nearest)):
            if v != u:
                forth = nearest[u][nearest[:, nearest[v, frames]]]  # (V, N), u -> v -> w -> u
                back = nearest[u][nearest[v][nearest[:, frames]]]  # (V, N), u -> w -> v -> u
                errors = np.maximum(np.abs(forth - frames), np.abs(back - frames))
                yield np.delete(errors, (u, v), axis=0)
