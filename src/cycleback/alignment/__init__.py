"""Alignment of embedded videos: arrays in, arrays out.

    the paper                                            here
    3.1       nearest neighbours                         nearest_neighbors
    3.1       a point cycles back to itself              cycle_back, cycle_consistency_rate
    appendix  matching frames by dynamic time warping    dtw_path, dtw_indices
    both      one frame of b for each frame of a         align
    --        how sure each match is                     match_confidence

Embeddings are whatever numpy reads as (frames, embedding size). The soft, differentiable cycles of 3.2 and
3.3 are in `cycleback.losses`.
"""

from cycleback.alignment.align import Alignment, align
from cycleback.alignment.confidence import match_confidence
from cycleback.alignment.cycles import cycle_back, cycle_consistency_rate
from cycleback.alignment.distances import squared_distances
from cycleback.alignment.dtw import accumulated_cost, dtw_indices, dtw_path
from cycleback.alignment.nearest import nearest_neighbors

__all__ = [
    "Alignment",
    "accumulated_cost",
    "align",
    "cycle_back",
    "cycle_consistency_rate",
    "dtw_indices",
    "dtw_path",
    "match_confidence",
    "nearest_neighbors",
    "squared_distances",
]
