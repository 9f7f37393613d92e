"""Find a moment everywhere: the frames of many videos nearest to a frame, an image or a vector.

For example:

    index_videos("golf.index", "golf/", run="runs/golf")       # once; embeds only new videos
    corpus = open_corpus("golf.index")                         # or an embedding set, or a folder of videos
    for hit in find(corpus, make_query(corpus, "swing.mp4@1.9"), k=8): ...
"""

from cycleback.search.backend import BACKENDS, open_backend
from cycleback.search.corpus import Corpus
from cycleback.search.hits import Filter, Hit, find
from cycleback.search.index import (
    SearchIndex,
    add_corpus,
    add_videos,
    is_index,
    remove_videos,
    retag_videos,
)
from cycleback.search.inputs import index_videos, make_query, open_corpus
from cycleback.search.outputs import write_clips, write_sheet
from cycleback.search.query import Query, make_frame_query, make_image_query, make_vector_query
from cycleback.search.tags import parse_tags, read_tags

__all__ = [
    "BACKENDS",
    "Corpus",
    "Filter",
    "Hit",
    "Query",
    "SearchIndex",
    "add_corpus",
    "add_videos",
    "find",
    "index_videos",
    "is_index",
    "make_frame_query",
    "make_image_query",
    "make_query",
    "make_vector_query",
    "open_backend",
    "open_corpus",
    "parse_tags",
    "read_tags",
    "remove_videos",
    "retag_videos",
    "write_clips",
    "write_sheet",
]
