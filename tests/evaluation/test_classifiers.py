import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from cycleback.evaluation.classifiers import fit_classifier, standardised


def test_standardised_is_what_scikit_learn_does(rng):
    features, others = rng.normal(3, 5, size=(30, 4)), rng.normal(size=(7, 4))
    features[:, 2] = 0.1  # constant
    scaler = StandardScaler().fit(features)
    known, rest = standardised(features, others)
    np.testing.assert_allclose(known, scaler.transform(features), atol=1e-12)
    np.testing.assert_allclose(rest[:, [0, 1, 3]], scaler.transform(others)[:, [0, 1, 3]])


@pytest.mark.parametrize("classifier", ["logistic", "svm"])
def test_phases_that_lie_apart_are_told_apart(classifier):
    phases = np.repeat([2, 5, 7], 10)
    predict = fit_classifier(classifier, phases[:, None].astype(float), phases)
    np.testing.assert_array_equal(predict(np.array([[2.1], [4.9], [7.0]])), [2, 5, 7])


@pytest.mark.parametrize("classifier", ["logistic", "svm"])
def test_one_phase_is_always_that(classifier):
    predict = fit_classifier(classifier, np.zeros((3, 1)), np.full(3, 4))
    np.testing.assert_array_equal(predict(np.ones((2, 1))), [4, 4])


def test_a_stop_before_it_has_settled_is_silent(rng):
    fit_classifier("logistic", rng.normal(size=(50, 4)), rng.integers(0, 3, 50), max_iterations=1)
