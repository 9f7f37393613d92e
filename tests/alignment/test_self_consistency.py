import numpy as np
import pytest

from cycleback.alignment import align, fit_without_labels, score_matches, squared_distances
from cycleback.alignment.confidence import NEAREST, WARPED, tolerance
from cycleback.alignment.self_consistency import draw_copy, score_copies, score_cycles
from cycleback.evaluation.events import measure_calibration


def film(rng, action, noise):
    """One take of `action` (60, D) at a pace of its own, and the moment each of its frames shows."""
    moments = np.cumsum(rng.uniform(0.3, 1.7, 70))
    moments = (moments - moments[0]) / (moments[-1] - moments[0]) * 59
    shown = np.stack([np.interp(moments, np.arange(60), column) for column in action.T], axis=1)
    return shown + noise * rng.normal(size=shown.shape), moments


@pytest.mark.parametrize("method", ["auto", "nearest"])
@pytest.mark.parametrize("noise", [1.5, 3.0])
def test_a_curve_without_labels_is_right_where_the_truth_is_known(rng, method, noise):
    action = np.cumsum(rng.normal(size=(60, 4)), axis=0)
    takes = [film(rng, action, noise) for _ in range(6)]
    curve = fit_without_labels([video for video, _ in takes], method=method)
    scores, right = [], []
    for a, seen in takes:
        for b, other in takes:
            if a is not b:
                match = align(a, b, method=method).indices
                truth = np.interp(seen, other, np.arange(len(b)))
                scores.append(score_matches(squared_distances(a, b), match))
                right.append(np.abs(match - truth) <= tolerance(len(b)))
    built_in = {"auto": WARPED, "nearest": NEAREST}[method]
    own, general = (
        measure_calibration(each.apply(np.concatenate(scores)), np.concatenate(right)).error
        for each in (curve, built_in)
    )
    assert own < 0.1 and own < general


def test_a_copy_shows_the_frames_it_says(rng):
    video = np.arange(90.0)[:, None] * [1.0, -2.0]
    for _ in range(20):
        copy, frames = draw_copy(video, np.zeros((40, 2)), rng)
        np.testing.assert_allclose(copy, frames[:, None] * [1.0, -2.0], atol=1e-9)
        assert (np.diff(frames) > 0).all() and 0 <= frames[0] <= 8.9 and 80.1 <= frames[-1] <= 89
        paces = np.diff(frames)
        assert paces.min() > 0.45 and paces.max() < 2.2 and paces.max() > 1.05 * paces.min()


def test_a_copy_differs_as_two_other_videos_do(rng):
    difference = rng.normal(size=(50, 3))
    copy, frames = draw_copy(np.zeros((50, 3)), difference, rng)
    at = np.linspace(0, 49, len(frames))
    expected = np.stack([np.interp(at, np.arange(50), -column) for column in difference.T], axis=1)
    np.testing.assert_allclose(copy, expected, atol=1e-9)


def test_cycles_judge_each_match_by_every_third_video(rng, videos):
    scores, right = score_cycles(videos, method="dtw")
    agree = []
    for u, a in enumerate(videos):
        for v, b in enumerate(videos):
            for w, c in enumerate(videos):
                if len({u, v, w}) == 3:
                    direct, first = align(a, b, method="dtw").indices, align(a, c, method="dtw").indices
                    second = align(c, b, method="dtw").indices
                    agree += [abs(direct[t] - second[first[t]]) <= 3 for t in range(len(a))]
    assert right.tolist() == agree and 0 < right.mean() < 1
    assert scores.shape == right.shape


def test_two_videos_are_enough_and_one_is_not(rng):
    action = np.cumsum(rng.normal(size=(60, 8)), axis=0)
    two = [film(rng, action, 1.0)[0] for _ in range(2)]
    assert score_copies(two).right.mean() > 0.5
    assert fit_without_labels(two) == fit_without_labels(two)
    with pytest.raises(ValueError, match="expected at least 2 videos, got 1"):
        fit_without_labels(two[:1])


@pytest.mark.parametrize("length", [1, 2, 40])
@pytest.mark.parametrize("method", ["auto", "nearest", "dtw"])
def test_collapsed_embeddings_leave_the_ends_of_the_curve(length, method):
    with np.errstate(all="raise"):
        curve = fit_without_labels([np.ones((length, 4))] * 3, method=method)
    assert curve.apply([0.0, 1.0]).tolist() == [0.0, 1.0]


def test_equal_videos_are_sure(rng):
    walk = np.cumsum(rng.normal(size=(60, 8)), axis=0)
    assert fit_without_labels([walk] * 3).apply([0.999])[0] > 0.95
