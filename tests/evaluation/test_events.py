import numpy as np
import pytest

from cycleback.alignment import align
from cycleback.evaluation import event_error
from cycleback.evaluation.events import Labels
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
