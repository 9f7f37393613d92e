import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from cycleback.alignment import Calibration
from cycleback.alignment.calibration import NEAREST, WARPED, pool_adjacent_violators


@settings(deadline=None)
@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=12), seed=st.integers(0, 99))
def test_pooling_equals_isotonic_regression(values, seed):
    weights = np.random.default_rng(seed).integers(1, 5, size=len(values)).astype(float)
    expected = IsotonicRegression().fit_transform(np.arange(len(values)), values, sample_weight=weights)
    np.testing.assert_allclose(pool_adjacent_violators(np.array(values), weights), expected, atol=1e-9)


def test_a_fitted_curve_tells_the_share_of_right_matches(rng):
    scores = rng.random(40_000)
    right = rng.random(40_000) < scores**2  # the truth
    curve = Calibration.fit(scores, right)
    middle = np.linspace(0.05, 0.9, 50)
    assert np.abs(curve.apply(middle) - middle**2).max() < 0.03


def test_curve_never_falls_and_keeps_its_ends(rng):
    scores = rng.random(500)
    curve = Calibration.fit(scores, rng.random(500) < 1 - scores)  # scores that mislead
    shares = curve.apply(np.linspace(0, 1, 200))
    assert (np.diff(shares) >= 0).all() and shares[0] == 0 and shares[-1] == 1
    assert curve.apply([0.2, 0.8]) == pytest.approx([0.5, 0.5], abs=0.1)


def test_few_or_equal_samples_are_enough():
    assert Calibration.fit([0.4], [True]).apply([0.4]).tolist() == [1.0]
    assert Calibration.fit([0.5] * 9, [True] * 3 + [False] * 6).apply([0.5])[0] <= 1
    assert Calibration.fit([0.0, 1.0], [False, True]).apply([0.0, 1.0]).tolist() == [0.0, 1.0]


def test_saved_as_plain_lists_and_back(rng):
    curve = Calibration.fit(rng.random(50), rng.random(50) < 0.5)
    assert Calibration.from_dict(json.loads(json.dumps(curve.to_dict()))) == curve


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
        Calibration.fit(scores, right)


def test_curves_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"shares must rise from 0 to 1, got \(0.0, 0.7, 0.6, 1.0\)"):
        Calibration((0.0, 0.2, 0.4, 1.0), (0.0, 0.7, 0.6, 1.0))
    with pytest.raises(ValueError, match="got 2 scores and 3 shares"):
        Calibration((0.0, 1.0), (0.0, 0.5, 1.0))
    with pytest.raises(ValueError, match=r"needs scores and shares, got \['scores'\]"):
        Calibration.from_dict({"scores": [0, 1]})
