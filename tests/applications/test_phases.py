import numpy as np
import pytest

from cycleback.applications.phases import discover_phases, find_changes, measure_change
from cycleback.errors import DataError
from phased_clips import staircase


def test_changes_are_where_the_clips_move_on() -> None:
    clips, truth = zip(*map(staircase, range(8)), strict=True)
    found = discover_phases(clips)
    assert len(found.changes) == 3
    assert np.abs(found.starts - np.array(truth)).max() <= 2
    assert (found.stability == 1).all()


def test_a_number_of_phases_takes_the_largest_changes_or_more_of_them() -> None:
    clips, truth = zip(*map(staircase, range(8)), strict=True)
    two = discover_phases(clips, count=2)
    assert two.starts.shape == (8, 1)
    assert min(abs(int(two.starts[0, 0]) - each) for each in truth[0]) <= 2
    assert len(discover_phases(clips, count=6).changes) == 5
    with pytest.raises(DataError, match="at least 2 phases, got 1"):
        discover_phases(clips, count=1)
    with pytest.raises(DataError, match=r"only \d+ phases can be told apart in these clips, not 90"):
        discover_phases(clips, count=90)


def test_a_change_that_one_clip_alone_shows_does_not_count() -> None:
    clips, truth = zip(*map(staircase, range(6)), strict=True)
    odd = clips[0].copy()
    odd[: truth[0][0] // 2] += 20.0
    found = discover_phases([odd, *clips[1:]])
    forced = discover_phases([odd, *clips[1:]], count=5)
    assert (found.stability == 1).all() and len(found.changes) == 3
    assert np.abs(found.starts[1:] - np.array(truth[1:])).max() <= 2
    assert forced.stability.min() < 0.9


def test_change_is_how_much_better_two_constants_fit_than_one() -> None:
    rng = np.random.default_rng(0)
    rows, window = rng.normal(size=(30, 3)), 5
    strength = measure_change(rows, window)
    for point in range(1, 30):
        before, after = rows[max(0, point - window) : point], rows[point : point + window]
        both = np.concatenate([before, after])
        one = ((both - both.mean(axis=0)) ** 2).sum()
        two = ((before - before.mean(axis=0)) ** 2).sum() + ((after - after.mean(axis=0)) ** 2).sum()
        assert strength[point] == pytest.approx(one - two)


def test_a_constant_trajectory_has_no_change() -> None:
    assert len(find_changes(np.ones((20, 2)))) == 0
