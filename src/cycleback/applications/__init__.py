"""What an alignment is good for; everything here works on an EmbeddingSet."""

from cycleback.applications.sync import own_pace, paths_of, reference_pace, write_synced
from cycleback.applications.table import alignment_rows, write_table

__all__ = ["alignment_rows", "own_pace", "paths_of", "reference_pace", "write_synced", "write_table"]
