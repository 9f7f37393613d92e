"""Places to search and moments to search for, as a user names them, without embedding a video."""

from pathlib import Path

import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError, UserError
from cycleback.search import Corpus, SearchIndex, find, make_query, open_corpus


def test_an_index_and_a_set_are_opened_by_their_folder(
    index: SearchIndex, videos: EmbeddingSet, tmp_path: Path
) -> None:
    videos.save(tmp_path / "set")
    in_index, in_set = open_corpus(index.folder), open_corpus(tmp_path / "set")
    assert (in_index.source, in_set.source) == (index.folder, tmp_path / "set")
    query = make_query(in_index, "b2#7")
    assert (query.video, query.frame) == ("b2", 7)
    assert find(in_index, query, k=20) == find(in_set, make_query(in_set, "b2#7"), k=20)


def test_a_place_without_an_index_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match=r"no search index at .*none\. Make one with: cycleback search"):
        open_corpus(tmp_path / "none")


@pytest.mark.parametrize(
    ("moment", "message"),
    [
        ("b2", r"which moment of b2\? Write b2@2\.5 \(seconds\) or b2#75 \(frame\)"),
        ("new.mp4", r"which moment of new\.mp4\?"),
        ("new.mp4@1", r"'new\.mp4' is neither a video in the corpus nor a file"),
    ],
)
def test_a_moment_that_cannot_be_found_is_one_line(corpus: Corpus, moment: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_query(corpus, moment)
