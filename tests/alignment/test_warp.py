import sys

import numpy as np
import pytest

from cycleback.alignment import dtw, dtw_path, dtw_to_many, squared_distances, warp
from cycleback.alignment.bounds import FREE, default_skip_cost, price_ends, whole_band
from cycleback.alignment.dtw import warp_cost
from cycleback.alignment.warp import halve, warp_frames, warp_long


def fixed(a, b):
    return price_ends(len(a), len(b))


def free(a, b):
    return price_ends(len(a), len(b), free=FREE["overlap"], skip_cost=default_skip_cost(a, b))


@pytest.fixture
def pair(rng):
    walk = np.cumsum(rng.normal(size=(211, 4)), axis=0)
    return walk, walk[np.sort(rng.integers(0, 211, size=173))] + 0.2 * rng.normal(size=(173, 4))


@pytest.mark.parametrize("rows", [1, 7, 512])
def test_blocks_of_frames_give_the_path_of_the_whole_matrix(pair, monkeypatch, rows):
    monkeypatch.setattr(warp, "BLOCK_ROWS", rows)
    path, price = warp_frames(*pair, ends=fixed(*pair), band=whole_band(211, 173))
    distances = squared_distances(*pair)
    np.testing.assert_array_equal(path, dtw_path(distances))
    assert price == pytest.approx(distances[path[:, 0], path[:, 1]].sum())


@pytest.mark.parametrize("ends_of", [fixed, free])
def test_coarse_to_fine_finds_the_path_of_the_whole_matrix(pair, monkeypatch, ends_of):
    monkeypatch.setattr(warp, "COARSE_CELLS", 500)
    path, price = warp_long(*pair, ends_of=ends_of, radius=6)
    expected, least = warp_cost(squared_distances(*pair), ends=ends_of(*pair))
    np.testing.assert_array_equal(path, expected)
    assert price == pytest.approx(least)


@pytest.mark.parametrize("ends_of", [fixed, free])
def test_a_narrow_radius_still_gives_a_path_and_never_a_cheaper_one(rng, monkeypatch, ends_of):
    monkeypatch.setattr(warp, "COARSE_CELLS", 20)
    for seed in range(20):
        a, b = (np.random.default_rng(seed).normal(size=(n, 2)) for n in rng.integers(1, 60, size=2))
        path, price = warp_long(a, b, ends_of=ends_of, radius=0)
        assert price >= warp_cost(squared_distances(a, b), ends=ends_of(a, b))[1] - 1e-9
        assert {tuple(step) for step in np.diff(path, axis=0).tolist()} <= {(1, 1), (1, 0), (0, 1)}


def test_coarse_to_fine_keeps_to_the_slanted_band(pair, monkeypatch):
    monkeypatch.setattr(warp, "COARSE_CELLS", 500)
    path, _ = warp_long(*pair, ends_of=fixed, width=0.1, radius=6)
    assert np.abs(path[:, 1] - path[:, 0] * 172 / 210).max() <= 17.3
    np.testing.assert_array_equal(path, dtw_path(squared_distances(*pair), band=0.1))


def test_no_block_holds_more_than_the_band_needs(rng, monkeypatch):
    sizes = []
    monkeypatch.setattr(
        warp, "pairwise_squared", lambda a, b: sizes.append(len(a) * len(b)) or squared_distances(a, b)
    )
    walk = np.cumsum(rng.normal(size=(6000, 2)), axis=0)
    path, _ = warp_long(walk, walk + 0.01, ends_of=fixed)
    assert max(sizes) <= warp.COARSE_CELLS and path.tolist() == [[i, i] for i in range(6000)]


@pytest.mark.parametrize("frames", [1, 2, 7, 8])
def test_halving_takes_means_of_two(rng, frames):
    video = rng.normal(size=(frames, 3))
    expected = [video[i : i + 2].mean(axis=0) for i in range(0, frames, 2)]
    np.testing.assert_allclose(halve(video), expected)


@pytest.fixture
def others(rng):
    return [rng.normal(size=(n, 3)) for n in (1, 14, 9, 30, 2)]


@pytest.mark.parametrize("cells", [10, 200, 2_000_000])
@pytest.mark.parametrize("frames", [1, 11])
def test_many_at_once_are_the_same_as_one_by_one(rng, others, monkeypatch, cells, frames):
    monkeypatch.setattr(warp, "BATCH_CELLS", cells)
    a = rng.normal(size=(frames, 3))
    paths = dtw_to_many(a, others)
    assert [p.tolist() for p in paths] == [dtw_path(squared_distances(a, b)).tolist() for b in others]


def test_costs_are_those_of_the_paths(rng, others):
    a = rng.normal(size=(11, 3))
    for (path, price), b in zip(warp.warp_to_many(a, others), others, strict=True):
        assert price == pytest.approx(squared_distances(a, b)[path[:, 0], path[:, 1]].sum())


def test_the_same_without_numba(rng, others, monkeypatch):
    a = rng.integers(0, 3, size=(11, 3)).astype(float)  # equal ways are common
    expected = [path.tolist() for path in dtw_to_many(a, others)]
    monkeypatch.setattr(dtw, "fastest_kernels", dtw.fastest_kernels.__wrapped__)
    monkeypatch.setitem(sys.modules, "numba", None)
    assert [path.tolist() for path in dtw_to_many(a, others)] == expected


def test_bad_videos_are_named(rng, others):
    with pytest.raises(ValueError, match=r"different embedding sizes \[2, 3, 3, 3, 3, 3\]"):
        dtw_to_many(rng.normal(size=(4, 2)), others)
    with pytest.raises(ValueError, match="expected at least 2 videos, got 1"):
        dtw_to_many(rng.normal(size=(4, 2)), [])
