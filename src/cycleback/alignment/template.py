"""Several videos on one clock: each is warped to a template, so all agree with one another.

Aligning every pair by itself gives answers that contradict: u to v to w is not u to w. Through a template
they cannot. It begins as the medoid, the video with the least total DTW cost to the others (each cost over
the number of frames of the pair, so that long videos do not always lose). Then it becomes a DTW barycentre
(Petitjean et al., 2011): each of its K frames is replaced by the mean of all frames warped to it, a few
times. No such round makes the total cost of the videos to the template larger: the mean is nearest to the
frames it stands for, and new paths are no dearer than the old.

Shapes: V videos, N frames of a video, D embedding size, K ticks of the clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cycleback.alignment.batch import warp_to_many
from cycleback.alignment.dtw import dtw_indices
from cycleback.alignment.ends import fixed_ends
from cycleback.alignment.inputs import Floats, Indices, as_videos, thinned
from cycleback.alignment.warp import WHOLE_CELLS, Warp, warp_long

MEDOID_FRAMES = 512  # a video of which more are too many to compare with all others


@dataclass(frozen=True, eq=False)  # arrays have no single truth value to compare by
class MultiAlignment:
    """V videos on one clock of K ticks.

    Attributes:
        template: (K, D), the mean trajectory.
        indices: (V, K), frame of each video at each tick; never runs backwards.
        ticks: For each video (N,): the tick of each of its frames; never runs backwards.
        medoid: The video the template began as.
        costs: Total DTW cost of all videos to the template, before each round and after the last.
    """

    template: Floats
    indices: Indices
    ticks: tuple[Indices, ...]
    medoid: int
    costs: tuple[float, ...]

    def between(self, u: int, v: int) -> Indices:
        """Frame of video v for each frame of video u (N,), by the clock."""
        frames: Indices = self.indices[v, self.ticks[u]]
        return frames


def align_many(
    embeddings: Sequence[ArrayLike], *, iterations: int = 3, center: bool = False
) -> MultiAlignment:
    """Put all videos on one clock.

    Args:
        embeddings: (N, D) for each video, at least two; N may differ.
        iterations: Rounds of averaging; 0 keeps the medoid itself as the template.
        center: Take each video's mean embedding out first, see `cycleback.alignment.align`.
    """
    if iterations < 0:
        raise ValueError(f"iterations must not be negative, got {iterations}")
    videos = as_videos(embeddings, at_least=2)
    if center:
        videos = [video - video.mean(axis=0) for video in videos]
    medoid = _medoid([thinned(video, MEDOID_FRAMES) for video in videos])
    template, costs = videos[medoid], []
    for _ in range(iterations):
        warps = _warps(template, videos)
        costs.append(sum(cost for _, cost in warps))
        template = _barycentre(warps, videos)
    warps = _warps(template, videos)
    costs.append(sum(cost for _, cost in warps))
    return MultiAlignment(
        template=template,
        indices=np.stack([dtw_indices(path) for path, _ in warps]),
        ticks=tuple(dtw_indices(path[:, ::-1]) for path, _ in warps),
        medoid=medoid,
        costs=tuple(costs),
    )


def _medoid(videos: Sequence[Floats]) -> int:
    """The video with the least total cost to all others, of equals the first."""
    costs = np.zeros((len(videos), len(videos)))
    for u in range(1, len(videos)):
        warps = warp_to_many(videos[u], videos[:u])
        lengths = [len(videos[u]) + len(other) for other in videos[:u]]
        costs[u, :u] = [cost / length for (_, cost), length in zip(warps, lengths, strict=True)]
    return int((costs + costs.T).sum(axis=1).argmin())


def _warps(template: Floats, videos: Sequence[Floats]) -> list[Warp]:
    """Path and cost of the template with each video; long ones coarse to fine, as `align` does."""
    if len(template) * max(map(len, videos)) <= WHOLE_CELLS:
        return warp_to_many(template, videos)
    return [warp_long(template, video, ends_of=lambda a, b: fixed_ends(len(a), len(b))) for video in videos]


def _barycentre(warps: Sequence[Warp], videos: Sequence[Floats]) -> Floats:
    """Mean (K, D) of all frames warped to each tick."""
    num_ticks = int(warps[0][0][-1, 0]) + 1
    total, count = np.zeros((num_ticks, videos[0].shape[1])), np.zeros(num_ticks)
    for (path, _), video in zip(warps, videos, strict=True):
        starts = np.searchsorted(path[:, 0], np.arange(num_ticks))
        total += np.add.reduceat(video[path[:, 1]], starts, axis=0)
        count += np.bincount(path[:, 0], minlength=num_ticks)
    return total / count[:, None]
