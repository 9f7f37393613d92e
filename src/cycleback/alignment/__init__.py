"""Alignment of embedded videos: arrays in, arrays out.

    the paper                                            here
    3.1       nearest neighbours                         nearest_neighbors
    3.1       a point cycles back to itself              cycle_back, cycle_consistency_rate
    appendix  matching frames by dynamic time warping    dtw_path, dtw_to_many, match_frames
    both      one frame of b per frame of a              align
    --        videos that share only a part              align(method="subsequence", "open_end", "overlap")
    --        one video somewhere in a longer one        find_ends, find_part
    --        two cameras of one event                 fit_offset, fit_sound_offset
    --        pairs of frames set by hand                align(pins=[(12, 30)]), check_pins
    --        several videos on one clock                align_many
    --        directions in which videos agree           discriminant_axes
    --        confidence of each match                   estimate_confidence, ConfidenceCurve
    --        the same, fitted without labels            fit_without_labels
    --        evidence of one action, of reversal        measure_likeness, Likeness
    --        videos matched backwards in time           backward_share
    --        an hour of video in little memory          align chooses the way (warp.py)

Embeddings are anything numpy reads as (frames, embedding size). The soft, differentiable cycles of 3.2 and
3.3 are in `cycleback.losses`.
"""

from cycleback.alignment.align import Alignment, MultiAlignment, align, align_many
from cycleback.alignment.confidence import ConfidenceCurve, estimate_confidence, score_matches
from cycleback.alignment.cycles import backward_share, cycle_back, cycle_consistency_rate
from cycleback.alignment.discriminant import ALIGNED_AXES, discriminant_axes
from cycleback.alignment.distances import nearest_neighbors, squared_distances
from cycleback.alignment.dtw import dtw_path, match_frames
from cycleback.alignment.likeness import Likeness, measure_likeness
from cycleback.alignment.offset import Line, Offset, fit_offset
from cycleback.alignment.pins import check_pins
from cycleback.alignment.self_consistency import fit_without_labels
from cycleback.alignment.sound_offset import fit_sound_offset
from cycleback.alignment.subsequence import find_ends, find_part
from cycleback.alignment.warp import dtw_to_many

__all__ = [
    "ALIGNED_AXES",
    "Alignment",
    "ConfidenceCurve",
    "Likeness",
    "Line",
    "MultiAlignment",
    "Offset",
    "align",
    "align_many",
    "backward_share",
    "check_pins",
    "cycle_back",
    "cycle_consistency_rate",
    "discriminant_axes",
    "dtw_path",
    "dtw_to_many",
    "estimate_confidence",
    "find_ends",
    "find_part",
    "fit_offset",
    "fit_sound_offset",
    "fit_without_labels",
    "match_frames",
    "measure_likeness",
    "nearest_neighbors",
    "score_matches",
    "squared_distances",
]
