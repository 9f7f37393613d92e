import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from alignment import loops
from cycleback.alignment import align, bounds, dtw_path, squared_distances
from cycleback.alignment.bounds import (
    FREE,
    band_around,
    default_skip_cost,
    intersect,
    price_ends,
    slanted_band,
    whole_band,
)
from cycleback.alignment.dtw import warp_cost


def cells(band):
    return {(i, j) for i, (start, stop) in enumerate(zip(*band, strict=True)) for j in range(start, stop)}


@pytest.mark.parametrize(("shape", "width"), [((9, 14), 0.1), ((14, 9), 0.2), ((7, 7), 0.15), ((30, 4), 0.5)])
def test_slanted_band_holds_the_cells_near_the_line(shape, width):
    slope = (shape[1] - 1) / (shape[0] - 1)
    near = {(i, j) for i, j in np.ndindex(shape) if abs(j - i * slope) <= width * shape[1] + 1e-9}
    assert cells(slanted_band(*shape, width=width)) == near


def test_path_stays_within_the_band_and_is_the_cheapest_there(rng):
    cost = rng.random((12, 17))
    inside = cells(slanted_band(12, 17, width=0.15))
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
    assert slanted_band(*shape, width=0.01).cells == max(shape)


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
    band = band_around(path, scale=scale, radius=radius, shape=shape)
    assert cells(band) >= {(i, j) for i, j in near if 0 <= i < 11 and 0 <= j < 13}
    assert (np.diff(band.start) >= 0).all() and (np.diff(band.stop) >= 0).all()
    rows = {i for i, _ in cells(band)}
    assert rows == {i for i, j in near if 0 <= i < 11}


def test_common_cells_are_in_both():
    one = slanted_band(9, 14, width=0.1)
    other = band_around(np.array([[2, 1], [3, 4]]), scale=2, radius=2, shape=(9, 14))
    assert cells(intersect(one, other)) == cells(one) & cells(other)
    assert cells(intersect(one, whole_band(9, 14))) == cells(one)


TINY = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=4)
COSTS = hnp.arrays(np.float64, TINY, elements=st.integers(0, 8).map(float))


@settings(deadline=None, max_examples=40)
@given(cost=COSTS, skip_cost=st.sampled_from([0.0, 0.5, 2.0, 5.0]), method=st.sampled_from(sorted(FREE)))
def test_no_path_of_all_is_cheaper(cost, skip_cost, method):
    free = price_ends(*cost.shape, free=FREE[method], skip_cost=skip_cost)
    path, price = warp_cost(cost, ends=free)
    expected = loops.cheapest_free(cost.tolist(), skip_cost, **FREE[method]._asdict())
    assert price == expected
    assert loops.free_price(cost.tolist(), path.tolist(), skip_cost) == expected


@settings(deadline=None, max_examples=40)
@given(cost=COSTS)
def test_fixed_ends_pay_each_cell_once(cost):
    corner = (cost.shape[0] - 1, cost.shape[1] - 1)
    prices = [
        sum(cost[cell] for cell in path) for path in loops.all_paths(cost.shape, (0, 0)) if path[-1] == corner
    ]
    assert warp_cost(cost, ends=price_ends(*cost.shape))[1] == min(prices)


@pytest.fixture
def moments(rng):
    """A video whose frames are all different."""
    return rng.normal(size=(120, 8))


def noisy(video, rng):
    return video + 0.1 * rng.normal(size=video.shape)


def test_a_clip_is_found_inside_a_longer_video(moments, rng):
    found = align(noisy(moments[40:80], rng), moments, method="subsequence")
    assert found.indices.tolist() == list(range(40, 80)) and found.matched.all()
    assert found.path[0].tolist() == [0, 40] and found.path[-1].tolist() == [39, 79]


def test_a_clip_at_half_speed_is_found_inside_a_longer_video(moments, rng):
    found = align(noisy(np.repeat(moments[40:80], 2, axis=0), rng), moments, method="subsequence")
    assert found.indices.tolist() == [40 + frame // 2 for frame in range(80)]


def test_the_whole_of_a_is_matched_where_only_b_is_free(moments, rng):
    found = align(rng.normal(size=(30, 8)) * 20, moments, method="subsequence")
    assert found.matched.all() and found.path[0, 0] == 0 and found.path[-1, 0] == 29


@pytest.mark.parametrize("longer", ["a", "b", "both"])
def test_tails_are_left_out_with_an_open_end(moments, rng, longer):
    """Both show the first 60 moments; then one of them stops, or they part."""
    other = np.concatenate([moments[:60], rng.normal(size=(40, 8))])
    a, b = {"a": (moments, other[:60]), "b": (other[:60], moments), "both": (moments, other)}[longer]
    found = align(noisy(a, rng), b, method="open_end")
    assert found.matched.tolist() == [frame < 60 for frame in range(len(a))]
    assert found.path.tolist() == [[frame, frame] for frame in range(60)]


def test_only_the_part_in_common_is_matched(moments, rng):
    a, b = noisy(moments[:80], rng), moments[30:]  # in common: moments 30 to 79
    found, back = align(a, b, method="overlap"), align(b, a, method="overlap")
    assert found.matched.tolist() == [frame >= 30 for frame in range(80)]
    assert found.indices[30:].tolist() == list(range(50))
    assert back.matched.tolist() == [frame < 50 for frame in range(90)]


def test_the_part_in_common_of_slowly_changing_videos_is_found_roughly(rng):
    walk = np.cumsum(rng.normal(size=(120, 8)), axis=0)
    found = align(noisy(walk[:80], rng), walk[40:], method="overlap")
    assert (found.matched == (np.arange(80) >= 40)).mean() > 0.8
    assert np.abs(found.indices[50:70] - np.arange(10, 30)).max() <= 1


def test_frames_left_out_follow_the_ends_of_the_path_and_are_not_trusted(moments):
    found = align(moments[:80], moments[40:], method="overlap")
    assert (found.indices[:40] == 0).all() and not found.matched[:40].any()
    assert (found.confidence[:40] == 0).all() and found.abstain[:40].all() and not found.abstain[40:].any()


def test_equal_videos_lose_no_frame(moments):
    for method in FREE:
        found = align(moments, moments, method=method)
        assert found.matched.all() and (found.indices == np.arange(120)).all()


def test_a_frame_is_matched_up_to_the_skip_cost_and_no_further():
    a, b = np.array([[0.0], [10.0], [20.0]]), np.array([[1.0], [10.0], [23.0]])  # squared: 1, 0, 9
    assert align(a, b, method="overlap", skip_cost=0.5).matched.tolist() == [False, True, False]
    assert align(a, b, method="overlap", skip_cost=4.0).matched.tolist() == [True, True, False]
    assert align(a, b, method="overlap", skip_cost=16.0).matched.tolist() == [True, True, True]


def test_default_skip_cost_is_the_formula(videos):
    a, b = videos[:2]
    distances = squared_distances(a, b)
    near = np.median([*distances.min(axis=1), *distances.min(axis=0)])
    assert default_skip_cost(a, b) == pytest.approx(near + 0.25 * (np.median(distances) - near))


def test_skip_cost_of_long_videos_is_taken_from_a_sample(rng, monkeypatch):
    monkeypatch.setattr(bounds, "SKIP_COST_FRAMES", 200)
    walk = np.cumsum(rng.normal(size=(1000, 2)), axis=0)
    distances = squared_distances(walk, walk + 0.1)
    near = np.median(distances.min(axis=1))
    expected = near + 0.25 * (np.median(distances) - near)
    assert default_skip_cost(walk, walk + 0.1) == pytest.approx(expected, rel=0.05)
