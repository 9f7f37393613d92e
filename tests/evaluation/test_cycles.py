import numpy as np
import pytest

from cycleback.alignment import cycle_back, cycle_consistency_rate
from cycleback.evaluation.cycles import cycle_table, three_way_rate
from cycleback.evaluation.neighbors import nearest_table


@pytest.mark.parametrize("tolerance", [0, 1, 4])
def test_the_rate_is_that_of_the_alignment_package(walks, tolerance):
    table = cycle_table(nearest_table(walks), tolerance=tolerance)
    assert table.rate == cycle_consistency_rate(walks, tolerance=tolerance)


def test_each_cell_counts_the_frames_that_come_home(walks):
    table = cycle_table(nearest_table(walks))
    for a in range(5):
        for b in set(range(5)) - {a}:
            missed = np.abs(cycle_back(walks[a], walks[b]) - np.arange(len(walks[a])))
            assert (table.home[a, b], table.total[a, b]) == ((missed <= 1).sum(), len(walks[a]))
    assert not np.diag(table.home).any() and not np.diag(table.total).any()


def test_one_video_has_no_rate(walks):
    assert cycle_table(nearest_table(walks[:1])).rate is None
    assert three_way_rate(walks[:2]) == (None, 0)


def test_the_three_way_rate_is_that_of_the_alignment_package(walks):
    assert three_way_rate(walks) == (cycle_consistency_rate(walks, three_way=True), 5)


def test_of_many_videos_some_are_drawn_with_a_seed(walks):
    draws = [three_way_rate(walks, most=3, seed=seed) for seed in range(6)]
    assert {used for _, used in draws} == {3} and len({rate for rate, _ in draws}) > 1
    assert three_way_rate(walks, most=3, seed=2) == draws[2]
