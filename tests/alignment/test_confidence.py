import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.isotonic import IsotonicRegression

from cycleback.alignment import (
    ConfidenceCurve,
    align,
    estimate_confidence,
    score_matches,
    squared_distances,
)
from cycleback.alignment.confidence import (
    NEAREST,
    WARPED,
    pool_adjacent_violators,
    sample_confidence,
)
from cycleback.alignment.posterior import find_posterior

PLAIN = ConfidenceCurve((0.0, 1.0), (0.0, 1.0))


def test_score_is_the_probability_of_being_within_the_tolerance(rng):
    distances = rng.random((40, 90))  # within 5 %, 4.5 frames
    indices = distances.argmin(axis=1)
    shares = find_posterior(lambda rows, columns: distances[np.ix_(rows, columns)], (40, 90)).shares
    near = [share[max(match - 4, 0) : match + 5].sum() for share, match in zip(shares, indices, strict=True)]
    # a reach of 4.5 frames counts the four whole frames to either side
    np.testing.assert_allclose(score_matches(distances, indices), near, atol=1e-9)


def test_a_match_with_a_rival_far_away_is_less_sure():
    frames = np.arange(30)
    distances = np.full((30, 60), 5.0)
    distances[frames, frames] = distances[29, 35] = 1.0  # two frames may follow the frame before
    rival = score_matches(distances, frames)
    distances[29, 35] = 5.0
    alone = score_matches(distances, frames)
    assert rival[29] < 0.95 * alone[29]
    np.testing.assert_allclose(rival[:20], alone[:20], rtol=0.02)


def test_matches_of_videos_that_do_not_run_alike_are_worth_nothing(rng):
    walk = np.cumsum(rng.normal(size=(60, 8)), axis=0)
    assert align(walk, walk[::-1], method="dtw").confidence.max() < 0.1 < align(walk, walk).confidence.min()


def test_confidence_is_the_calibrated_score(rng):
    distances = rng.random((30, 40))
    falling, rising = np.arange(30)[::-1], np.arange(30)
    assert (estimate_confidence(distances, falling) == NEAREST.apply(score_matches(distances, falling))).all()
    assert (estimate_confidence(distances, rising) == WARPED.apply(score_matches(distances, rising))).all()
    own = estimate_confidence(distances, rising, curve=PLAIN)
    np.testing.assert_array_equal(own, score_matches(distances, rising))


def test_confidence_needs_no_matrix_of_all_distances(rng):
    walk = np.cumsum(rng.normal(size=(600, 4)), axis=0)
    other = walk + 4 * rng.normal(size=walk.shape)
    expected = estimate_confidence(squared_distances(walk, other), np.arange(600))
    found = sample_confidence(walk, other, np.arange(600))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert 0.3 < expected.mean() < 1


@pytest.mark.parametrize("method", ["nearest", "dtw"])
def test_identical_videos_are_certain(rng, method):
    video = rng.normal(size=(60, 16))
    np.testing.assert_allclose(align(video, video, method=method).confidence, 1.0)


@pytest.mark.parametrize("method", ["nearest", "dtw"])
def test_collapsed_embeddings_are_worth_nothing(rng, method):
    collapsed = np.ones((60, 16))
    assert (align(collapsed, collapsed, method=method).confidence == 0).all()
    assert (align(rng.normal(size=(60, 16)), collapsed, method=method).confidence == 0).all()


@pytest.mark.parametrize("method", ["nearest", "dtw"])
def test_the_same_action_beats_an_unrelated_one(rng, method):
    walk = np.cumsum(rng.normal(size=(80, 16)), axis=0)
    slower = np.repeat(walk, 2, axis=0) + 0.3 * rng.normal(size=(160, 16))
    assert align(walk, slower, method=method).confidence.mean() > 0.9
    unrelated = np.cumsum(rng.normal(size=(80, 16)), axis=0)
    assert align(walk, unrelated, method=method).confidence.mean() < 0.3


def test_a_disturbed_stretch_is_less_sure_than_the_rest(rng):
    walk = np.cumsum(rng.normal(size=(80, 16)), axis=0)
    disturbed = walk.copy()
    disturbed[30:50] = 10 * rng.normal(size=(20, 16))
    confidence = align(disturbed, walk).confidence
    assert confidence[30:50].mean() < 0.5 * np.delete(confidence, slice(30, 50)).mean()


