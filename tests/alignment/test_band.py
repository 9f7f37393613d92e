import numpy as np
import pytest

from alignment import loops
from cycleback.alignment import align, dtw_path, squared_distances
from cycleback.alignment.band import around, common, slanted, whole


def cells(band):
    return {(i, j) for i, (start, stop) in enumerate(zip(*band, strict=True)) for j in range(start, stop)}


@pytest.mark.parametrize(("shape", "width"), [((9, 14), 0.1), ((14, 9), 0.2), ((7, 7), 0.15), ((30, 4), 0.5)])
def test_slanted_band_holds_the_cells_near_the_line(shape, width):
    slope = (shape[1] - 1) / (shape[0] - 1)
    near = {(i, j) for i, j in np.ndindex(shape) if abs(j - i * slope) <= width * shape[1] + 1e-9}
    assert cells(slanted(*shape, width=width)) == near


def test_path_stays_within_the_band_and_is_the_cheapest_there(rng):
    cost = rng.random((12, 17))
    inside = cells(slanted(12, 17, width=0.15))
    dear = [[cost[i, j] if (i, j) in inside else 1e6 for j in range(17)] for i in range(12)]
    path = [tuple(cell) for cell in dtw_path(cost, band=0.15).tolist()]
    assert set(path) <= inside and path == loops.dtw(dear)[1]


def test_the_widest_band_is_no_band(rng):
    cost = rng.random((12, 17))
    np.testing.assert_array_equal(dtw_path(cost, band=1.0), dtw_path(cost))


def test_align_takes_a_band(videos):
    a, b = videos[:2]
    path = align(a, b, band=0.1).path
    np.testing.assert_array_equal(path, dtw_path(squared_distances(a, b), band=0.1))
    assert np.abs(path[:, 1] - path[:, 0] * 13 / 8).max() <= 1.4


def test_a_diagonal_is_the_narrowest_band():
    assert dtw_path(1 - np.eye(50), band=1e-6).tolist() == [[i, i] for i in range(50)]


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1)])
def test_single_frames_need_all_columns(shape):
    assert slanted(*shape, width=0.01).cells == max(shape)


def test_a_band_too_narrow_for_any_path_is_refused_with_the_least_that_is_not(rng):
    cost = rng.random((9, 14))
    with pytest.raises(
        ValueError, match=r"band 0.01 leaves no path through 9 x 14 frames: use at least 0.0581"
    ):
        dtw_path(cost, band=0.01)
    assert len(dtw_path(cost, band=0.0581)) >= 14


@pytest.mark.parametrize("width", [0, -0.1, 1.5, float("nan")])
def test_a_band_is_a_share(videos, width):
    with pytest.raises(ValueError, match=f"above 0 and at most 1, got {width}"):
        align(videos[0], videos[1], band=width)


@pytest.mark.parametrize(("scale", "radius"), [(1, 0), (2, 0), (2, 1), (2, 3)])
def test_band_around_a_path_holds_all_cells_within_the_radius(scale, radius):
    path = np.array([[1, 1], [2, 1], [3, 2], [3, 3], [3, 4]])
    shape = (11, 13)
    near = {
        (i, j)
        for r, c in path.tolist()
        for i in range(r * scale - radius, (r + 1) * scale + radius)
        for j in range(c * scale - radius, (c + 1) * scale + radius)
    }
    band = around(path, scale=scale, radius=radius, shape=shape)
    assert cells(band) >= {(i, j) for i, j in near if 0 <= i < 11 and 0 <= j < 13}
    assert (np.diff(band.start) >= 0).all() and (np.diff(band.stop) >= 0).all()
    rows = {i for i, _ in cells(band)}
    assert rows == {i for i, j in near if 0 <= i < 11}


def test_common_cells_are_in_both():
    one = slanted(9, 14, width=0.1)
    other = around(np.array([[2, 1], [3, 4]]), scale=2, radius=2, shape=(9, 14))
    assert cells(common(one, other)) == cells(one) & cells(other)
    assert cells(common(one, whole(9, 14))) == cells(one)
