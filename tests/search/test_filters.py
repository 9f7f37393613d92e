"""Which rows a filter leaves, against loops over all frames."""

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.search import Corpus, Filter, SearchIndex
from cycleback.search.filters import Spans, spans_of


@pytest.mark.parametrize("between", [(0.0, 1.0), (0.0, 0.5), (0.25, 0.75), (0.9, 1.0)])
def test_both_ends_of_a_part_belong_to_it(between: tuple[float, float]) -> None:
    arrays = {"a": np.zeros((5, 1)), "b": np.zeros((9, 1))}
    corpus = Corpus.of_set(EmbeddingSet.from_arrays(arrays, fps=1))
    spans = spans_of(corpus, Filter(between=between))
    shares = np.concatenate([np.arange(5) / 4, np.arange(9) / 8])
    rows = np.concatenate([np.arange(*span) for span in zip(spans.starts, spans.stops, strict=True)])
    assert rows.tolist() == np.flatnonzero((shares >= between[0]) & (shares <= between[1])).tolist()


def test_a_video_with_no_frame_in_the_part_is_left_out() -> None:
    arrays = {"short": np.zeros((2, 1)), "long": np.zeros((9, 1))}
    corpus = Corpus.of_set(EmbeddingSet.from_arrays(arrays))
    assert spans_of(corpus, Filter(between=(0.4, 0.6))).videos.tolist() == [1]


def test_rows_are_given_to_the_span_they_lie_in() -> None:
    spans = Spans(np.array([4, 7]), np.array([10, 30]), np.array([15, 31]))
    assert spans.num_rows == 6
    assert spans.place_of(np.array([0, 9, 10, 14, 15, 29, 30, 31])).tolist() == [0, 0, 1]


def test_a_typical_frame_is_one_that_is_searched(index: SearchIndex, videos: EmbeddingSet) -> None:
    rows = np.concatenate([videos[name] for name in videos])
    np.testing.assert_array_equal(index.corpus.sample, rows)
