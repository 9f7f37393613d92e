"""Which frame of one video goes with each frame of another.

Shapes: T frames of video a, S frames of video b, D embedding size, L steps of a path.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment.band import slanted
from cycleback.alignment.confidence import frame_confidence, match_confidence
from cycleback.alignment.distances import matched_squared, pairwise_squared
from cycleback.alignment.dtw import dtw_indices
from cycleback.alignment.ends import FREE, Ends, default_skip_cost, fixed_ends, free_ends
from cycleback.alignment.inputs import Floats, Indices, as_pair
from cycleback.alignment.nearest import nearest_rows
from cycleback.alignment.warp import WHOLE_CELLS, warp_cost, warp_long

Method = Literal["nearest", "dtw", "subsequence", "open_end", "overlap"]
SURE = 0.5


@dataclass(frozen=True, eq=False)  # arrays have no single truth value to compare by
class Alignment:
    """A frame of b for each frame of a, and how sure it is.

    Attributes:
        indices: (T,), frame of b that goes with each frame of a. Frames left out take the match of the first
            or last frame that was not, so that the whole can still be played.
        confidence: (T,) in [0, 1], see `cycleback.alignment.confidence`; 0 for frames left out.
        distances: (T,), squared L2 distance between each frame and its match.
        method: How the matches were found.
        matched: (T,), False for frames left out: with free ends, those before and after the path.
        path: (L, 2), every pair the warping path visits; None for "nearest".
    """

    indices: Indices
    confidence: Floats
    distances: Floats
    method: Method
    matched: NDArray[np.bool_]
    path: Indices | None = None

    @property
    def abstain(self) -> NDArray[np.bool_]:
        """(T,), True where it is better to say nothing: no match, or one more likely wrong than right."""
        unsure: NDArray[np.bool_] = self.confidence < SURE
        return ~self.matched | unsure


def align(
    a: ArrayLike,
    b: ArrayLike,
    *,
    method: Method = "dtw",
    center: bool = False,
    band: float | None = None,
    skip_cost: float | None = None,
) -> Alignment:
    """Match every frame of `a` (T, D) with a frame of `b` (S, D).

    Above 25 million pairs of frames (T x S) no matrix of all distances is made: "nearest" goes block by
    block, with the same result; warping goes coarse to fine (`cycleback.alignment.warp`), which is no longer
    exact; and the confidence compares with 2,048 frames of each video, evenly spread.

    Args:
        a: Embeddings (T, D) of the video whose frames are matched.
        b: Embeddings (S, D) of the video they are matched to, by the same encoder.
        method: "nearest" takes the nearest frame wherever. All others warp: they never run backwards.
            "dtw" matches both first and both last frames, as synchronous playback needs.
            "subsequence" finds all of a somewhere in b: b may begin earlier and end later.
            "open_end" starts both together, and leaves out the end of either where they part.
            "overlap" leaves out what comes before and after the part both show.
        center: Take each video's mean embedding out first. What all its frames share (scene, person, camera)
            says nothing about time, but embeddings not trained for alignment are full of it. Not for videos
            that overlap in part: their means differ for another reason.
        band: For "dtw": how far it may stray from constant speed, to either side, as a share of S.
        skip_cost: For the free ends: squared distance above which a frame is better left out than matched;
            by default from the distances, see `cycleback.alignment.ends`.
    """
    _check(method, band=band, skip_cost=skip_cost)
    rows, others = as_pair(a, b)
    if center:
        rows, others = rows - rows.mean(axis=0), others - others.mean(axis=0)
    if len(rows) * len(others) > WHOLE_CELLS:
        return _align_long(rows, others, method=method, band=band, skip_cost=skip_cost)
    distances = pairwise_squared(rows, others)  # (T, S)
    if method == "nearest":
        path, indices = None, distances.argmin(axis=1)
    else:
        allowed = None if band is None else slanted(*distances.shape, width=band)
        ends = _ends(rows, others, method=method, skip_cost=skip_cost)
        path, _ = warp_cost(distances, ends=ends, band=allowed)
        indices = dtw_indices(path, num_frames=len(rows))
    confidence = match_confidence(distances, indices)
    return _alignment(rows, others, indices, confidence, path=path, method=method)


def _check(method: str, *, band: float | None, skip_cost: float | None) -> None:
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {', '.join(map(repr, get_args(Method)))}, got {method!r}")
    if band is not None and method != "dtw":
        raise ValueError(f"a band is for method 'dtw' only, got band {band} with {method!r}")
    if skip_cost is not None and method not in FREE:
        raise ValueError(
            f"skip_cost is for {', '.join(map(repr, FREE))} only, got {skip_cost} with {method!r}"
        )
    if skip_cost is not None and not 0 <= skip_cost < np.inf:
        raise ValueError(f"skip_cost must be a finite number, 0 or more, got {skip_cost}")


def _ends(a: Floats, b: Floats, *, method: Method, skip_cost: float | None) -> Ends:
    if method not in FREE:
        return fixed_ends(len(a), len(b))
    price = default_skip_cost(a, b) if skip_cost is None else skip_cost
    return free_ends(len(a), len(b), free=FREE[method], skip_cost=price)


def _align_long(
    a: Floats, b: Floats, *, method: Method, band: float | None, skip_cost: float | None
) -> Alignment:
    if method == "nearest":
        path, indices = None, nearest_rows(a, b)
    else:
        path, _ = warp_long(
            a, b, ends_of=lambda x, y: _ends(x, y, method=method, skip_cost=skip_cost), width=band
        )
        indices = dtw_indices(path, num_frames=len(a))
    return _alignment(a, b, indices, frame_confidence(a, b, indices), path=path, method=method)


def _alignment(
    a: Floats, b: Floats, indices: Indices, confidence: Floats, *, path: Indices | None, method: Method
) -> Alignment:
    matched = np.ones(len(a), dtype=bool)
    if path is not None:
        matched[: path[0, 0]] = matched[path[-1, 0] + 1 :] = False
    return Alignment(
        indices=indices,
        confidence=np.where(matched, confidence, 0.0),
        distances=matched_squared(a, b, indices),
        method=method,
        matched=matched,
        path=path,
    )
