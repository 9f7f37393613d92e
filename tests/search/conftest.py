"""Random walks as videos, and an index of them on disk."""

from pathlib import Path

import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.search import Corpus, SearchIndex, add_videos, remove_videos
from search.walks import walks

REMOVED = ["x", "y"]
NAMES = [f"{letter}{number}" for letter in "abc" for number in range(5)]


@pytest.fixture(scope="session")
def all_videos() -> EmbeddingSet:
    """The videos, with two between them that an index holds for a while only."""
    return walks([*NAMES[:3], "x", *NAMES[3:8], "y", *NAMES[8:]])


@pytest.fixture
def videos(all_videos: EmbeddingSet) -> EmbeddingSet:
    return all_videos.subset(NAMES)


@pytest.fixture
def corpus(videos: EmbeddingSet) -> Corpus:
    return Corpus.of_set(videos)


@pytest.fixture
def index(tmp_path: Path, all_videos: EmbeddingSet) -> SearchIndex:
    """The same videos in three shards, two of them with rows of a removed video."""
    folder, names = tmp_path / "moments.index", list(all_videos)
    for part in (names[:5], names[5:6], names[6:]):
        add_videos(folder, all_videos.subset(part))
    remove_videos(folder, REMOVED)
    return SearchIndex.load(folder)
