import math
from importlib import import_module
from itertools import groupby, product

import numpy as np
import pytest

from cycleback.alignment import align, find_ends, find_part


def slow_ends(cost, pace):
    """The cost of the cheapest part that ends at each frame of b: every way through (T, S) is tried."""
    num_rows, num_columns = cost.shape
    best, lengths = np.full(num_columns, np.inf), np.zeros(num_columns)
    for start in range(num_columns):
        for steps in product(range(math.ceil(pace[1]) + 1), repeat=num_rows - 1):
            columns = start + np.cumsum([0, *steps])
            stays = max((len(list(run)) for step, run in groupby(steps) if step == 0), default=0)
            if columns[-1] >= num_columns or stays > math.ceil(1 / pace[0]) - 1:
                continue
            mean = cost[np.arange(num_rows), columns].mean()
            if mean < best[columns[-1]]:
                best[columns[-1]], lengths[columns[-1]] = mean, columns[-1] + 1 - start
    is_allowed = (lengths >= pace[0] * num_rows - 1) & (lengths <= pace[1] * num_rows + 1)
    return np.where(is_allowed, best, np.inf)


@pytest.mark.parametrize("pace", [(0.4, 2.5), (0.5, 2.0), (1.0, 1.0), (0.9, 3.0)])
def test_every_end_has_the_cheapest_part_within_the_limits(rng, pace):
    cost = rng.random((5, 8))
    np.testing.assert_allclose(find_ends(cost, pace=pace).cost, slow_ends(cost, pace))


def test_several_matrices_are_searched_as_one_by_one(rng):
    costs = rng.random((3, 6, 20))
    together = find_ends(costs)
    for number, cost in enumerate(costs):
        np.testing.assert_array_equal(together.cost[number], find_ends(cost).cost)
        np.testing.assert_array_equal(together.start[number], find_ends(cost).start)


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
def test_a_part_is_found_at_several_speeds(rng, speed):
    action = np.cumsum(rng.normal(size=(60, 6)), axis=0)
    shown = action[(np.arange(int(60 / speed)) * speed).astype(int)]
    away = 40 + np.cumsum(rng.normal(size=(100, 6)), axis=0)
    match = align(action, np.concatenate([away, shown, away]), method="subsequence")
    assert abs(match.path[0, 1] - 100) <= 2 and abs(match.path[-1, 1] - (99 + len(shown))) <= 2


def test_one_look_alike_frame_does_not_take_the_whole_of_a(rng):
    """Without limits, all of a is squeezed into a few frames of b, or spread over hundreds."""
    still = rng.normal(size=(1, 6))
    action = np.concatenate([np.repeat(still, 20, axis=0), np.cumsum(rng.normal(size=(20, 6)), axis=0)])
    longer = np.concatenate([np.repeat(still, 300, axis=0), action[20:]]) + 0.01 * rng.normal(size=(320, 6))
    match = align(action, longer, method="subsequence")
    assert 0.4 * 40 - 1 <= match.path[-1, 1] - match.path[0, 1] + 1 <= 2.5 * 40 + 1
    assert match.path[-1, 1] == 319
    free = align(action, longer, method="subsequence", skip_cost=1.0)
    assert free.path[-1, 1] - free.path[0, 1] > 2.5 * 40


def test_other_limits_may_be_set(rng):
    action = np.cumsum(rng.normal(size=(40, 6)), axis=0)
    slow = np.concatenate([50 + rng.normal(size=(30, 6)), np.repeat(action, 5, axis=0)])
    match = align(action, slow, method="subsequence", pace=(2.0, 6.0))
    assert match.path[0, 1] <= 36 and match.path[-1, 1] >= 224


def test_a_long_recording_is_searched_without_the_matrix_of_all_distances(rng, monkeypatch):
    action = np.cumsum(rng.normal(size=(64, 6)), axis=0)
    longer = np.concatenate([30 + rng.normal(size=(400, 6)), action, 30 + rng.normal(size=(400, 6))])
    monkeypatch.setattr(import_module("cycleback.alignment.align"), "MAX_CELLS", 20_000)
    match = align(action, longer, method="subsequence")
    assert np.abs(match.indices - np.arange(400, 464)).max() <= 4


def test_a_video_too_short_for_the_pace_is_matched_as_a_whole(rng):
    assert find_part(rng.random((20, 5))) is None
    match = align(rng.normal(size=(20, 3)), rng.normal(size=(5, 3)), method="subsequence")
    assert match.path[0].tolist() == [0, 0] and match.path[-1].tolist() == [19, 4]


def test_limits_that_mean_nothing_are_refused(rng):
    a, b = rng.normal(size=(5, 3)), rng.normal(size=(9, 3))
    with pytest.raises(ValueError, match=r"the first not larger, got 2\.0 and 0\.5"):
        align(a, b, method="subsequence", pace=(2.0, 0.5))
    with pytest.raises(ValueError, match=r"for 'subsequence' only, got \(0\.5, 2\.0\) with 'dtw'"):
        align(a, b, method="dtw", pace=(0.5, 2.0))


def test_an_open_end_may_be_written_with_a_hyphen(rng):
    a, b = rng.normal(size=(5, 3)), rng.normal(size=(9, 3))
    one, other = align(a, b, method="open-end"), align(a, b, method="open_end")
    assert one.method == other.method == "open_end" and one.indices.tolist() == other.indices.tolist()
