import numpy as np
import pytest
from scipy.spatial.distance import cdist

from cycleback.evaluation import retrieval, retrieval_precision
from cycleback.evaluation.retrieval import nearest_columns


@pytest.fixture
def labelled(walks):
    return [(walk, np.arange(len(walk)) * 4 // len(walk)) for walk in walks]


def precision_by_loop(videos, k):
    """Every query in turn: distances to all frames of the other videos, the first of equals first."""
    shares = []
    for own, (block, phases) in enumerate(videos):
        others = [video for number, video in enumerate(videos) if number != own]
        pool, truth = np.concatenate([x for x, _ in others]), np.concatenate([y for _, y in others])
        for frame, phase in zip(block, phases, strict=True):
            order = np.argsort(cdist([frame], pool, "sqeuclidean")[0], kind="stable")
            shares.append((truth[order[:k]] == phase).mean())
    return np.mean(shares)


def test_precision_is_that_of_a_loop_over_queries(labelled):
    result = retrieval_precision(labelled)
    assert result.at == pytest.approx({k: precision_by_loop(labelled, k) for k in (5, 10, 15)}, abs=1e-12)
    assert result.queries == sum(len(block) for block, _ in labelled)


def test_small_blocks_of_queries_change_nothing(labelled, monkeypatch):
    whole = retrieval_precision(labelled)
    monkeypatch.setattr(retrieval, "BLOCK_CELLS", 700)
    assert retrieval_precision(labelled) == whole


def test_many_frames_are_searched_by_groups(rng):
    videos = [(rng.normal(size=(150, 3)), rng.integers(0, 3, 150)) for _ in range(4)]
    assert retrieval_precision(videos).at[10] == pytest.approx(precision_by_loop(videos, 10), abs=1e-12)


def test_frames_too_close_for_single_precision_are_told_apart(rng):
    videos = [(1e4 + 1e-3 * rng.normal(size=(40, 2)), rng.integers(0, 3, 40)) for _ in range(3)]
    assert retrieval_precision(videos).at == pytest.approx(
        {k: precision_by_loop(videos, k) for k in (5, 10, 15)}, abs=1e-12
    )


def test_of_equally_near_frames_the_first_wins():
    phases = np.repeat([0, 1], 10)
    collapsed = [(np.ones((20, 3)), phases) for _ in range(3)]
    assert retrieval_precision(collapsed).at == {5: 0.5, 10: 0.5, 15: pytest.approx((10 + 5) / 30)}


def test_the_own_video_is_left_out(rng):
    phases = np.repeat([0, 1], 20)
    own = [(rng.normal(size=(40, 2)) + 100 * number, (phases + number) % 2) for number in range(2)]
    reverse = [(block, truth * 0 + number) for number, (block, truth) in enumerate(own)]
    assert retrieval_precision(reverse).at == {5: 0, 10: 0, 15: 0}


def test_no_more_frames_are_asked_for_than_other_videos_have(labelled):
    assert list(retrieval_precision([labelled[0], labelled[3]]).at) == [5]  # 17 and 8 frames
    assert retrieval_precision(labelled[:1]) == retrieval_precision([])
    assert retrieval_precision([]).queries == 0


def test_the_nearest_columns_are_those_of_a_stable_sort(rng):
    scores = rng.integers(0, 40, size=(6, 500)).astype(float)
    found, is_doubtful = nearest_columns(scores, [3, 7])
    np.testing.assert_array_equal(found, np.argsort(scores, axis=1, kind="stable")[:, :7])
    ordered = np.sort(scores, axis=1)
    expected = (ordered[:, 3] == ordered[:, 2]) | (ordered[:, 7] == ordered[:, 6])
    np.testing.assert_array_equal(is_doubtful, expected)


def test_impossible_ranks_are_an_error(labelled):
    with pytest.raises(ValueError, match=r"\(0, 5\)"):
        retrieval_precision(labelled, at=(0, 5))


def test_labels_that_do_not_fit_the_frames_are_an_error(labelled):
    with pytest.raises(ValueError, match="3 phase labels for 17 frames"):
        retrieval_precision([(labelled[0][0], labelled[0][1][:3]), *labelled[1:]])
