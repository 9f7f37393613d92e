import numpy as np
import pytest

from cycleback.alignment import dtw_path, squared_distances, warp
from cycleback.alignment.band import whole
from cycleback.alignment.ends import FREE, default_skip_cost, fixed_ends, free_ends
from cycleback.alignment.warp import halved, warp_cost, warp_frames, warp_long


def fixed(a, b):
    return fixed_ends(len(a), len(b))


def free(a, b):
    return free_ends(len(a), len(b), free=FREE["overlap"], skip_cost=default_skip_cost(a, b))


@pytest.fixture
def pair(rng):
    walk = np.cumsum(rng.normal(size=(211, 4)), axis=0)
    return walk, walk[np.sort(rng.integers(0, 211, size=173))] + 0.2 * rng.normal(size=(173, 4))


@pytest.mark.parametrize("rows", [1, 7, 512])
def test_blocks_of_frames_give_the_path_of_the_whole_matrix(pair, monkeypatch, rows):
    monkeypatch.setattr(warp, "BLOCK_ROWS", rows)
    path, price = warp_frames(*pair, ends=fixed(*pair), band=whole(211, 173))
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
    np.testing.assert_allclose(halved(video), expected)
