import numpy as np
import pytest
from scipy.stats import kendalltau

from alignment import loops
from cycleback.alignment import backward_share, cycle_back, cycle_consistency_rate
from cycleback.alignment.cycles import MatchOrder, warped_cycle_rate


def test_landing_equals_the_loop(videos):
    a, b = videos[:2]
    expected = [loops.nearest(b[loops.nearest(row, b)], a) for row in a]
    assert cycle_back(a, b).tolist() == expected


def test_identical_videos_land_where_they_started(videos):
    assert cycle_back(videos[0], videos[0]).tolist() == list(range(9))
    assert cycle_consistency_rate([videos[0]] * 3, tolerance=0) == 1.0


@pytest.mark.parametrize("tolerance", [0, 1, 3])
def test_rate_equals_the_loop_over_pairs(videos, tolerance):
    expected = loops.two_way_rate(videos, tolerance)
    assert cycle_consistency_rate(videos, tolerance=tolerance) == pytest.approx(expected, abs=1e-12)
    assert 0 < expected < 1


@pytest.mark.parametrize("tolerance", [0, 1, 3])
def test_three_way_rate_equals_the_loop_over_triples(videos, tolerance):
    expected = loops.three_way_rate(videos, tolerance)
    got = cycle_consistency_rate(videos, tolerance=tolerance, three_way=True)
    assert got == pytest.approx(expected, abs=1e-12) and 0 < expected < 1


def test_order_of_the_videos_does_not_matter(videos):
    for three_way in (False, True):
        expected = cycle_consistency_rate(videos, three_way=three_way)
        got = cycle_consistency_rate(videos[::-1], three_way=three_way)
        assert got == pytest.approx(expected, abs=1e-12)


def test_collapsed_embeddings_only_bring_home_the_first_frames():
    assert cycle_consistency_rate([np.ones((20, 4))] * 3, tolerance=1) == 2 / 20


def test_tolerance_of_the_whole_video_is_always_met(videos):
    assert cycle_consistency_rate(videos, tolerance=14) == 1.0


@pytest.mark.parametrize(("three_way", "needed"), [(False, 2), (True, 3)])
def test_too_few_videos_are_refused(videos, three_way, needed):
    with pytest.raises(ValueError, match=f"expected at least {needed} videos, got {needed - 1}"):
        cycle_consistency_rate(videos[: needed - 1], three_way=three_way)


def test_bad_videos_are_named(videos):
    broken = [videos[0], np.where(np.arange(3) == 1, np.nan, videos[1])]
    with pytest.raises(ValueError, match=r"embeddings\[1\]\[0, 1\] is nan"):
        cycle_consistency_rate(broken)
    with pytest.raises(ValueError, match=r"different embedding sizes \[3, 2\]"):
        cycle_consistency_rate([videos[0], videos[1][:, :2]])
    with pytest.raises(ValueError, match=r"embeddings\[1\] must be \(N, D\) .* got \(0, 3\)"):
        cycle_consistency_rate([videos[0], videos[1][:0]])


def test_negative_tolerance_is_refused(videos):
    with pytest.raises(ValueError, match="tolerance must not be negative, got -1"):
        cycle_consistency_rate(videos, tolerance=-1)


def test_the_backward_share_equals_the_loop_over_pairs():
    draws = np.random.default_rng(0)
    videos = [draws.normal(size=(count, 1)).cumsum(axis=0) for count in (5, 4, 7, 5, 6)]
    pairs = [(a, b) for i, a in enumerate(videos) for j, b in enumerate(videos) if i != j]
    taus = [kendalltau(range(len(a)), [loops.nearest(row, b) for row in a]).statistic for a, b in pairs]
    assert backward_share(videos) == np.mean(np.array(taus) < -0.5)
    assert 0 < backward_share(videos) < 1


def test_disorder_is_not_backward():
    matches = np.random.default_rng(0).integers(0, 30, size=(50, 30))
    assert not MatchOrder.of(matches).is_backward.any()
    assert MatchOrder.of(matches[:, np.arange(30)[::-1]].cumsum(axis=1)[:, ::-1]).is_backward.all()


def test_videos_that_are_matched_backwards_are_counted_though_all_cycles_come_home():
    line = np.linspace(0, 1, 12)[:, None]
    videos = [line, line + 0.001, 1 - line]
    assert cycle_consistency_rate(videos, tolerance=0) == 1
    assert backward_share(videos) == pytest.approx(4 / 6)
    assert backward_share([np.ones((9, 2))] * 2) == 0  # no order is not a backward one


def test_warps_through_three_videos_return_for_the_same_action_and_not_for_noise() -> None:
    def action(pace: float) -> np.ndarray:
        seconds = np.linspace(0, 1, 50) ** pace
        return np.stack([np.sin(7 * seconds), np.cos(5 * seconds), seconds], axis=1)

    rng = np.random.default_rng(0)
    same = [action(pace) for pace in (0.8, 1.0, 1.25, 1.4)]
    noise = [rng.normal(size=(50, 3)) for _ in range(10)]
    assert warped_cycle_rate(same) > 0.8
    assert warped_cycle_rate(noise) < 0.4
    with pytest.raises(ValueError, match="3"):
        warped_cycle_rate(same[:2])
