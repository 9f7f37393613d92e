"""Which frame of one video goes with each frame of another.

Shapes: T frames of video a, S frames of video b, D embedding size, L steps of a path.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from cycleback.alignment.confidence import match_confidence
from cycleback.alignment.distances import pairwise_squared
from cycleback.alignment.dtw import dtw_indices, dtw_path
from cycleback.alignment.inputs import Floats, Indices, as_pair

Method = Literal["nearest", "dtw"]


@dataclass(frozen=True, eq=False)  # arrays have no single truth value to compare by
class Alignment:
    """A frame of b for each frame of a, and how sure it is.

    Attributes:
        indices: (T,), frame of b that goes with each frame of a.
        confidence: (T,) in [0, 1], see `cycleback.alignment.confidence`.
        distances: (T,), squared L2 distance between each frame and its match.
        method: How the matches were found, "nearest" or "dtw".
        path: (L, 2), every pair the warping path visits; None for "nearest".
    """

    indices: Indices
    confidence: Floats
    distances: Floats
    method: Method
    path: Indices | None = None


def align(a: ArrayLike, b: ArrayLike, *, method: Method = "dtw", center: bool = False) -> Alignment:
    """Match every frame of `a` (T, D) with a frame of `b` (S, D).

    Args:
        a: Embeddings (T, D) of the video whose frames are matched.
        b: Embeddings (S, D) of the video they are matched to, by the same encoder.
        method: "dtw" (dynamic time warping on squared distances) never runs backwards and matches both first
            and both last frames, as synchronous playback needs. "nearest" takes the nearest frame wherever.
        center: Take each video's mean embedding out first. What all its frames share (scene, person, camera)
            says nothing about time, but embeddings not trained for alignment are full of it.
    """
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {', '.join(map(repr, get_args(Method)))}, got {method!r}")
    rows, others = as_pair(a, b)
    if center:
        rows, others = rows - rows.mean(axis=0), others - others.mean(axis=0)
    distances = pairwise_squared(rows, others)  # (T, S)
    path = dtw_path(distances) if method == "dtw" else None
    indices = distances.argmin(axis=1) if path is None else dtw_indices(path)
    return Alignment(
        indices=indices,
        confidence=match_confidence(distances, indices),
        distances=distances[np.arange(len(indices)), indices],
        method=method,
        path=path,
    )