def test_a_still_stretch_is_not_punished_for_equal_frames(rng):
    walk = np.cumsum(rng.normal(size=(40, 8)), axis=0)
    held = np.insert(walk, [20] * 15, walk[20], axis=0)  # fifteen copies: the way back finds the first
    assert align(held, walk, method="nearest").confidence.min() > 0.99


@settings(deadline=None)
@given(distances=hnp.arrays(np.float64, (4, 5), elements=st.floats(0, 1e12)), seed=st.integers(0, 99))
@example(distances=np.array([[1e12, 5e-324, 5e-324, 5e-324, 0]] * 4), seed=0)
def test_confidence_lies_between_zero_and_one(distances, seed):
    indices = np.random.default_rng(seed).integers(0, 5, size=4)
    confidence = estimate_confidence(distances, indices)
    assert confidence.shape == (4,) and (confidence >= 0).all() and (confidence <= 1).all()


def test_confidence_does_not_change_with_the_scale_of_the_embeddings(rng):
    distances = squared_distances(rng.normal(size=(9, 4)), rng.normal(size=(7, 4)))
    indices = distances.argmin(axis=1)
    expected = estimate_confidence(distances, indices)
    np.testing.assert_allclose(estimate_confidence(1e6 * distances, indices), expected)


@settings(deadline=None)
@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=12), seed=st.integers(0, 99))
def test_pooling_equals_isotonic_regression(values, seed):
    weights = np.random.default_rng(seed).integers(1, 5, size=len(values)).astype(float)
    expected = IsotonicRegression().fit_transform(np.arange(len(values)), values, sample_weight=weights)
    np.testing.assert_allclose(pool_adjacent_violators(np.array(values), weights), expected, atol=1e-9)


def test_a_fitted_curve_tells_the_share_of_right_matches(rng):
    scores = rng.random(40_000)
    right = rng.random(40_000) < scores**2  # the truth
    curve = ConfidenceCurve.fit(scores, right)
    middle = np.linspace(0.05, 0.9, 50)
    assert np.abs(curve.apply(middle) - middle**2).max() < 0.03


def test_curve_never_falls_and_keeps_its_ends(rng):
    scores = rng.random(500)
    curve = ConfidenceCurve.fit(scores, rng.random(500) < 1 - scores)  # scores that mislead
    shares = curve.apply(np.linspace(0, 1, 200))
    assert (np.diff(shares) >= 0).all() and shares[0] == 0 and shares[-1] == 1
    assert curve.apply([0.2, 0.8]) == pytest.approx([0.5, 0.5], abs=0.1)


def test_few_or_equal_samples_are_enough():
    assert ConfidenceCurve.fit([0.4], [True]).apply([0.4]).tolist() == [1.0]
    assert ConfidenceCurve.fit([0.5] * 9, [True] * 3 + [False] * 6).apply([0.5])[0] <= 1
    assert ConfidenceCurve.fit([0.0, 1.0], [False, True]).apply([0.0, 1.0]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("curve", [WARPED, NEAREST])
def test_built_in_curves_tell_chance_from_certainty(curve):
    assert curve.apply([0.0, 1.0]).tolist() == [0.0, 1.0]
    assert curve.apply([0.02])[0] < 0.5 < curve.apply([0.7])[0]


@pytest.mark.parametrize(
    ("scores", "right", "message"),
    [
        ([0.5, 1.5], [True, False], r"scores must lie in \[0, 1\], got 0.5 to 1.5"),
        ([0.5, float("nan")], [True, False], "got nan to nan"),
        ([0.5], [True, False], r"one length, got \(1,\) and \(2,\)"),
        ([], [], r"got \(0,\) and \(0,\)"),
        ([0.5, 0.6], [0.3, 1.0], "True or False"),
    ],
)
def test_samples_that_are_none_are_refused(scores, right, message):
    with pytest.raises(ValueError, match=message):
        ConfidenceCurve.fit(scores, right)


def test_curves_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"shares must rise from 0 to 1, got \(0.0, 0.7, 0.6, 1.0\)"):
        ConfidenceCurve((0.0, 0.2, 0.4, 1.0), (0.0, 0.7, 0.6, 1.0))
    with pytest.raises(ValueError, match="got 2 scores and 3 shares"):
        ConfidenceCurve((0.0, 1.0), (0.0, 0.5, 1.0))
