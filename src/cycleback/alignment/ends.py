"""Where a warping path may begin and end, and what it pays for the frames it leaves out.

With fixed ends a path costs the sum of its cells. With free ends that would favour the shortest path, and one
cell would win. So every frame pays, of a and of b alike: one on the path pays the distance to its partner,
one left out pays the skip cost,

    price = sum over path of w c(i, j)  +  skip_cost x (frames of a and of b before and after the path)

where a step in both videos has w = 2, one frame of each, and a step in one alone w = 1. The weights then add
up to the number of frames whatever the path, and it is worth going on exactly where c < skip_cost.

By default the skip cost lies between the distance of a good match and that of any two frames,

    skip_cost = near + 0.25 (typical - near)

with near the median distance of a frame, of either video, to the nearest frame of the other, and typical the
median of all distances.

Shapes: T frames of video a, S frames of video b, D embedding size.
"""

from typing import NamedTuple

import numpy as np

from cycleback.alignment.distances import pairwise_squared
from cycleback.alignment.inputs import Floats, thinned

SAMPLED_FRAMES = 1024  # of each video: more do not move a median


class FreeEnds(NamedTuple):
    """Which stretches may be left out."""

    lead_in_a: bool = False
    lead_in_b: bool = False
    tail_a: bool = False
    tail_b: bool = False


FREE = {
    "subsequence": FreeEnds(lead_in_b=True, tail_b=True),
    "open_end": FreeEnds(tail_a=True, tail_b=True),
    "overlap": FreeEnds(lead_in_a=True, lead_in_b=True, tail_a=True, tail_b=True),
}


class Ends(NamedTuple):
    """Prices of beginning and of ending at each frame; inf where a path may not."""

    enter_a: Floats  # (T,)
    enter_b: Floats  # (S,)
    leave_a: Floats  # (T,)
    leave_b: Floats  # (S,)
    again: float  # 1 where a step in both videos pays its cell twice


def fixed_ends(num_rows: int, num_columns: int) -> Ends:
    """From both first frames to both last frames."""
    a, b = _prices(num_rows, np.inf), _prices(num_columns, np.inf)
    return Ends(a, b, a[::-1].copy(), b[::-1].copy(), 0.0)


def free_ends(num_rows: int, num_columns: int, *, free: FreeEnds, skip_cost: float) -> Ends:
    """Each frame before or after the path pays `skip_cost`, where it may be left out at all."""
    lead_a, lead_b, tail_a, tail_b = (skip_cost if may else np.inf for may in free)
    return Ends(
        _prices(num_rows, lead_a),
        _prices(num_columns, lead_b),
        _prices(num_rows, tail_a)[::-1].copy(),
        _prices(num_columns, tail_b)[::-1].copy(),
        1.0,
    )


def default_skip_cost(a: Floats, b: Floats) -> float:
    """The skip cost above, for embeddings `a` (T, D) and `b` (S, D); long videos are sampled evenly."""
    few_a, few_b = thinned(a, SAMPLED_FRAMES), thinned(b, SAMPLED_FRAMES)
    near_a, near_b = _nearest_distances(few_a, b), _nearest_distances(few_b, a)
    near = float(np.median(np.concatenate([near_a, near_b])))
    typical = float(np.median(pairwise_squared(few_a, few_b)))
    return near + 0.25 * max(0.0, typical - near)


def _prices(count: int, price: float) -> Floats:
    """0 for the first of `count` frames, and one more `price` for each after it."""
    return np.concatenate([[0.0], np.cumsum(np.full(count - 1, float(price)))])


def _nearest_distances(rows: Floats, others: Floats, *, chunk: int = 4096) -> Floats:
    """Distance of each row to the nearest of `others`, which are taken a chunk at a time."""
    starts = range(0, len(others), chunk)
    parts = [pairwise_squared(rows, others[i : i + chunk]).min(axis=1) for i in starts]
    nearest: Floats = np.min(parts, axis=0)
    return nearest
