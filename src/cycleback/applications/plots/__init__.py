"""Pictures of embeddings as PNG, SVG or PDF bytes, safe for colour-blind readers.

    draw_similarity   how near each frame of A is to each frame of B, and the path of the alignment
    draw_alignment    the same with the matches of an alignment
    draw_repetitions  how near the frames of one video are to each other, its repetitions and periods
    draw_occurrences  where a long recording shows an action, with pictures, and its cuts
    draw_map          a map of videos as trajectories, with frames around it
    draw_progress     how far through the action each video is, against its time; rewards
    draw_timing       the phases of takes as bars, with what is early or late
    draw_oddest       the video that differs most from good takes
    draw_evolution    loss and cycle-consistency rate over training

The command is `cycleback plot`.
"""

from cycleback.applications.plots.curves import draw_evolution, draw_oddest, draw_progress
from cycleback.applications.plots.figure import FORMATS, PHASE_COLOURS
from cycleback.applications.plots.maps import draw_map
from cycleback.applications.plots.occurrences import draw_occurrences
from cycleback.applications.plots.similarity import (
    draw_alignment,
    draw_repetitions,
    draw_similarity,
    shared_events,
)
from cycleback.applications.plots.timing import draw_timing

__all__ = [
    "FORMATS",
    "PHASE_COLOURS",
    "draw_alignment",
    "draw_evolution",
    "draw_map",
    "draw_occurrences",
    "draw_oddest",
    "draw_progress",
    "draw_repetitions",
    "draw_similarity",
    "draw_timing",
    "shared_events",
]
