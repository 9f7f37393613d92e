import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cycleback.alignment import dtw_path, kernels
from cycleback.alignment.band import slanted, whole
from cycleback.alignment.ends import FREE, fixed_ends, free_ends
from cycleback.alignment.warp import swept

SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=9)
TIED_COSTS = hnp.arrays(np.float64, SHAPES, elements=st.integers(0, 2).map(float))  # equal ways are common
COSTS = hnp.arrays(np.float64, SHAPES, elements=st.floats(0, 1e6))
NUMPY = (kernels.sweep_diagonals, kernels.backtrack_cells)
CELLS = (kernels.sweep_cells, kernels.backtrack_cells)  # not compiled


def ends_for(cost, method):
    if method == "dtw":
        return fixed_ends(*cost.shape)
    return free_ends(*cost.shape, free=FREE[method], skip_cost=0.5)


def blocks(cost, rows):
    return [(i, 0, cost[i : i + rows]) for i in range(0, len(cost), rows)]


@settings(deadline=None)  # the first call may compile
@given(cost=COSTS | TIED_COSTS, method=st.sampled_from(["dtw", *FREE]), rows=st.integers(1, 9))
def test_all_kernels_agree_to_the_last_bit_whatever_the_blocks(cost, method, rows):
    ends, band = ends_for(cost, method), whole(*cost.shape)
    path, price = swept([(0, 0, cost)], band, ends)
    for kind in (NUMPY, CELLS):
        other, same = swept(blocks(cost, rows), band, ends, kernels=kind)
        assert same == price
        np.testing.assert_array_equal(other, path)


@settings(deadline=None)  # the first call may compile
@given(seed=st.integers(0, 99), width=st.sampled_from([0.2, 0.3, 0.5]), rows=st.integers(1, 12))
def test_all_kernels_agree_within_a_band(seed, width, rows):
    rng = np.random.default_rng(seed)
    cost = rng.integers(0, 4, size=rng.integers(8, 14, size=2)).astype(float)
    band, ends = slanted(*cost.shape, width=width), fixed_ends(*cost.shape)
    path, price = swept([(0, 0, cost)], band, ends)
    for kind in (NUMPY, CELLS):
        other, same = swept(blocks(cost, rows), band, ends, kernels=kind)
        assert same == price
        np.testing.assert_array_equal(other, path)


def test_the_compiled_kernels_are_used_where_numba_is_installed():
    pytest.importorskip("numba")
    assert kernels.fastest_kernels() != NUMPY


def test_all_kernels_agree_on_a_whole_video(rng):
    cost = rng.random((211, 307))
    path = swept([(0, 0, cost)], whole(211, 307), fixed_ends(211, 307), kernels=NUMPY)[0]
    np.testing.assert_array_equal(dtw_path(cost), path)


@pytest.fixture
def fresh_kernels():
    for function in (kernels.compiled, kernels.fastest_kernels):
        function.cache_clear()
    yield
    for function in (kernels.compiled, kernels.fastest_kernels):
        function.cache_clear()


def test_works_without_numba(monkeypatch, fresh_kernels):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert kernels.fastest_kernels() == NUMPY
    assert dtw_path(1 - np.eye(3)).tolist() == [[0, 0], [1, 1], [2, 2]]


def test_works_where_compiled_code_cannot_be_kept(monkeypatch, fresh_kernels):
    numba = pytest.importorskip("numba")

    def njit(*functions, cache=False, nogil=False):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return functions[0] if functions else lambda function: function

    monkeypatch.setattr(numba, "njit", njit)
    assert dtw_path(1 - np.eye(3)).tolist() == [[0, 0], [1, 1], [2, 2]]
