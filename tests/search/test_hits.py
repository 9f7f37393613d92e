"""Hits against plain loops: every frame of every video, sorted, neighbours struck out one after another."""

import itertools

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError
from cycleback.search import Corpus, Filter, SearchIndex, find, hits, make_frame_query, make_vector_query
from cycleback.search.hits import Spans, select_spans


def loops(videos, vector, *, k, per_video=1, apart=1.0, names=None, between=(0, 1)):
    """The definition, slowly: walk all frames by distance, keep what is allowed beside those kept."""
    rows = []
    for name in names if names is not None else videos:
        times = videos.times(name)
        length = times[-1] - times[0]
        for frame, row in enumerate(videos[name]):
            if between[0] <= (times[frame] - times[0]) / length <= between[1]:
                distance = sum((float(x) - float(y)) ** 2 for x, y in zip(row, vector, strict=True)) ** 0.5
                rows.append((distance, name, frame, times[frame]))
    kept = []
    for row in sorted(rows):
        mine = [other for other in kept if other[1] == row[1]]
        if len(mine) < per_video and all(abs(other[3] - row[3]) >= apart for other in mine):
            kept.append(row)
    return kept[:k]


def short(hits):
    return [(hit.video, hit.frame) for hit in hits]


@pytest.mark.parametrize(("k", "per_video", "apart"), [*itertools.product((1, 4, 40), (1, 3), (0.0, 0.7))])
def test_hits_are_those_of_plain_loops(
    videos: EmbeddingSet, corpus: Corpus, k: int, per_video: int, apart: float
) -> None:
    vector = videos["a1"][7]
    hits = find(corpus, make_vector_query(vector, encoder="enc"), k=k, per_video=per_video, apart=apart)
    expected = loops(videos, vector, k=k, per_video=per_video, apart=apart)
    assert short(hits) == [(name, frame) for _, name, frame, _ in expected]
    np.testing.assert_allclose([hit.distance for hit in hits], [row[0] for row in expected], rtol=1e-9)
    assert [hit.seconds for hit in hits] == [row[3] for row in expected]


def test_shards_with_removed_videos_give_the_same_hits(
    corpus: Corpus, index: SearchIndex, videos: EmbeddingSet
) -> None:
    query = make_frame_query(corpus, "b2", frame=11)
    assert len(index.corpus.shards) == 3
    assert find(index.corpus, query, k=30) == find(corpus, query, k=30)


@pytest.mark.parametrize("rows", [1, 7, 50, 100_000])
def test_the_size_of_a_block_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, corpus: Corpus, videos: EmbeddingSet, rows: int
) -> None:
    query = make_vector_query(videos["c0"][3] + 0.5, encoder="enc")
    expected = short(find(corpus, query, k=5, where=Filter(names="[ac]*")))
    monkeypatch.setattr(hits, "BLOCK_ROWS", rows)
    assert short(find(corpus, query, k=5, where=Filter(names="[ac]*"))) == expected


def test_a_part_of_each_video_is_searched_by_time(videos: EmbeddingSet, corpus: Corpus) -> None:
    vector = videos["a0"][2]
    hits = find(corpus, make_vector_query(vector, encoder="enc"), k=9, where=Filter(between=(0.5, 0.8)))
    expected = loops(videos, vector, k=9, between=(0.5, 0.8))
    assert short(hits) == [(name, frame) for _, name, frame, _ in expected]


def test_filters_by_action_and_name(videos: EmbeddingSet, corpus: Corpus) -> None:
    query = make_frame_query(corpus, "a0", frame=0)
    assert {hit.video[0] for hit in find(corpus, query, where=Filter(action="bowl"))} == {"b"}
    assert {hit.video for hit in find(corpus, query, where=Filter(names="?[34]"))} == {
        f"{letter}{number}" for letter in "abc" for number in (3, 4)
    }


def test_the_own_video_is_left_out_unless_asked_for(corpus: Corpus) -> None:
    query = make_frame_query(corpus, "c2", frame=5)
    assert "c2" not in {hit.video for hit in find(corpus, query, k=99)}
    first = find(corpus, query, own_video=True)[0]
    assert (first.video, first.frame, first.distance, first.similarity) == ("c2", 5, 0.0, 1.0)


def test_more_hits_than_videos_gives_what_there_is(corpus: Corpus) -> None:
    assert len(find(corpus, make_frame_query(corpus, "a0", frame=0), k=100)) == 14


