import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from alignment import loops
from cycleback.alignment import dtw, dtw_path, match_frames
from cycleback.alignment.bounds import FREE, price_ends, slanted_band, whole_band
from cycleback.alignment.dtw import extend_row, warp_blocks

SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=9)
TIED_COSTS = hnp.arrays(np.float64, SHAPES, elements=st.integers(0, 2).map(float))  # equal ways are common
COSTS = hnp.arrays(np.float64, SHAPES, elements=st.floats(0, 1e6))


@settings(deadline=None)  # the first call may compile
@given(cost=COSTS | TIED_COSTS)
def test_path_equals_the_loop_over_cells(cost):
    total, path = loops.dtw(cost.tolist())
    assert dtw_path(cost).tolist() == [list(cell) for cell in path]
    assert cost[tuple(zip(*path, strict=True))].sum() == pytest.approx(total)


@settings(deadline=None)  # the first call may compile
@given(cost=COSTS | TIED_COSTS)
def test_path_is_monotone_contiguous_and_joins_both_ends(cost):
    path = dtw_path(cost)
    steps = {tuple(step) for step in np.diff(path, axis=0).tolist()}
    assert path[0].tolist() == [0, 0] and path[-1].tolist() == [cost.shape[0] - 1, cost.shape[1] - 1]
    assert steps <= {(1, 1), (1, 0), (0, 1)}


@given(cost=COSTS)
def test_rows_one_by_one_are_the_rows_of_the_recurrence(cost):
    row, totals = None, loops.accumulated_cost(cost)
    for i, costs in enumerate(cost):
        row = extend_row(row, costs)
        expected = totals[i]
        atol = 1e-9 * cost.sum()
        np.testing.assert_allclose(row - row.min(), expected - expected.min(), atol=atol)


def test_equal_costs_prefer_both_then_a_then_b():
    assert dtw_path(np.zeros((3, 3))).tolist() == [[0, 0], [1, 1], [2, 2]]
    assert dtw_path(np.zeros((3, 2))).tolist() == [[0, 0], [1, 0], [2, 1]]
    assert dtw_path([[0, 0], [1, 0], [0, 0]]).tolist() == [[0, 0], [1, 1], [2, 1]]


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1)])
def test_single_frames_have_one_path(shape):
    assert len(dtw_path(np.ones(shape))) == max(shape)


def test_layout_of_the_array_does_not_matter(rng):
    cost = rng.random((8, 12))
    np.testing.assert_array_equal(dtw_path(np.asfortranarray(cost)), dtw_path(cost))
    np.testing.assert_array_equal(dtw_path(np.repeat(cost, 2, axis=1)[:, ::2]), dtw_path(cost))


def test_input_is_left_as_it_was(rng):
    cost = rng.random((5, 6))
    before = cost.copy()
    dtw_path(cost)
    np.testing.assert_array_equal(cost, before)


@settings(deadline=None)  # the first call may compile
@given(cost=COSTS | TIED_COSTS)
def test_indices_are_the_mean_match_of_each_frame_and_never_run_backwards(cost):
    path = dtw_path(cost)
    indices = match_frames(path)
    means = [int(path[path[:, 0] == i, 1].mean()) for i in range(len(cost))]
    assert indices.tolist() == means and (np.diff(indices) >= 0).all()


def test_middle_of_a_run_is_taken():
    path = [[0, 0], [0, 1], [0, 2], [1, 3], [1, 4], [2, 4]]
    assert match_frames(path).tolist() == [1, 3, 4]


def test_frames_outside_the_path_take_its_first_or_last_match():
    assert match_frames([[2, 5], [3, 6], [3, 8]], num_frames=6).tolist() == [5, 5, 5, 7, 7, 7]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_costs_that_are_not_finite_are_located(bad):
    cost = np.ones((3, 4))
    cost[1, 2] = bad
    with pytest.raises(ValueError, match=rf"cost\[1, 2\] is {bad}"):
        dtw_path(cost)


def test_empty_inputs_are_refused():
    with pytest.raises(ValueError, match=r"cost must be \(T, S\) with at least one of each, got \(0, 4\)"):
        dtw_path(np.ones((0, 4)))
    with pytest.raises(ValueError, match=r"path must be \(L, 2\) with at least one of each, got \(0, 2\)"):
        match_frames(np.ones((0, 2)))


NUMPY = (dtw.sweep_diagonals, dtw.trace_back)
CELLS = (dtw.sweep_cells, dtw.trace_back)  # not compiled


def ends_for(cost, method):
    if method == "dtw":
        return price_ends(*cost.shape)
    return price_ends(*cost.shape, free=FREE[method], skip_cost=0.5)


def blocks(cost, rows):
    return [(i, 0, cost[i : i + rows]) for i in range(0, len(cost), rows)]


@settings(deadline=None)  # the first call may compile
@given(cost=COSTS | TIED_COSTS, method=st.sampled_from(["dtw", *FREE]), rows=st.integers(1, 9))
def test_all_kernels_agree_to_the_last_bit_whatever_the_blocks(cost, method, rows):
    ends, band = ends_for(cost, method), whole_band(*cost.shape)
    path, price = warp_blocks([(0, 0, cost)], band, ends)
    for kind in (NUMPY, CELLS):
        other, same = warp_blocks(blocks(cost, rows), band, ends, kernels=kind)
        assert same == price
        np.testing.assert_array_equal(other, path)


@settings(deadline=None)  # the first call may compile
@given(seed=st.integers(0, 99), width=st.sampled_from([0.2, 0.3, 0.5]), rows=st.integers(1, 12))
def test_all_kernels_agree_within_a_band(seed, width, rows):
    rng = np.random.default_rng(seed)
    cost = rng.integers(0, 4, size=rng.integers(8, 14, size=2)).astype(float)
    band, ends = slanted_band(*cost.shape, width=width), price_ends(*cost.shape)
    path, price = warp_blocks([(0, 0, cost)], band, ends)
    for kind in (NUMPY, CELLS):
        other, same = warp_blocks(blocks(cost, rows), band, ends, kernels=kind)
        assert same == price
        np.testing.assert_array_equal(other, path)


def test_the_compiled_kernels_are_used_where_numba_is_installed():
    pytest.importorskip("numba")
    assert dtw.fastest_kernels() != NUMPY


def test_all_kernels_agree_on_a_whole_video(rng):
    cost = rng.random((211, 307))
    path = warp_blocks([(0, 0, cost)], whole_band(211, 307), price_ends(211, 307), kernels=NUMPY)[0]
    np.testing.assert_array_equal(dtw_path(cost), path)


@pytest.fixture
def fresh_kernels():
    dtw.fastest_kernels.cache_clear()
    yield
    dtw.fastest_kernels.cache_clear()


def test_works_without_numba(monkeypatch, fresh_kernels):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert dtw.fastest_kernels() == NUMPY
    assert dtw_path(1 - np.eye(3)).tolist() == [[0, 0], [1, 1], [2, 2]]
