import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import kendalltau

from cycleback.alignment import cycle_back, cycle_consistency_rate
from cycleback.alignment.cycles import MatchOrder
from cycleback.evaluation import mean_tau, pair_taus
from cycleback.evaluation.neighbors import nearest_table
from cycleback.evaluation.order import count_cycles, three_way_rate


def kendalls_tau(query, reference, *, variant="b"):
    return mean_tau([query, reference], variant=variant).table[0, 1]


def scipy_tau(query, reference):
    nearest = cdist(query, reference, "sqeuclidean").argmin(axis=1)
    with warnings.catch_warnings(action="ignore"):
        return kendalltau(np.arange(len(query)), nearest).statistic


def scipy_taus(videos):
    return [scipy_tau(a, b) for i, a in enumerate(videos) for j, b in enumerate(videos) if i != j]


def loop_tau_a(matches):
    pairs = [(i, j) for j in range(len(matches)) for i in range(j)]
    return sum(np.sign(matches[j] - matches[i]) for i, j in pairs) / len(pairs)


def test_tau_b_is_scipys(walks):
    assert kendalls_tau(walks[0], walks[1]) == pytest.approx(scipy_tau(walks[0], walks[1]), abs=1e-9)


def test_tau_a_is_the_papers_sum_over_pairs_of_frames(walks):
    nearest = cdist(walks[0], walks[1]).argmin(axis=1)
    assert kendalls_tau(walks[0], walks[1], variant="a") == pytest.approx(loop_tau_a(nearest), abs=1e-12)


def test_strict_tau_counts_what_is_not_concordant_as_discordant(rng):
    for row in rng.integers(0, 6, size=(20, 9)):
        pairs = [(i, j) for j in range(9) for i in range(j)]
        expected = np.mean([1 if row[i] < row[j] else -1 for i, j in pairs])
        assert MatchOrder.of(row[None]).taus("strict")[0] == pytest.approx(expected)


def test_strict_tau_of_a_collapsed_pair_is_minus_one():
    line, point = np.arange(10.0)[:, None], np.full((10, 1), 3.0)
    assert kendalls_tau(line, point, variant="strict") == -1


def test_long_videos_are_counted_as_short_ones(rng):
    matches = rng.integers(0, 300, size=(2, 700))
    expected = [kendalltau(np.arange(700), row).statistic for row in matches]
    np.testing.assert_allclose(MatchOrder.of(matches).taus("b"), expected, atol=1e-12)


def test_the_table_of_single_taus_comes_with_the_mean():
    line, point = np.arange(10.0)[:, None], np.full((10, 1), 3.0)
    zero, drop = (mean_tau([line, line, point], undefined=how).table for how in ("zero", "drop"))
    assert np.isnan(np.diag(zero)).all() and (zero[0, 1], zero[0, 2]) == (1, 0)
    assert np.isnan(drop).sum() == 3 + 4


def test_the_mean_is_over_all_ordered_pairs(walks):
    tau = mean_tau(walks)
    assert (tau.pairs, tau.undefined) == (20, 0)
    assert tau.value == pytest.approx(np.mean(scipy_taus(walks)), abs=1e-9)


def test_rows_of_the_table_are_queries_and_columns_references(walks):
    table = pair_taus(walks)
    expected = [[scipy_tau(query, reference) for reference in walks] for query in walks]
    np.testing.assert_allclose(table, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("variant", "expected"), [("a", 24 / 28), ("b", 24 / np.sqrt(28 * 24)), ("strict", 20 / 28)]
)
def test_each_frame_found_twice_has_a_known_tau(variant, expected):
    matches = np.repeat(np.arange(4), 2)[None]
    assert MatchOrder.of(matches).taus(variant)[0] == pytest.approx(expected)


def test_perfect_and_reversed_order():
    line = np.arange(10.0)[:, None]
    assert kendalls_tau(line, line) == 1
    assert kendalls_tau(line, -line + 9) == -1


