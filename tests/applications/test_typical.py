import numpy as np
import pytest

from cycleback.alignment import align
from cycleback.applications.typical import Typical, fit_typical
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError


def trajectory(seed: int, *, noise: float = 0.05) -> np.ndarray:
    """A take (N, 3) along a helix that never comes back, at a pace of its own."""
    rng = np.random.default_rng(seed)
    steps = rng.uniform(0.3, 1.7, size=rng.integers(60, 90))
    clock = np.cumsum(steps) / steps.sum()
    line = np.stack([np.sin(4 * clock), np.cos(4 * clock), 3 * clock], axis=1)
    return line + noise * rng.normal(size=line.shape)


def good_set(count: int = 8) -> EmbeddingSet:
    return EmbeddingSet.from_arrays({f"good_{k}": trajectory(k) for k in range(count)})


@pytest.fixture(scope="module")
def typical() -> Typical:
    return fit_typical(good_set())


def test_the_span_that_leaves_the_way_is_found(typical: Typical) -> None:
    take = trajectory(100)
    take[20:31, 0] += 3.0
    found = typical.score(take)
    assert found.verdict == "something differs"
    assert 20 <= found.peak <= 30
    assert any(first <= 21 and last >= 29 for first, last in found.spans)
    assert not found.flagged[:15].any()


def test_a_new_good_take_is_typical(typical: Typical) -> None:
    verdicts = [typical.score(trajectory(seed)).verdict for seed in range(200, 210)]
    assert verdicts.count("typical") >= 8


def test_good_frames_are_flagged_as_often_as_stated(typical: Typical) -> None:
    for share in (0.05, 0.2):
        scored = [typical.score(trajectory(seed), false_alarms=share) for seed in range(300, 320)]
        assert np.concatenate([found.flagged for found in scored]).mean() < 2 * share


def test_order_counts_so_an_early_pose_in_the_middle_is_odd(typical: Typical) -> None:
    take = trajectory(101, noise=0.02)
    detour = np.concatenate([take[:35], take[34:4:-1], take[5:]])  # back to the start, and again
    found = typical.score(detour)
    assert found.verdict == "something differs"
    assert found.flagged[35:65].any()


def test_another_action_is_called_so(typical: Typical) -> None:
    elsewhere = trajectory(102) * [1, -1, -1] + 4
    assert typical.score(elsewhere).verdict == "looks like another action"


def test_scores_equal_a_loop_over_takes_before_smoothing(typical: Typical) -> None:
    take = trajectory(103)
    view, rows = typical.views[0], []
    for other in view.takes:
        path = align(take, other).path
        pairs = ((take[path[:, 0]] - other[path[:, 1]]) ** 2).sum(axis=1)
        rows.append([pairs[path[:, 0] == frame].min() for frame in range(len(take))])
    distances = np.sort(rows, axis=0)[:3].mean(axis=0)
    progress = typical.score(take).progress
    expected = np.interp(progress, (np.arange(20) + 0.5) / 20, view.typical)
    smooth = np.convolve(np.pad((distances / expected - 1) / view.spread, 2, mode="edge"), np.ones(5) / 5)
    assert typical.score(take).scores == pytest.approx(smooth[4:-4], rel=1e-4)


def test_good_takes_score_zero_on_average_with_spread_one(typical: Typical) -> None:
    own = np.concatenate(typical.own_scores)
    assert abs(own.mean()) < 0.1
    assert 0.3 < own.std() < 1.1  # smoothing takes some of it


def test_matches_name_a_frame_of_a_good_take(typical: Typical) -> None:
    takes = typical.views[0].takes
    matches = typical.score(trajectory(104)).matches
    assert all(frame < len(takes[take]) for take, frame in matches)


def test_a_second_view_sees_what_the_first_ignores() -> None:
    first = good_set()
    colour = {name: np.full((len(first[name]), 2), 0.1 * k) for k, name in enumerate(first.names)}
    both = fit_typical(first, EmbeddingSet.from_arrays(colour))
    take = trajectory(105)
    looks = np.full((len(take), 2), 0.3)
    looks[30:40] += 5
    assert not fit_typical(first).score(take).flagged[30:40].all()
    assert both.score(take, looks).flagged[31:39].all()


def test_too_few_good_takes_are_refused() -> None:
    with pytest.raises(EmbeddingError, match="4 good takes cannot say what is typical: give at least 5"):
        fit_typical(good_set(4))


def test_copies_of_one_take_are_refused() -> None:
    with pytest.raises(EmbeddingError, match="all the same video"):
        fit_typical(EmbeddingSet.from_arrays({f"v{k}": trajectory(0) for k in range(5)}))


def test_views_of_different_takes_are_refused() -> None:
    with pytest.raises(EmbeddingError, match="same good takes"):
        fit_typical(good_set(6), good_set(7))


def test_a_video_of_one_frame_or_another_size_is_refused(typical: Typical) -> None:
    with pytest.raises(EmbeddingError, match="at least 2 frames to be compared, got 1"):
        typical.score(np.zeros((1, 3)))
    with pytest.raises(EmbeddingError, match="embeddings of size 2, the good takes 3"):
        typical.score(np.zeros((9, 2)))
    with pytest.raises(ValueError, match="need embeddings for 1 views, got 2"):
        typical.score(trajectory(0), trajectory(0))
    with pytest.raises(ValueError, match="between 0 and 1, got 1"):
        typical.score(trajectory(0), false_alarms=1)
