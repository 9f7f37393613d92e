"""What an alignment is good for; everything here works on an EmbeddingSet."""

from cycleback.applications.pace import Pace, own_pace, paths_of, reference_pace, smooth_pace
from cycleback.applications.sync import write_synced
from cycleback.applications.table import alignment_rows, write_table

__all__ = [
    "Pace",
    "alignment_rows",
    "own_pace",
    "paths_of",
    "reference_pace",
    "smooth_pace",
    "write_synced",
    "write_table",
]
