import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from cycleback.alignment import estimate_confidence, squared_distances
from cycleback.evaluation import CalibrationBin, calibration
from cycleback.evaluation.calibration import auroc, calibration_error, event_confidences, pooled_bins
from cycleback.evaluation.events import Labels


@pytest.fixture
def matches(rng):
    """200 confidences, many of them equal, and whether each match is right."""
    confidences = np.round(rng.uniform(size=200), 2)
    return confidences, rng.uniform(size=200) < confidences**2


def test_auroc_is_that_of_scikit_learn(matches):
    confidences, is_right = matches
    assert calibration(*matches).auroc == pytest.approx(roc_auc_score(is_right, confidences), abs=1e-12)


def test_auroc_of_equal_scores_is_a_half():
    assert auroc(np.ones(4), np.array([True, False, True, False])) == 0.5


@pytest.mark.parametrize("truth", [True, False])
def test_auroc_needs_right_and_wrong_matches(truth):
    assert auroc(np.array([0.1, 0.9]), np.full(2, truth)) is None


def test_bins_hold_what_a_loop_puts_in_them(matches):
    confidences, is_right = matches
    found = calibration(*matches, bins=5).bins
    for number, part in enumerate(found):
        here = [i for i, c in enumerate(confidences) if min(int(c * 5), 4) == number]
        assert part.count == len(here)
        assert part.confidence == pytest.approx(np.mean(confidences[here]))
        assert part.right == pytest.approx(np.mean(is_right[here]))


def test_the_calibration_error_is_the_mean_gap():
    bins = [CalibrationBin(0.2, 0.5, 10), CalibrationBin(0.8, 0.6, 30)]
    assert calibration_error(bins) == pytest.approx((10 * 0.3 + 30 * 0.2) / 40)


def test_confidence_that_is_the_share_of_right_matches_has_no_error():
    confidences = np.repeat([0.25, 0.75], 8)
    is_right = np.tile([True, False, False, False, True, True, True, False], 2)
    is_right = np.concatenate(
        [np.tile([True, False, False, False], 2), np.tile([True, True, True, False], 2)]
    )
    assert calibration(confidences, is_right).error == pytest.approx(0)


def test_no_matches_have_no_numbers():
    result = calibration(np.empty(0), np.empty(0, dtype=bool))
    assert (result.bins, result.error, result.auroc, result.count) == ((), None, None, 0)


def test_pooled_bins_are_those_of_all_matches_together(matches):
    confidences, is_right = matches
    parts = [calibration(confidences[i::3], is_right[i::3]).bins for i in range(3)]
    for pooled, whole in zip(pooled_bins(parts), calibration(*matches).bins, strict=True):
        assert pooled.count == whole.count
        assert (pooled.confidence, pooled.right) == pytest.approx((whole.confidence, whole.right))


def test_confidences_are_those_of_whole_alignments(walks):
    labels = Labels.of([{"x": 3, "y": 9}, {"y": 20}, {}, {"x": 1}, {"x": 0, "y": 22}])
    found = event_confidences(walks, labels)
    for k, (a, frame) in enumerate(zip(labels.videos, labels.frames, strict=True)):
        assert np.isnan(found[a, k])
        for b in set(range(5)) - {a}:
            distances = squared_distances(walks[a], walks[b])
            assert found[b, k] == estimate_confidence(distances, distances.argmin(axis=1))[frame]


def test_of_many_pairs_some_are_drawn_with_a_seed(walks):
    labels = Labels.of([{"x": 3}] * 5)
    draws = [event_confidences(walks, labels, most=7, seed=seed) for seed in (0, 0, 1)]
    assert [int((~np.isnan(draw)).sum()) for draw in draws] == [7, 7, 7]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (np.isnan(draws[0]) != np.isnan(draws[2])).any()


def test_confidences_outside_zero_and_one_are_an_error():
    with pytest.raises(ValueError, match=r"got -0.5 to 1.5"):
        calibration(np.array([-0.5, 1.5]), np.array([True, False]))


def test_truth_of_another_shape_is_an_error():
    with pytest.raises(ValueError, match=r"\(3,\) and \(2,\)"):
        calibration(np.zeros(3), np.zeros(2, dtype=bool))
