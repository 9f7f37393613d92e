"""Alignment of embedded videos: arrays in, arrays out.

    the paper                                            here
    3.1       nearest neighbours                         nearest_neighbors
    3.1       a point cycles back to itself              cycle_back, cycle_consistency_rate
    appendix  matching frames by dynamic time warping    dtw_path, dtw_indices, dtw_to_many
    both      one frame of b for each frame of a         align
    --        videos that share only a part              align(method="subsequence", "open_end", "overlap")
    --        several videos on one clock                align_many
    --        how sure each match is                     match_confidence, Calibration
    --        an hour of video in little memory          align, by itself (warp.py)

Embeddings are whatever numpy reads as (frames, embedding size). The soft, differentiable cycles of 3.2 and
3.3 are in `cycleback.losses`.

    file             holds
    align.py         align: the methods, and when a video is long
    nearest.py       nearest neighbours, in blocks
    dtw.py           paths through matrices of costs, and one frame a frame from a path
    batch.py         one video against many
    warp.py          paths straight from embeddings, coarse to fine
    band.py          which cells a path may visit
    ends.py          where it may begin and end, and the price of a frame left out
    kernels.py       the recurrence, with numba and without
    template.py      align_many: medoid and DTW barycentre
    confidence.py    the score of a match; calibration.py: what share of such matches is right
    cycles.py        hard cycles
"""

from cycleback.alignment.align import Alignment, align
from cycleback.alignment.calibration import Calibration
from cycleback.alignment.confidence import match_confidence, match_score
from cycleback.alignment.cycles import backward_rate, cycle_back, cycle_consistency_rate
from cycleback.alignment.distances import squared_distances
from cycleback.alignment.dtw import accumulated_cost, dtw_indices, dtw_path, dtw_to_many
from cycleback.alignment.nearest import nearest_neighbors
from cycleback.alignment.template import MultiAlignment, align_many

__all__ = [
    "Alignment",
    "Calibration",
    "MultiAlignment",
    "accumulated_cost",
    "align",
    "align_many",
    "backward_rate",
    "cycle_back",
    "cycle_consistency_rate",
    "dtw_indices",
    "dtw_path",
    "dtw_to_many",
    "match_confidence",
    "match_score",
    "nearest_neighbors",
    "squared_distances",
]
