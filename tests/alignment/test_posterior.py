import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from cycleback.alignment import posterior
from cycleback.alignment.bounds import Band
from cycleback.alignment.posterior import find_posterior


def of_matrix(distances):
    return lambda rows, columns: distances[np.ix_(rows, columns)]


def sum_all_warps(distances, allowed=None):
    """The definition in the module, warp by warp."""
    num_rows, num_columns = distances.shape
    allowed = np.ones(distances.shape, dtype=bool) if allowed is None else allowed
    possible = np.where(allowed, distances, np.inf)
    unit = np.median([min(row) for row in possible]) / 2
    excess = [[d - min(possible[:, j]) / 2 for j, d in enumerate(row)] for row in possible]
    fit = np.array([[0.98 * math.exp(-(e - min(row)) / unit) + 0.02 for e in row] for row in excess])
    pace = math.sqrt((num_columns - 1) / (num_rows - 1))
    shares = np.zeros(distances.shape)
    for warp in combinations_with_replacement(range(num_columns), num_rows):
        if not all(allowed[i, j] for i, j in enumerate(warp)):
            continue
        weight = math.prod(fit[i, j] for i, j in enumerate(warp))
        weight *= math.exp(-(warp[-1] - warp[0]) / (2 * pace + 1))
        for i, j in enumerate(warp):
            shares[i, j] += weight
    return shares / shares.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("shape", [(4, 6), (5, 3), (2, 5)])
def test_posterior_equals_the_sum_over_all_warps(rng, shape):
    distances = rng.random(shape)
    found = find_posterior(of_matrix(distances), shape).shares
    np.testing.assert_allclose(found, sum_all_warps(distances), atol=1e-12)


def test_frames_that_pins_rule_out_have_no_share(rng):
    distances = 1 + rng.random((5, 6))
    within = Band(np.array([0, 0, 2, 3, 3]), np.array([3, 3, 3, 6, 6]))
    allowed = (np.arange(6) >= within.start[:, None]) & (np.arange(6) < within.stop[:, None])
    found = find_posterior(of_matrix(distances), (5, 6), within=within).shares
    assert (found[~allowed] == 0).all()
    least = np.where(allowed, distances, np.inf).min(axis=1, keepdims=True)
    expected = sum_all_warps(
        np.where(allowed, distances, least), allowed
    )  # the unit sees only what is allowed
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_share_near_a_match_counts_whole_frames(rng):
    distances = rng.random((20, 30))
    found = find_posterior(of_matrix(distances), (20, 30))
    frames, matches = np.array([0, 7, 19]), np.array([1, 12, 29])
    expected = [
        sum(found.shares[i, j] for j in range(30) if abs(j - match) <= 3)
        for i, match in zip(frames, matches, strict=True)
    ]
    np.testing.assert_allclose(found.sum_near(frames, matches, 3), expected, atol=1e-12)


def test_long_videos_are_thinned_and_say_the_same(rng, monkeypatch):
    walk = np.cumsum(rng.normal(size=(300, 4)), axis=0)
    other = walk + 3 * rng.normal(size=walk.shape)
    distances = cdist(walk, other, "sqeuclidean")
    frames = np.arange(300)
    thin = find_posterior(of_matrix(distances), (300, 300))
    assert thin.shares.shape == (128, 128)
    monkeypatch.setattr(posterior, "MAX_FRAMES", 300)
    whole = find_posterior(of_matrix(distances), (300, 300))
    gap = thin.sum_near(frames, frames, 15) - whole.sum_near(frames, frames, 15)
    assert np.abs(gap).mean() < 0.05 < whole.sum_near(frames, frames, 5).std()


def test_videos_that_rule_out_every_warp_are_no_error():
    half = np.zeros((128, 128)) + 1e9
    half[np.arange(128), (np.arange(128) + 64) % 128] = 0  # the second half comes first, frame by frame
    shares = find_posterior(of_matrix(half), half.shape).shares
    assert np.isfinite(shares).all() and (shares.sum(axis=1) <= 1 + 1e-9).all()
