"""Find a moment everywhere: the frames of many videos nearest to a frame, an image or a vector.

index = SearchIndex.load("golf.index")              # made by add_videos, or: cycleback search add
query = frame_query(index.corpus, "swing_07", seconds=1.9)
for hit in find(index.corpus, query, k=8): ...
"""

from cycleback.search.backends import BACKENDS, open_backend
from cycleback.search.clips import write_clips
from cycleback.search.corpus import Corpus
from cycleback.search.filters import Filter
from cycleback.search.grow import Changes, add_videos, new_records, remove_videos
from cycleback.search.hits import Backend, Hit, find
from cycleback.search.index import SearchIndex, is_index
from cycleback.search.query import Moment, Query, find_video, frame_query, parse_moment, vector_query
from cycleback.search.sheet import contact_sheet, write_sheet

__all__ = [
    "BACKENDS",
    "Backend",
    "Changes",
    "Corpus",
    "Filter",
    "Hit",
    "Moment",
    "Query",
    "SearchIndex",
    "add_videos",
    "contact_sheet",
    "find",
    "find_video",
    "frame_query",
    "is_index",
    "new_records",
    "open_backend",
    "parse_moment",
    "remove_videos",
    "vector_query",
    "write_clips",
    "write_sheet",
]
