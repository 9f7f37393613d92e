import sys

import numpy as np
import pytest

from cycleback.alignment import batch, dtw_path, dtw_to_many, kernels, squared_distances


@pytest.fixture
def others(rng):
    return [rng.normal(size=(n, 3)) for n in (1, 14, 9, 30, 2)]


@pytest.mark.parametrize("cells", [10, 200, 2_000_000])
@pytest.mark.parametrize("frames", [1, 11])
def test_many_at_once_are_the_same_as_one_by_one(rng, others, monkeypatch, cells, frames):
    monkeypatch.setattr(batch, "BATCH_CELLS", cells)
    a = rng.normal(size=(frames, 3))
    paths = dtw_to_many(a, others)
    assert [p.tolist() for p in paths] == [dtw_path(squared_distances(a, b)).tolist() for b in others]


def test_costs_are_those_of_the_paths(rng, others):
    a = rng.normal(size=(11, 3))
    for (path, price), b in zip(batch.warp_to_many(a, others), others, strict=True):
        assert price == pytest.approx(squared_distances(a, b)[path[:, 0], path[:, 1]].sum())


def test_the_same_without_numba(rng, others, monkeypatch):
    a = rng.integers(0, 3, size=(11, 3)).astype(float)  # equal ways are common
    expected = [path.tolist() for path in dtw_to_many(a, others)]
    for function in (kernels.compiled, kernels.fastest_kernels):
        monkeypatch.setattr(kernels, function.__name__, function.__wrapped__)
    monkeypatch.setattr(batch, "compiled", kernels.compiled)
    monkeypatch.setitem(sys.modules, "numba", None)
    assert [path.tolist() for path in dtw_to_many(a, others)] == expected


def test_the_kernel_does_not_compile_to_anything_else(rng):
    cost, bounds = rng.integers(0, 3, size=(6, 9)).astype(float), np.array([0, 4, 9])
    paths, prices = np.zeros((6 + 6 + 9, 2), dtype=np.int64), np.zeros(2)
    starts = batch.paths_cells(cost, bounds, paths, prices)
    assert paths[starts[0] : 10].tolist() == dtw_path(cost[:, :4]).tolist()
    assert paths[starts[1] : 21].tolist() == dtw_path(cost[:, 4:]).tolist()


def test_bad_videos_are_named(rng, others):
    with pytest.raises(ValueError, match=r"different embedding sizes \[2, 3, 3, 3, 3, 3\]"):
        dtw_to_many(rng.normal(size=(4, 2)), others)
    with pytest.raises(ValueError, match="expected at least 2 videos, got 1"):
        dtw_to_many(rng.normal(size=(4, 2)), [])
