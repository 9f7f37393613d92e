"""Typical trajectories: what good takes of an action have in common, and how far a new take is from it.

A take is aligned with each good take (dynamic time warping, so order counts: what is usual at the start is
unusual in the middle). Its distance at a frame is the mean squared distance to the matched frame of the
NEAREST good takes. Some moments always differ more than others, so this is divided by the distance that is
typical of the moment. How good takes score against each other, each left out in turn, says what is normal:

    score    0: as far as good takes are from each other. 1: one standard deviation further.

Embeddings trained for alignment keep what tells moments apart, and forget much else. Several encoders may
look at the same takes: each is a view, and a frame is as odd as it is in the view where it is oddest.

Shapes: N frames of a take, D embedding size, K good takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment import dtw_path, match_frames, squared_distances
from cycleback.applications.anomalies import AnomalyScores
from cycleback.applications.spans import Floats, running_mean
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError

NEAREST = 3  # good takes a frame is compared with: no single one has to be like it
FEWEST_TAKES = 5
MOMENTS = 20  # parts of the action with a typical distance of their own
OWN_SHARE = 0.5  # of a moment in its typical distance; the rest is the action's: few takes say little
SMOOTHING = 5  # frames


@dataclass(frozen=True, eq=False)
class Comparison:
    """A take beside all good takes.

    Attributes:
        distances: (N,), mean squared distance to the nearest good takes.
        progress: (N,) in [0, 1], where in the action each frame is: the median over good takes.
        matches: (N, 2), the good take that is nearest at each frame, and its frame.
    """

    distances: Floats
    progress: Floats
    matches: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class View:
    """The good takes as one encoder sees them.

    Attributes:
        takes: K arrays (N, D).
        typical: (MOMENTS,), distance of a good take from the others at each moment.
        spread: standard deviation of distance / typical over all frames of good takes.
    """

    takes: tuple[NDArray[np.float32], ...]
    typical: Floats
    spread: float

    def score(self, found: Comparison) -> Floats:
        """Scores (N,) of a comparison, not yet smoothed."""
        expected = np.interp(found.progress, _centres(), self.typical)
        return (found.distances / expected - 1) / self.spread


@dataclass(frozen=True, eq=False)
class Typical:
    """What is typical of an action; made by `fit_typical`.

    Attributes:
        names: of the good takes.
        views: one an encoder.
        own_scores: K arrays (N,), the scores of each good take when it is left out.
    """

    names: tuple[str, ...]
    views: tuple[View, ...]
    own_scores: tuple[Floats, ...]

    def score(self, *embeddings: ArrayLike, false_alarms: float = 0.05) -> AnomalyScores:
        """Score a take.

        Args:
            embeddings: (N, D), once for every view, in the same order.
            false_alarms: share of the frames of good takes that may be flagged, and of good takes that may
                be called odd.
        """
        if len(embeddings) != len(self.views):
            raise ValueError(f"need embeddings for {len(self.views)} views, got {len(embeddings)}")
        takes = [np.asarray(array, dtype=np.float32) for array in embeddings]
        found = [_compare(take, view.takes) for take, view in zip(takes, self.views, strict=True)]
        each = [view.score(comparison) for view, comparison in zip(self.views, found, strict=True)]
        return AnomalyScores.calibrated(
            _oddest(each),
            self.own_scores,
            progress=found[0].progress,
            matches=found[0].matches,
            false_alarms=false_alarms,
        )


def fit_typical(*views: EmbeddingSet) -> Typical:
    """Learn what is typical from good takes.

    Args:
        views: embeddings of the same takes, at least FEWEST_TAKES, by one encoder or by several.
    """
    names = _checked_names(views)
    own: list[list[Floats]] = []
    fitted: list[View] = []
    for found in views:
        takes = tuple(np.array(found[name]) for name in names)
        left_out = [_compare(take, takes[:k] + takes[k + 1 :]) for k, take in enumerate(takes)]
        view = _fit_view(takes, left_out)
        fitted.append(view)
        own.append([view.score(comparison) for comparison in left_out])
    return Typical(names, tuple(fitted), tuple(_oddest(each) for each in zip(*own, strict=True)))


def _checked_names(views: Sequence[EmbeddingSet]) -> tuple[str, ...]:
    """The names all views share; enough takes, each with more than one frame."""
    names = views[0].names if views else ()
    if len(names) < FEWEST_TAKES:
        few = f"{len(names)} good take{'s' * (len(names) != 1)}"
        raise EmbeddingError(f"{few} cannot say what is typical: give at least {FEWEST_TAKES}")
    for view in views[1:]:
        if set(view.names) != set(names):
            raise EmbeddingError("all views must be of the same good takes: embed them again, together")
    return names


def _fit_view(takes: tuple[NDArray[np.float32], ...], left_out: Sequence[Comparison]) -> View:
    """Typical distance at each moment, a weighted mean over the frames near it, and the spread around it."""
    distances = np.concatenate([found.distances for found in left_out])
    progress = np.concatenate([found.progress for found in left_out])
    reach = 1.5 / MOMENTS
    weights = np.exp(-0.5 * ((progress - _centres()[:, None]) / reach) ** 2) + 1e-12  # (MOMENTS, sum N)
    own = (weights @ distances) / weights.sum(axis=1)
    mean = float(distances.mean())
    if mean <= 0:
        raise EmbeddingError("the good takes are all the same video: give different takes of the action")
    typical = OWN_SHARE * own + (1 - OWN_SHARE) * mean
    ratios = distances / np.interp(progress, _centres(), typical)
    return View(takes, typical, max(float(ratios.std()), 1e-6))


def _compare(take: NDArray[np.float32], others: Sequence[NDArray[np.float32]]) -> Comparison:
    """A take (N, D) beside each of `others`."""
    if take.ndim != 2 or len(take) < 2:
        raise EmbeddingError(
            f"a take needs at least 2 frames to be compared, got {len(take) if take.ndim else 0}"
        )
    if take.shape[1] != others[0].shape[1]:
        sizes = f"{take.shape[1]}, the good takes {others[0].shape[1]}"
        raise EmbeddingError(f"the take has embeddings of size {sizes}: embed all with the same encoder")
    along = [_along_path(take, other) for other in others]
    distances = np.array([distance for distance, _ in along])  # (K, N)
    indices = np.array([index for _, index in along])
    ends = np.array([max(len(other) - 1, 1) for other in others])
    nearest = distances.argmin(axis=0)  # (N,)
    return Comparison(
        distances=np.sort(distances, axis=0)[:NEAREST].mean(axis=0),
        progress=np.median(indices / ends[:, None], axis=0),
        matches=np.stack([nearest, indices[nearest, np.arange(len(take))]], axis=1),
    )


def _along_path(take: NDArray[np.float32], other: NDArray[np.float32]) -> tuple[Floats, NDArray[np.int64]]:
    """For each frame of `take`: least distance to the frames the path pairs it with, and their middle."""
    cost = squared_distances(take, other)
    path = dtw_path(cost)
    least = np.full(len(take), np.inf)
    np.minimum.at(least, path[:, 0], cost[path[:, 0], path[:, 1]])
    return least, match_frames(path)


def _oddest(views: Sequence[Floats]) -> Floats:
    """The largest score (N,) of all views, smoothed over time."""
    return running_mean(np.max(views, axis=0), window=SMOOTHING)


def _centres() -> Floats:
    """Progress (MOMENTS,) at the middle of each moment."""
    return (np.arange(MOMENTS) + 0.5) / MOMENTS