def test_hits_exactly_as_far_apart_as_asked_for_are_kept() -> None:
    corpus = Corpus.of_set(EmbeddingSet.from_arrays({"a": [[0.0], [1], [2], [3], [4]]}, fps=1))
    frames = [hit.frame for hit in find(corpus, make_vector_query([0.0]), per_video=9, apart=2)]
    assert frames == [0, 2, 4]


def test_similarity_falls_with_distance_and_stays_in_range(corpus: Corpus) -> None:
    hits = find(corpus, make_frame_query(corpus, "a0", frame=0), k=500, per_video=99, apart=0.0)
    similar = [hit.similarity for hit in hits]
    assert similar == sorted(similar, reverse=True)
    assert similar[0] > 0.5
    assert min(similar) >= 0 and max(similar) <= 1


def test_far_from_the_origin_the_float32_product_still_finds_the_nearest() -> None:
    generator = np.random.default_rng(1)
    arrays = {f"v{n:03d}": 1000 + generator.normal(size=(30, 8)) * 0.02 for n in range(200)}
    videos = EmbeddingSet.from_arrays(arrays)
    vector = videos["v007"][3] + np.float32(0.01)
    hits = find(Corpus.of_set(videos), make_vector_query(vector), k=3)
    assert short(hits) == [(name, frame) for _, name, frame, _ in loops(videos, vector, k=3)]


def test_collapsed_embeddings_give_hits_that_are_not_sure() -> None:
    corpus = Corpus.of_set(EmbeddingSet.from_arrays({name: np.ones((5, 3)) for name in "abc"}))
    hits = find(corpus, make_vector_query([2.0, 1, 1]))
    assert short(hits) == [("a", 0), ("b", 0), ("c", 0)]
    assert {hit.similarity for hit in hits} == {0.0}


def test_nothing_left_to_search_says_why(corpus: Corpus) -> None:
    query = make_frame_query(corpus, "a0", frame=0)
    with pytest.raises(EmbeddingError, match=r"no video of action 'tennis' \(actions: 'bowl', 'golf'\)"):
        find(corpus, query, where=Filter(action="tennis"))
    with pytest.raises(EmbeddingError, match="none of 15 videos is left"):
        find(corpus, query, where=Filter(names="zzz*"))


def test_a_query_of_another_encoder_is_refused(corpus: Corpus) -> None:
    with pytest.raises(EmbeddingError, match="the query by other, the videos by enc"):
        find(corpus, make_vector_query(np.zeros(4), encoder="other"))
    with pytest.raises(EmbeddingError, match=r"the query has shape \(3,\), the frames have \(4,\)"):
        find(corpus, make_vector_query(np.zeros(3), encoder="enc"))


def test_impossible_numbers_are_refused(corpus: Corpus) -> None:
    query = make_frame_query(corpus, "a0", frame=0)
    with pytest.raises(ValueError, match=r"got 0, 1 and 1\.0"):
        find(corpus, query, k=0)
    with pytest.raises(ValueError, match=r"got 0\.8 0\.2"):
        Filter(between=(0.8, 0.2))


@pytest.mark.parametrize("between", [(0.0, 1.0), (0.0, 0.5), (0.25, 0.75), (0.9, 1.0)])
def test_both_ends_of_a_part_belong_to_it(between: tuple[float, float]) -> None:
    arrays = {"a": np.zeros((5, 1)), "b": np.zeros((9, 1))}
    corpus = Corpus.of_set(EmbeddingSet.from_arrays(arrays, fps=1))
    spans = select_spans(corpus, Filter(between=between))
    shares = np.concatenate([np.arange(5) / 4, np.arange(9) / 8])
    rows = np.concatenate([np.arange(*span) for span in zip(spans.starts, spans.stops, strict=True)])
    assert rows.tolist() == np.flatnonzero((shares >= between[0]) & (shares <= between[1])).tolist()


def test_a_video_with_no_frame_in_the_part_is_left_out() -> None:
    arrays = {"short": np.zeros((2, 1)), "long": np.zeros((9, 1))}
    corpus = Corpus.of_set(EmbeddingSet.from_arrays(arrays))
    assert select_spans(corpus, Filter(between=(0.4, 0.6))).videos.tolist() == [1]


def test_rows_are_given_to_the_span_they_lie_in() -> None:
    spans = Spans(np.array([4, 7]), np.array([10, 30]), np.array([15, 31]))
    assert spans.num_rows == 6
    assert spans.find(np.array([0, 9, 10, 14, 15, 29, 30, 31])).tolist() == [0, 0, 1]


def test_a_typical_frame_is_one_that_is_searched(index: SearchIndex, videos: EmbeddingSet) -> None:
    rows = np.concatenate([videos[name] for name in videos])
    np.testing.assert_array_equal(index.corpus.sample, rows)
