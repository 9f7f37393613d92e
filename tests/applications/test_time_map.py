"""Clocks made from warping paths that are known."""

import numpy as np
import pytest

from cycleback.applications.time_map import TimeMap, time_map


def test_there_and_back_is_where_one_started() -> None:
    clock = TimeMap(target_s=np.array([0.0, 1.0, 4.0]), source_s=np.array([2.0, 2.5, 3.0]))
    seconds = np.linspace(-1, 6, 50)
    np.testing.assert_allclose(clock.target(clock.source(seconds)), seconds, atol=1e-12)


def test_the_diagonal_is_the_identity() -> None:
    times = np.arange(40) / 25
    clock = time_map(np.repeat(np.arange(40)[:, None], 2, axis=1), target_times=times, source_times=times)
    np.testing.assert_allclose(clock.source(times), times, atol=2e-3)


def test_frame_rates_do_not_matter() -> None:
    slow, fast = np.arange(30) / 10, np.arange(90) / 30  # three seconds each
    path = np.array([(row // 3, row) for row in range(90)])
    clock = time_map(path, target_times=slow, source_times=fast)
    np.testing.assert_allclose(clock.source(slow)[3:-3], slow[3:-3] + 1 / 30, atol=0.005)


def test_uneven_frame_times_count_as_seconds() -> None:
    uneven = np.cumsum(np.tile([0.02, 0.06], 40)) - 0.02
    even = np.arange(80) / 25
    path = np.repeat(np.arange(80)[:, None], 2, axis=1)
    clock = time_map(path, target_times=uneven, source_times=even)
    assert float(clock.source(1.6)) == pytest.approx(1.6, abs=0.03)


def test_a_standing_path_still_has_a_way_back() -> None:
    path = np.array([(row, 0) for row in range(30)] + [(29, column) for column in range(1, 5)])
    clock = time_map(path, target_times=np.arange(30) / 30, source_times=np.arange(5) / 30)
    assert (np.diff(clock.source(np.linspace(0, 1, 100))) > 0).all()


def test_one_frame_is_enough() -> None:
    path = np.array([(0, 0), (0, 1), (0, 2)])
    clock = time_map(path, target_times=np.zeros(1), source_times=np.array([0.0, 0.5, 1.0]))
    assert float(clock.source(0.1)) == pytest.approx(0.6)


def test_points_that_do_not_rise_are_refused() -> None:
    with pytest.raises(ValueError, match="source_s must rise"):
        TimeMap(target_s=np.array([0.0, 1.0]), source_s=np.array([1.0, 1.0]))
    with pytest.raises(ValueError, match=r"got \(2,\) and \(3,\)"):
        TimeMap(target_s=np.zeros(2), source_s=np.zeros(3))
