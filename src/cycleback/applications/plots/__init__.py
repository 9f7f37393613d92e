"""Pictures of embeddings for papers and pages: PNG, SVG or PDF bytes, colour-blind safe.

    similarity_picture   how near each frame of A is to each frame of B, and the path of the alignment
    tsne_picture         t-SNE maps of several encoders, by phase
    map_picture          one map of videos as trajectories, with frames around it
    progress_picture     how far through the action each video is, against its time
    evolution_picture    loss and cycle-consistency rate over training

All take arrays and return bytes; `cycleback plot` is the command.
"""

from cycleback.applications.plots.evolution import evolution_picture
from cycleback.applications.plots.figure import FORMATS, PHASE_COLOURS
from cycleback.applications.plots.map import map_picture, tsne_picture
from cycleback.applications.plots.progress import progress_curves, progress_picture
from cycleback.applications.plots.similarity import shared_events, similarity_picture

__all__ = [
    "FORMATS",
    "PHASE_COLOURS",
    "evolution_picture",
    "map_picture",
    "progress_curves",
    "progress_picture",
    "shared_events",
    "similarity_picture",
    "tsne_picture",
]
