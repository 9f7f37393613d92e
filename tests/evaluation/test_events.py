import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from cycleback.alignment import align, estimate_confidence, squared_distances
from cycleback.evaluation import event_error, measure_calibration
from cycleback.evaluation.events import (
    CalibrationBin,
    Labels,
    auroc,
    calibration_error,
    event_confidences,
    pool_bins,
    span_tolerances,
)
from cycleback.evaluation.neighbors import nearest_table


def loop_errors(videos, events, method, times=None):
    """Every event of every ordered pair through `align`, one at a time."""
    errors = []
    for a, (first, here) in enumerate(zip(videos, events, strict=True)):
        for b, (second, there) in enumerate(zip(videos, events, strict=True)):
            for event in set(here) & set(there) if a != b else ():
                found = align(first, second, method=method).indices[here[event]]
                clock = np.arange(len(second)) if times is None else 1000 * times[b]
                errors.append(abs(clock[found] - clock[there[event]]))
    return np.array(errors)


@pytest.fixture
def events(walks):
    return [{"start": 1, "middle": len(video) // 2, "end": len(video) - 1} for video in walks]


@pytest.mark.parametrize("method", ["nearest", "dtw"])
def test_errors_are_those_of_each_pair_aligned_alone(walks, events, method):
    expected = loop_errors(walks, events, method)
    error = event_error(walks, events, method=method, within=(0, 2))
    assert error.count == 5 * 4 * 3 == len(expected)
    assert error.median_frames == np.median(expected)
    assert error.mean_frames == pytest.approx(expected.mean())
    assert error.within == {k: pytest.approx((expected <= k).mean()) for k in (0, 2)}


SWING = {"address": 10, "top": 40, "impact": 55, "finish": 100}


@pytest.mark.parametrize(
    ("impact", "frames"),
    [
        (11, 1),
        (54, 1),
        (55, 2),
        (85, 2),
        (86, 3),
        (310, 10),
    ],  # 45 / 30 and 75 / 30 are both 2: halves to even
)
def test_the_tolerance_is_a_thirtieth_of_the_span(impact: int, frames: int) -> None:
    assert span_tolerances([SWING | {"impact": impact}], ("address", "impact")).tolist() == [frames]


def test_the_span_is_from_first_to_last_event_unless_two_are_named() -> None:
    shuffled, partial = dict(reversed(SWING.items())), {"top": 3}
    assert span_tolerances([SWING, shuffled, partial]).tolist() == [3, 3, 1]
    named = span_tolerances([SWING, partial, {}], ("address", "impact"))
    assert np.array_equal(named, [2, np.nan, np.nan], equal_nan=True)


@pytest.mark.parametrize("method", ["nearest", "dtw"])
def test_the_tolerance_is_that_of_the_video_whose_events_are_found(method) -> None:
    lengths = (40, 90, 200)
    videos = [np.linspace(0, 1, n)[:, None] for n in lengths]
    events = [{"a": 0, "b": round(0.5 * n) + 10 * i, "c": n - 1} for i, n in enumerate(lengths)]
    error = event_error(videos, events, method=method, span=("a", "c"))
    assert error.tolerances.tolist() == [{0: 1, 1: 3, 2: 7}[video] for video in error.videos]
    assert error.within_span == np.mean(error.errors <= error.tolerances)
    assert error.by_event["b"].within_span < 1 == error.by_event["a"].within_span


def test_videos_without_a_span_do_not_count_for_its_tolerance(walks, events) -> None:
    cut = [{"middle": 3}, *events[1:]]
    error = event_error(walks, cut, span=("start", "end"))
    kept = error.videos != 0
    assert np.isnan(error.tolerances[~kept]).all()
    assert error.within_span == (error.errors <= error.tolerances)[kept].mean()
    assert event_error(walks, events, span=("start", "never")).within_span is None


@pytest.mark.parametrize("method", ["nearest", "dtw"])
def test_milliseconds_come_from_the_times_of_the_other_video(walks, events, method, rng):
    times = [np.cumsum(rng.uniform(0.01, 0.1, size=len(video))) for video in walks]
    expected = loop_errors(walks, events, method, times)
    error = event_error(walks, events, times=times, method=method)
    assert error.median_ms == pytest.approx(np.median(expected))
    assert error.mean_ms == pytest.approx(expected.mean())


def test_without_times_there_are_no_milliseconds(walks, events):
    error = event_error(walks, events)
    assert (error.median_ms, error.mean_ms) == (None, None)


def test_each_event_is_also_told_apart(walks, events):
    error = event_error(walks, events)
    assert list(error.by_event) == ["start", "middle", "end"]
    alone = event_error(walks, [{"middle": here["middle"]} for here in events])
    assert error.by_event["middle"].mean_frames == alone.mean_frames
    assert sum(part.count for part in error.by_event.values()) == error.count


@pytest.mark.parametrize("method", ["nearest", "dtw"])
def test_equal_videos_have_no_error(walks, method):
    error = event_error([walks[0]] * 3, [{"hit": 5}] * 3, method=method)
    assert (error.median_frames, error.mean_frames, error.within[1], error.count) == (0, 0, 1, 6)


def test_a_reversed_video_is_wrong_by_the_way_round():
    line = np.arange(11.0)[:, None]
    error = event_error([line, line[::-1]], [{"hit": 2}, {"hit": 2}])
    assert (error.median_frames, error.within) == (6, {1: 0, 3: 0})


def test_a_collapsed_video_sends_events_to_its_first_frame():
    line, point = np.arange(10.0)[:, None], np.zeros((10, 1))
    error = event_error([line, point], [{"hit": 4}, {"hit": 7}])
    assert error.mean_frames == (7 + 4) / 2


@pytest.mark.parametrize("method", ["nearest", "dtw"])
def test_videos_count_for_the_events_they_have(walks, events, method):
    del events[1]["start"], events[3]["end"]
    events[4] = {}
    expected = loop_errors(walks, events, method)
    error = event_error(walks, events, method=method)
    assert error.count == len(expected) == 3 * 2 + 4 * 3 + 3 * 2
    assert error.mean_frames == pytest.approx(expected.mean())


@pytest.mark.parametrize("labels", [[{}, {}], [{"hit": 1}, {}], [{"hit": 1}, {"top": 2}]])
def test_without_shared_labels_nothing_is_counted(walks, labels):
    error = event_error(walks[:2], labels, times=[np.arange(len(video)) / 30 for video in walks[:2]])
    assert (error.median_frames, error.median_ms, error.count, error.within) == (None, None, 0, {})


def test_one_video_has_no_pairs(walks):
    assert event_error(walks[:1], [{"hit": 1}], method="dtw").count == 0


def test_a_label_past_the_end_is_an_error(walks):
    with pytest.raises(ValueError, match="video 1: 'hit' at frame 30, but it has 30 frames"):
        event_error(walks[:2], [{"hit": 1}, {"hit": 30}])


def test_labels_for_other_videos_are_an_error(walks):
    with pytest.raises(ValueError, match="events of 5 videos, got 1"):
        event_error(walks, [{"hit": 1}])


def test_an_unknown_method_is_an_error(walks):
    with pytest.raises(ValueError, match="'soft'"):
        event_error(walks, [{}] * 5, method="soft")


def test_nearest_frames_that_are_known_already_are_looked_up(walks, events):
    assert event_error(walks, events, nearest=nearest_table(walks)) == event_error(walks, events)


def test_every_error_says_which_label_went_to_which_video(walks, events):
    del events[1]["start"], events[3]["end"]
    error, labels = event_error(walks, events), Labels.of(events)
    for size, label, video in zip(error.errors, error.labels, error.videos, strict=True):
        own, name = labels.videos[label], labels.names[label]
        found = align(walks[own], walks[video], method="nearest").indices[labels.frames[label]]
        assert own != video and size == abs(found - events[video][name])


@pytest.fixture
def matches(rng):
    """200 confidences, many of them equal, and whether each match is right."""
    confidences = np.round(rng.uniform(size=200), 2)
    return confidences, rng.uniform(size=200) < confidences**2


def test_auroc_is_that_of_scikit_learn(matches):
    confidences, is_right = matches
    assert measure_calibration(*matches).auroc == pytest.approx(
        roc_auc_score(is_right, confidences), abs=1e-12
    )


def test_auroc_of_equal_scores_is_a_half():
    assert auroc(np.ones(4), np.array([True, False, True, False])) == 0.5


@pytest.mark.parametrize("truth", [True, False])
def test_auroc_needs_right_and_wrong_matches(truth):
    assert auroc(np.array([0.1, 0.9]), np.full(2, truth)) is None


def test_bins_hold_what_a_loop_puts_in_them(matches):
    confidences, is_right = matches
    found = measure_calibration(*matches, bins=5).bins
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
    assert measure_calibration(confidences, is_right).error == pytest.approx(0)


def test_no_matches_have_no_numbers():
    result = measure_calibration(np.empty(0), np.empty(0, dtype=bool))
    assert (result.bins, result.error, result.auroc, result.count) == ((), None, None, 0)


def test_pooled_bins_are_those_of_all_matches_together(matches):
    confidences, is_right = matches
    parts = [measure_calibration(confidences[i::3], is_right[i::3]).bins for i in range(3)]
    for pooled, whole in zip(pool_bins(parts), measure_calibration(*matches).bins, strict=True):
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
    draws = [event_confidences(walks, labels, max_pairs=7, seed=seed) for seed in (0, 0, 1)]
    assert [int((~np.isnan(draw)).sum()) for draw in draws] == [7, 7, 7]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (np.isnan(draws[0]) != np.isnan(draws[2])).any()


def test_confidences_outside_zero_and_one_are_an_error():
    with pytest.raises(ValueError, match=r"got -0.5 to 1.5"):
        measure_calibration(np.array([-0.5, 1.5]), np.array([True, False]))


def test_truth_of_another_shape_is_an_error():
    with pytest.raises(ValueError, match=r"\(3,\) and \(2,\)"):
        measure_calibration(np.zeros(3), np.zeros(2, dtype=bool))
