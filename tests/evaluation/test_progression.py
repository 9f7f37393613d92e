import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from cycleback.evaluation import phase_progression


@pytest.fixture
def labelled(walks):
    return [(video, {"start": 2, "end": len(video) - 3}) for video in walks]


def targets(videos, event):
    return np.concatenate([(np.arange(len(x)) - events[event]) / len(x) for x, events in videos])


def sklearn_score(train, held_out, event):
    train = [video for video in train if event in video[1]]
    held_out = [video for video in held_out if event in video[1]]
    model = LinearRegression().fit(np.concatenate([x for x, _ in train]), targets(train, event))
    return r2_score(targets(held_out, event), model.predict(np.concatenate([x for x, _ in held_out])))


def test_each_event_is_one_least_squares_fit(labelled):
    train, held_out = labelled[:3], labelled[3:]
    result = phase_progression(train, held_out)
    expected = {event: sklearn_score(train, held_out, event) for event in ("start", "end")}
    assert result.by_event == {event: pytest.approx(score) for event, score in expected.items()}
    assert result.value == pytest.approx(np.mean(list(expected.values())))
    assert result.frames == 8 + 23


def test_videos_count_for_the_events_they_have(labelled):
    del labelled[0][1]["start"], labelled[3][1]["end"]
    train, held_out = labelled[:3], labelled[3:]
    result = phase_progression(train, held_out)
    for event in ("start", "end"):
        assert result.by_event[event] == pytest.approx(sklearn_score(train, held_out, event))


def test_more_dimensions_than_frames_still_fit(rng):
    videos = [(rng.normal(size=(6, 40)), {"hit": 3}) for _ in range(4)]
    result = phase_progression(videos[:2], videos[2:])
    assert result.value == pytest.approx(sklearn_score(videos[:2], videos[2:], "hit"))


def test_an_embedding_that_tells_the_time_is_perfect():
    videos = [(np.arange(n)[:, None] / n, {"hit": n // 2}) for n in (10, 20, 30)]
    assert phase_progression(videos[:2], videos[2:]).value == pytest.approx(1)


def test_constant_embeddings_explain_nothing():
    videos = [(np.ones((n, 3)), {"hit": n // 2}) for n in (10, 10)]
    assert phase_progression(videos[:1], videos[1:]).value == pytest.approx(0)


def test_a_wrong_direction_is_worse_than_nothing():
    line = np.arange(10.0)[:, None]
    assert phase_progression([(line, {"hit": 5})], [(-line, {"hit": 5})]).value < -1


@pytest.mark.parametrize("labels", [({}, {}), ({"hit": 1}, {}), ({"hit": 1}, {"top": 1})])
def test_without_shared_labels_there_is_no_number(labels):
    train, held_out = [(np.eye(3), labels[0])], [(np.eye(3), labels[1])]
    result = phase_progression(train, held_out)
    assert (result.value, result.by_event, result.frames) == (None, {}, 0)


def test_counting_from_the_frame_before_is_another_target(labelled):
    before = [(block, {event: frame - 1 for event, frame in events.items()}) for block, events in labelled]
    shifted = phase_progression(labelled[:3], labelled[3:], shift=-1)
    assert shifted == phase_progression(before[:3], before[3:])


def test_resampled_videos_count_as_often_as_they_are_drawn(labelled):
    del labelled[3][1]["end"]
    train, held_out = labelled[:2], labelled[2:]
    drawn = [[0, 0, 1], [0, 2, 2], [2, 2, 1]]
    counts = np.stack([np.bincount(row, minlength=3) for row in drawn])
    expected = [phase_progression(train, [held_out[video] for video in row]).value for row in drawn]
    np.testing.assert_allclose(phase_progression(train, held_out).resampled(counts), expected)


def test_a_resample_without_a_key_event_is_undefined(labelled):
    del labelled[3][1]["end"]
    progression = phase_progression(labelled[:3], labelled[3:])
    assert np.isnan(progression.resampled(np.array([[2, 0]]))).all()


def test_directions_that_are_only_rounding_are_not_fitted(rng):
    plane = rng.normal(size=(2, 8))

    def video(length: int, rounding: float):
        time = np.linspace(0, 1, length)[:, None]
        points = np.hstack([time, rng.normal(size=(length, 1))]) @ plane
        return points + rounding * rng.normal(size=points.shape), {"top": int(rng.integers(10, 30))}

    train, held_out = [video(40, 1e-9) for _ in range(4)], [video(40, 1e-7) for _ in range(3)]
    assert 0.5 < phase_progression(train, held_out).value < 1
