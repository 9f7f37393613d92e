import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from alignment import loops
from cycleback.alignment import align, align_many, dtw_path, match_frames, squared_distances

align_module = sys.modules["cycleback.alignment.align"]  # the package's `align` is the function


def test_nearest_takes_the_nearest_frame(videos):
    a, b = videos[:2]
    alignment = align(a, b, method="nearest")
    distances = cdist(a, b, "sqeuclidean")
    np.testing.assert_array_equal(alignment.indices, distances.argmin(axis=1))
    np.testing.assert_allclose(alignment.distances, distances.min(axis=1))
    assert alignment.path is None and alignment.method == "nearest"


def test_dtw_keeps_its_path(videos):
    a, b = videos[:2]
    alignment = align(a, b, method="dtw")
    distances = cdist(a, b, "sqeuclidean")
    np.testing.assert_array_equal(alignment.path, dtw_path(distances))
    np.testing.assert_array_equal(alignment.indices, match_frames(alignment.path))
    np.testing.assert_allclose(alignment.distances, distances[np.arange(9), alignment.indices])
    assert alignment.method == "dtw" and (np.diff(alignment.indices) >= 0).all()


def test_a_video_at_half_speed_is_found_again(rng):
    walk = np.cumsum(rng.normal(size=(50, 8)), axis=0)
    slower = np.repeat(walk, 2, axis=0)
    for method in ("nearest", "dtw"):
        assert (align(slower, walk, method=method).indices == np.arange(100) // 2).all()
        assert (align(walk, slower, method=method).indices // 2 == np.arange(50)).all()


def test_centering_takes_out_what_all_frames_of_a_video_share(rng):
    walk = np.cumsum(rng.normal(size=(50, 8)), axis=0)
    elsewhere = walk + 30 * rng.normal(size=8)
    for method in ("nearest", "dtw"):
        centered = align(walk, elsewhere, method=method, center=True)
        assert (centered.indices == np.arange(50)).all() and centered.confidence.min() > 0.99
        assert align(walk, elsewhere, method=method).confidence.mean() < 0.5


METHODS = ["auto", "nearest", "dtw", "subsequence", "open_end", "overlap"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("frames_a", "frames_b"), [(1, 1), (1, 6), (6, 1), (5, 8)])
def test_every_frame_gets_one_match(rng, method, frames_a, frames_b):
    a, b = rng.normal(size=(frames_a, 3)), rng.normal(size=(frames_b, 3))
    alignment = align(a.astype(np.float32), b.tolist(), method=method)
    assert alignment.indices.dtype == np.int64
    assert alignment.indices.shape == alignment.confidence.shape == alignment.distances.shape == (frames_a,)
    assert alignment.indices.min() >= 0 and alignment.indices.max() < frames_b
    assert alignment.matched.shape == (frames_a,) and alignment.matched.any()


def test_unknown_method_is_refused(videos):
    with pytest.raises(ValueError, match="'subsequence', 'open_end', 'overlap', got 'soft'"):
        align(videos[0], videos[1], method="soft")


def test_inputs_that_cannot_be_aligned_are_refused(videos):
    with pytest.raises(ValueError, match=r"b must be \(S, D\) with at least one of each, got \(0, 3\)"):
        align(videos[0], videos[1][:0])
    with pytest.raises(ValueError, match="different embedding sizes, 3 and 2"):
        align(videos[0], videos[1][:, :2])
    with pytest.raises(ValueError, match=r"a\[2, 1\] is nan"):
        align(np.where(np.arange(27).reshape(9, 3) == 7, np.nan, videos[0]), videos[1], method="overlap")


def test_options_of_other_methods_are_refused(videos):
    a, b = videos[:2]
    with pytest.raises(ValueError, match=r"for methods 'auto' and 'dtw' only, got band 0.2 with 'overlap'"):
        align(a, b, method="overlap", band=0.2)
    with pytest.raises(ValueError, match=r"skip_cost is for .*'overlap' only, got 1.0 with 'auto'"):
        align(a, b, skip_cost=1.0)
    with pytest.raises(ValueError, match=r"finite number, 0 or more, got -1.0"):
        align(a, b, method="overlap", skip_cost=-1.0)


def test_abstains_where_a_match_is_more_likely_wrong(videos):
    alignment = align(videos[0], videos[1])
    assert alignment.abstain.tolist() == (alignment.confidence < 0.5).tolist()


@pytest.mark.parametrize("method", METHODS)
def test_long_videos_give_the_same_answer_without_the_whole_matrix(rng, monkeypatch, method):
    walk = np.cumsum(rng.normal(size=(300, 8)), axis=0)
    other = walk[np.sort(rng.integers(0, 300, size=250))] + 0.1 * rng.normal(size=(250, 8))
    whole = align(walk, other, method=method)
    monkeypatch.setattr(align_module, "MAX_CELLS", 1000)
    long = align(walk, other, method=method)
    np.testing.assert_array_equal(long.indices, whole.indices)
    np.testing.assert_array_equal(long.matched, whole.matched)
    np.testing.assert_allclose(long.confidence, whole.confidence, atol=1e-6)
    np.testing.assert_allclose(long.distances, whole.distances, atol=1e-6)


def ride(times):
    """A smooth curve (N, 3) at `times` in [0, 1]: its coordinates never all stand still."""
    return np.stack([np.sin(3 * times), np.cos(3 * times), 4 * times], axis=1)


@pytest.mark.parametrize("method", ["auto", "dtw", "nearest"])
@pytest.mark.parametrize("phase", [0.1, 0.3, 0.45])
def test_positions_between_frames_are_nearer_the_truth(method, phase):
    a, b = ride((np.arange(1, 39) + phase) / 40), ride(np.arange(41) / 40)
    truth = np.arange(1, 39) + phase
    alignment = align(a, b, method=method)
    inside = (alignment.indices > 0) & (alignment.indices < 40) & alignment.matched
    errors = np.abs(alignment.positions - truth)[inside]
    assert errors.mean() < 0.2 * np.abs(alignment.indices - truth)[inside].mean()
    assert np.abs(alignment.positions - alignment.indices).max() <= 0.5


@pytest.mark.parametrize("method", METHODS)
def test_positions_stay_within_half_a_frame_and_keep_the_order(videos, method):
    for a in videos:
        for b in videos:
            found = align(a, b, method=method)
            assert found.positions.dtype == np.float64
            assert np.abs(found.positions - found.indices)[found.matched].max() <= 0.5
            assert found.positions.min() >= 0 and found.positions.max() <= len(b) - 1
            if method != "nearest":
                assert (np.diff(found.positions) >= 0).all()
                assert set(found.positions[~found.matched]) <= set(found.positions[found.matched])


def test_positions_are_the_matches_where_no_parabola_has_a_vertex(videos):
    alike = np.ones((6, 3))
    assert (align(alike, alike[:5], method="dtw").positions % 1 == 0).all()
    assert (
        align(videos[0], videos[1][:2]).positions.tolist() == align(videos[0], videos[1][:2]).indices.tolist()
    )


def test_a_time_prior_adds_the_squared_difference_of_shares(videos):
    a, b = videos[:2]
    distances = cdist(a, b, "sqeuclidean")
    apart = np.subtract.outer(np.linspace(0, 1, len(a)), np.linspace(0, 1, len(b))) ** 2
    for weight in (0.5, 3.0):
        timed = distances + weight * distances.mean() * apart
        nearest = align(a, b, method="nearest", time_prior=weight)
        np.testing.assert_array_equal(nearest.indices, timed.argmin(axis=1))
        np.testing.assert_allclose(nearest.distances, distances[np.arange(9), nearest.indices])
        np.testing.assert_array_equal(align(a, b, method="dtw", time_prior=weight).path, dtw_path(timed))
    straight = align(a, b, method="nearest", time_prior=1e6).indices
    np.testing.assert_array_equal(straight, apart.argmin(axis=1))


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_a_time_prior_is_a_weight(videos, weight):
    with pytest.raises(ValueError, match=f"time_prior must be a finite number, 0 or more, got {weight}"):
        align(videos[0], videos[1], time_prior=weight)
    with pytest.raises(ValueError, match=r"time_prior is for .* only, got 1.0 with 'overlap'"):
        align(videos[0], videos[1], method="overlap", time_prior=1.0)


@pytest.fixture
def takes(rng):
    """One action at five paces."""
    walk = np.cumsum(rng.normal(size=(60, 6)), axis=0)
    paces = [np.sort(rng.integers(0, 60, size=n)) for n in (50, 60, 70, 80, 55)]
    return [walk[pace] + 0.1 * rng.normal(size=(len(pace), 6)) for pace in paces], paces


def test_every_video_runs_forwards_on_the_clock(videos):
    found = align_many(videos)
    ticks = len(found.template)
    assert found.indices.shape == (4, ticks) and found.template.shape == (ticks, 3)
    for video, indices, own in zip(videos, found.indices, found.ticks, strict=True):
        assert (np.diff(indices) >= 0).all() and (np.diff(own) >= 0).all()
        assert indices.min() >= 0 and indices.max() < len(video)
        assert own.shape == (len(video),) and own.min() >= 0 and own.max() < ticks


def test_the_same_moment_has_the_same_tick(takes):
    videos, paces = takes
    found = align_many(videos)
    for indices, pace in zip(found.indices[1:], paces[1:], strict=True):
        assert np.median(np.abs(pace[indices] - paces[0][found.indices[0]])) <= 1


def test_ways_through_the_clock_agree(takes):
    """u to v to w is u to w, up to frames that share a tick."""
    found = align_many(takes[0])
    step = max(np.diff(indices).max() for indices in found.indices)
    for u, v, w in ((0, 1, 2), (3, 0, 4), (2, 4, 1)):
        straight, round_about = found.between(u, w), found.between(v, w)[found.between(u, v)]
        assert np.median(np.abs(straight - round_about)) <= 1
        assert np.abs(straight - round_about).max() <= 2 * step


def test_between_is_about_as_good_as_aligning_the_pair(takes):
    videos, paces = takes
    found = align_many(videos)
    by_clock = np.abs(paces[1][found.between(0, 1)] - paces[0]).mean()
    by_pair = np.abs(paces[1][align(videos[0], videos[1]).indices] - paces[0]).mean()
    assert by_clock <= by_pair + 1


def test_medoid_has_the_least_cost_to_the_others(videos):
    def cost(a, b):
        return loops.dtw(squared_distances(a, b).tolist())[0] / (len(a) + len(b))

    totals = [sum(cost(a, b) for b in videos) for a in videos]
    found = align_many(videos, iterations=0)
    assert found.medoid == int(np.argmin(totals))
    np.testing.assert_array_equal(found.template, videos[found.medoid])


def test_a_round_of_averaging_equals_the_loop(videos):
    start = align_many(videos, iterations=0)
    paths = [loops.dtw(squared_distances(start.template, video).tolist())[1] for video in videos]
    expected = loops.barycentre(paths, videos, len(start.template))
    np.testing.assert_allclose(align_many(videos, iterations=1).template, expected)


def test_no_round_makes_the_template_worse(videos):
    costs = align_many(videos, iterations=6).costs
    assert len(costs) == 7 and (np.diff(costs) <= 1e-9).all() and costs[-1] < costs[0]


def test_equal_videos_are_the_template(videos):
    found = align_many([videos[0]] * 3)
    assert (found.indices == np.arange(9)).all() and found.costs[-1] == 0
    np.testing.assert_allclose(found.template, videos[0])


def test_centering_takes_out_what_the_frames_of_each_of_several_videos_share(takes):
    videos = takes[0]
    shifted = [video + 50 * number for number, video in enumerate(videos)]
    centered = [video - video.mean(axis=0) for video in videos]
    found = align_many(shifted, center=True)
    np.testing.assert_array_equal(found.indices, align_many(centered).indices)


def test_long_videos_go_coarse_to_fine(takes, monkeypatch):
    whole = align_many(takes[0])
    monkeypatch.setattr(align_module, "MAX_CELLS", 100)
    np.testing.assert_array_equal(align_many(takes[0]).indices, whole.indices)


@pytest.mark.parametrize("frames", [1, 2])
def test_very_short_videos_share_a_clock_too(rng, frames):
    found = align_many([rng.normal(size=(n, 3)) for n in (frames, 5, 1)])
    assert found.indices.shape == (3, len(found.template))


def test_bad_input_is_refused(videos):
    with pytest.raises(ValueError, match="expected at least 2 videos, got 1"):
        align_many(videos[:1])
    with pytest.raises(ValueError, match="iterations must not be negative, got -1"):
        align_many(videos, iterations=-1)
    with pytest.raises(ValueError, match=r"different embedding sizes \[3, 2\]"):
        align_many([videos[0], videos[1][:, :2]])
    with pytest.raises(ValueError, match=r"embeddings\[1\]\[0, 0\] is nan"):
        align_many([videos[0], np.full((4, 3), np.nan)])
    with pytest.raises(ValueError, match=r"embeddings\[0\] must be \(N, D\) .* got \(0, 3\)"):
        align_many([videos[0][:0], videos[1]])
