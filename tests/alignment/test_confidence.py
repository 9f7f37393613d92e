import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cycleback.alignment import (
    Calibration,
    align,
    confidence,
    match_confidence,
    match_score,
    squared_distances,
)
from cycleback.alignment.calibration import NEAREST, WARPED
from cycleback.alignment.confidence import cycle_agreement, frame_confidence, match_focus, match_margin

PLAIN = Calibration((0.0, 1.0), (0.0, 1.0))


def test_formula_on_a_case_worked_by_hand():
    distances = np.array([[1.0, 4.0, 8.0], [3.0, 2.0, 6.0]])  # medians 4 and 3
    indices = np.array([0, 0])  # the second frame's match belongs to the first: it lands one frame away
    np.testing.assert_allclose(match_margin(distances, indices), [0.75, 0.0])
    np.testing.assert_allclose(cycle_agreement(distances, indices), [1.0, math.exp(-1 / 0.2)])
    np.testing.assert_allclose(match_focus(distances, indices), [1.0, 1.0])  # all lies within three frames
    np.testing.assert_allclose(match_score(distances, indices), [0.75**0.25, 0.0])


def test_focus_equals_the_loop(rng):
    distances = rng.random((12, 90))  # within 5 %, 4.5 frames
    indices = distances.argmin(axis=1)
    unit = np.median([min(row) for row in distances])
    weights = [[math.exp(-(d - min(row)) / unit) for d in row] for row in distances.tolist()]
    near = [
        sum(w for j, w in enumerate(row) if abs(j - match) <= 4.5)
        for row, match in zip(weights, indices, strict=True)
    ]
    np.testing.assert_allclose(match_focus(distances, indices), np.array(near) / np.sum(weights, axis=1))


def test_a_match_with_a_rival_far_away_is_half_as_focused():
    distances = np.full((20, 100), 50.0)
    frames = np.arange(20)
    distances[frames, 3 * frames] = 1.0
    alone = match_score(distances, 3 * frames)
    distances[frames, 3 * frames + 30] = 1.0
    np.testing.assert_allclose(match_score(distances, 3 * frames), alone / 2, rtol=1e-6)


def test_confidence_is_the_calibrated_score(rng):
    distances = rng.random((30, 40))
    falling, rising = np.arange(30)[::-1], np.arange(30)
    assert (match_confidence(distances, falling) == NEAREST.apply(match_score(distances, falling))).all()
    assert (match_confidence(distances, rising) == WARPED.apply(match_score(distances, rising))).all()
    own = match_confidence(distances, rising, calibration=PLAIN)
    np.testing.assert_array_equal(own, match_score(distances, rising))


def test_confidence_of_long_videos_comes_from_a_sample(rng, monkeypatch):
    monkeypatch.setattr(confidence, "SAMPLED_FRAMES", 200)
    walk = np.cumsum(rng.normal(size=(600, 4)), axis=0)
    other = walk + 4 * rng.normal(size=walk.shape)
    expected = match_confidence(squared_distances(walk, other), np.arange(600))
    found = frame_confidence(walk, other, np.arange(600), chunk_frames=64)
    assert np.abs(found - expected).mean() < 0.05 and 0.3 < expected.mean() < 0.8


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
    confidence = match_confidence(distances, indices)
    assert confidence.shape == (4,) and (confidence >= 0).all() and (confidence <= 1).all()


def test_confidence_does_not_change_with_the_scale_of_the_embeddings(rng):
    distances = squared_distances(rng.normal(size=(9, 4)), rng.normal(size=(7, 4)))
    indices = distances.argmin(axis=1)
    expected = match_confidence(distances, indices)
    np.testing.assert_allclose(match_confidence(1e6 * distances, indices), expected)