def test_many_random_rows_are_scipys(rng):
    matches = rng.integers(0, 5, size=(200, 9))
    expected = [kendalltau(np.arange(9), row).statistic for row in matches]
    np.testing.assert_allclose(MatchOrder.of(matches).taus("b"), expected, atol=1e-12)


def test_frame_numbers_past_small_integers_keep_their_order():
    matches = np.array([[0, 40_000, 70_000], [70_000, 40_000, 0]])
    assert MatchOrder.of(matches).taus("b").tolist() == [1, -1]


@pytest.mark.parametrize("variant", ["a", "b"])
def test_a_collapsed_pair_counts_as_zero_and_is_counted(variant):
    line, point = np.arange(10.0)[:, None], np.full((10, 1), 3.0)
    assert kendalls_tau(line, point, variant=variant) == 0
    tau = mean_tau([line, line, point], variant=variant)
    assert (tau.pairs, tau.undefined) == (6, 4)
    assert tau.value == pytest.approx(2 / 6)


def test_dropping_undefined_pairs_is_the_authors_way():
    line, point = np.arange(10.0)[:, None], np.full((10, 1), 3.0)
    tau = mean_tau([line, line, point], undefined="drop")
    assert (tau.value, tau.pairs, tau.undefined) == (1.0, 6, 4)
    assert tau.value == pytest.approx(np.nanmean(scipy_taus([line, line, point])))


def test_when_all_pairs_are_dropped_there_is_no_number():
    points = [np.ones((5, 2))] * 3
    assert mean_tau(points, undefined="drop").value is None
    assert mean_tau(points).value == 0


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_videos_have_no_tau(count, walks):
    tau = mean_tau(walks[:count])
    assert (tau.value, tau.pairs, tau.undefined) == (None, 0, 0)


def test_a_video_of_one_frame_is_undefined_from_both_sides(walks):
    tau = mean_tau([walks[0], walks[1][:1]])
    assert (tau.value, tau.pairs, tau.undefined) == (0, 2, 2)


def test_nan_is_an_error_and_not_a_number(walks):
    walks[1][0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        mean_tau(walks)


@pytest.mark.parametrize("settings", [{"variant": "c"}, {"undefined": "skip"}])
def test_unknown_settings_are_an_error(walks, settings):
    with pytest.raises(ValueError, match=str(next(iter(settings.values())))):
        mean_tau(walks, **settings)


@pytest.mark.parametrize("tolerance", [0, 1, 4])
def test_the_rate_is_that_of_the_alignment_package(walks, tolerance):
    table = count_cycles(nearest_table(walks), tolerance=tolerance)
    assert table.rate == cycle_consistency_rate(walks, tolerance=tolerance)


def test_each_cell_counts_the_frames_that_come_home(walks):
    table = count_cycles(nearest_table(walks))
    for a in range(5):
        for b in set(range(5)) - {a}:
            missed = np.abs(cycle_back(walks[a], walks[b]) - np.arange(len(walks[a])))
            assert (table.home[a, b], table.total[a, b]) == ((missed <= 1).sum(), len(walks[a]))
    assert not np.diag(table.home).any() and not np.diag(table.total).any()


def test_one_video_has_no_rate(walks):
    assert count_cycles(nearest_table(walks[:1])).rate is None
    assert three_way_rate(walks[:2]) == (None, 0)


def test_the_three_way_rate_is_that_of_the_alignment_package(walks):
    assert three_way_rate(walks) == (cycle_consistency_rate(walks, three_way=True), 5)


def test_of_many_videos_some_are_drawn_with_a_seed(walks):
    draws = [three_way_rate(walks, max_videos=3, seed=seed) for seed in range(6)]
    assert {used for _, used in draws} == {3} and len({rate for rate, _ in draws}) > 1
    assert three_way_rate(walks, max_videos=3, seed=2) == draws[2]
