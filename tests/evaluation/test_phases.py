import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cycleback.evaluation import few_shot_accuracy, phase_accuracy, phase_progression
from cycleback.evaluation.phases import fit_classifier, standardize


@pytest.fixture
def labelled(rng):
    """Ten videos with three overlapping phases, in two dimensions of very different scale."""
    videos = []
    for length in rng.integers(12, 25, size=10):
        phases = np.sort(rng.integers(0, 3, size=length))
        videos.append((phases[:, None] * [1.0, 100.0] + rng.normal(size=(length, 2)) * [0.7, 70], phases))
    return videos


def pooled(videos):
    return np.concatenate([x for x, _ in videos]), np.concatenate([y for _, y in videos])


def test_the_reference_protocol_is_an_rbf_machine_on_the_first_videos(labelled):
    train, test = labelled[:6], labelled[6:]
    result = phase_accuracy(train, test, protocol="reference", fractions=(0.5, 1.0))
    for share, count in ((0.5, 3), (1.0, 6)):
        model = SVC(C=1.0, kernel="rbf", gamma="scale").fit(*pooled(train[:count]))
        features, phases = pooled(test)
        assert result.by_fraction[share] == accuracy_score(phases, model.predict(features))


def test_the_linear_protocol_is_logistic_regression_on_standardised_embeddings(labelled):
    train, test = labelled[:6], labelled[6:]
    (features, phases), (others, truth) = pooled(train), pooled(test)
    scaler = StandardScaler().fit(features)
    model = LogisticRegression(max_iter=1000).fit(scaler.transform(features), phases)
    result = phase_accuracy(train, test)
    assert result.value == pytest.approx(accuracy_score(truth, model.predict(scaler.transform(others))))


def test_the_paper_protocol_is_the_same_machine_on_drawn_videos(labelled):
    results = {
        name: phase_accuracy(labelled[:6], labelled[6:], protocol=name, seed=1)
        for name in ("paper", "reference")
    }
    assert results["paper"].by_fraction[1.0] == results["reference"].by_fraction[1.0]
    assert results["paper"].by_fraction != results["reference"].by_fraction


def test_right_frames_are_counted_for_each_video(labelled):
    result = phase_accuracy(labelled[:6], labelled[6:])
    assert result.lengths.tolist() == [len(phases) for _, phases in labelled[6:]]
    assert result.right.sum() / result.lengths.sum() == pytest.approx(result.value)
    alone = phase_accuracy(labelled[:6], labelled[7:8])
    assert result.right[1] == alone.right[0]


def test_shares_count_videos_and_are_never_empty(labelled):
    train, test = labelled[:6], labelled[6:]
    tenth, one = (phase_accuracy(train, test, protocol="paper", fractions=[f]).value for f in (0.1, 1 / 6))
    assert tenth == one


def test_the_linear_protocol_draws_small_shares_by_the_seed(labelled):
    scores = [
        phase_accuracy(labelled[:8], labelled[8:], fractions=(0.25,), seed=s).value for s in (0, 0, 1, 2, 3)
    ]
    assert scores[0] == scores[1]
    assert len(set(scores)) > 1


@pytest.mark.parametrize("protocol", ["linear", "paper"])
def test_embeddings_that_tell_the_phase_are_perfect(protocol):
    phases = np.repeat([0, 1, 2], 10)
    video = (phases[:, None].astype(np.float32), phases)
    assert phase_accuracy([video] * 2, [video], protocol=protocol).value == 1


@pytest.mark.parametrize("protocol", ["linear", "paper"])
def test_constant_embeddings_find_the_commonest_phase(protocol):
    phases = np.repeat([0, 1], [6, 4])
    video = (np.zeros((10, 2)), phases)
    assert phase_accuracy([video], [video], protocol=protocol).value == 0.6


@pytest.mark.parametrize("protocol", ["linear", "paper"])
def test_a_phase_that_never_occurs_in_training_counts_as_wrong(protocol):
    features = np.arange(9.0)[:, None]
    train = (features[:6], np.repeat([0, 1], 3))
    held_out = (features, np.repeat([0, 1, 2], 3))
    assert phase_accuracy([train], [held_out], protocol=protocol).value == pytest.approx(6 / 9)


@pytest.mark.parametrize("protocol", ["linear", "paper"])
def test_one_phase_in_training_is_found_everywhere(protocol, rng):
    train, held_out = rng.normal(size=(5, 2)), rng.normal(size=(4, 2))
    result = phase_accuracy(
        [(train, np.zeros(5, int))], [(held_out, np.array([0, 0, 0, 1]))], protocol=protocol
    )
    assert result.value == 0.75


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"protocol": "svm"}, "'svm'"),
        ({"fractions": (0.0, 1.0)}, r"\(0.0, 1.0\)"),
        ({"fractions": ()}, r"\(\)"),
    ],
)
def test_unknown_settings_are_an_error(labelled, settings, message):
    with pytest.raises(ValueError, match=message):
        phase_accuracy(labelled, labelled, **settings)


def test_no_labelled_videos_are_an_error(labelled):
    with pytest.raises(ValueError, match="10 training videos, 0 held-out videos"):
        phase_accuracy(labelled, [])


def test_labels_that_do_not_fit_the_frames_are_an_error():
    with pytest.raises(ValueError, match="3 phase labels for 10 frames"):
        phase_accuracy([(np.zeros((10, 2)), np.zeros(3, int))], [(np.zeros((1, 2)), np.zeros(1, int))])


def test_standardised_is_what_scikit_learn_does(rng):
    features, others = rng.normal(3, 5, size=(30, 4)), rng.normal(size=(7, 4))
    features[:, 2] = 0.1  # constant
    scaler = StandardScaler().fit(features)
    known, rest = standardize(features, others)
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


@pytest.fixture
def shots(rng):
    """Nine videos with three overlapping phases."""
    videos = []
    for length in rng.integers(12, 25, size=9):
        phases = np.sort(rng.integers(0, 3, size=length))
        videos.append((phases[:, None] * [1.0, 10.0] + rng.normal(size=(length, 2)) * [0.7, 7], phases))
    return videos


def test_all_training_videos_give_what_one_classifier_gives(shots):
    train, test = shots[:3], shots[3:]
    (features, phases), (others, truth) = pooled(train), pooled(test)
    scaler = StandardScaler().fit(features)
    model = LogisticRegression().fit(scaler.transform(features), phases)
    result = few_shot_accuracy(train, test, videos=(3,), episodes=4)[3]
    assert result == (pytest.approx(model.score(scaler.transform(others), truth)),) * 4


def test_one_video_is_each_time_one_of_the_training_videos(shots):
    train, test = shots[:4], shots[4:]
    possible = [SVC().fit(*video).score(*pooled(test)) for video in train]
    result = few_shot_accuracy(train, test, videos=(1,), episodes=30, protocol="paper")[1]
    assert len(result) == 30 and set(result) == set(possible)


def test_episodes_are_fixed_by_the_seed(shots):
    runs = [few_shot_accuracy(shots[:6], shots[6:], episodes=5, seed=seed) for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


def test_numbers_beyond_the_training_videos_are_left_out_and_change_no_other(shots):
    few = few_shot_accuracy(shots[:3], shots[3:], episodes=3)
    assert list(few) == [1, 2, 3]
    assert few == few_shot_accuracy(shots[:3], shots[3:], episodes=3, videos=(1, 2, 3))


def test_the_reference_protocol_goes_from_one_to_ten(shots):
    result = few_shot_accuracy([*shots, *shots], shots[:2], episodes=1, protocol="reference")
    assert list(result) == list(range(1, 11))


def test_one_phase_in_a_video_is_found_everywhere(rng):
    train = [(rng.normal(size=(5, 2)), np.zeros(5, int))]
    held_out = [(rng.normal(size=(4, 2)), np.array([0, 0, 0, 1]))]
    assert few_shot_accuracy(train, held_out, episodes=2)[1] == (0.75, 0.75)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episodes": 0}, "0 episodes"),
        ({"videos": (0, 1)}, r"\(0, 1\)"),
        ({"protocol": "svm"}, "'svm'"),
    ],
)
def test_impossible_settings_are_an_error(shots, settings, message):
    with pytest.raises(ValueError, match=message):
        few_shot_accuracy(shots, shots, **settings)


def test_no_videos_are_an_error(shots):
    with pytest.raises(ValueError, match="9 to learn from, 0 held out"):
        few_shot_accuracy(shots, [])


@pytest.fixture
def timed(walks):
    return [(video, {"start": 2, "end": len(video) - 3}) for video in walks]


def targets(videos, event):
    return np.concatenate([(np.arange(len(x)) - events[event]) / len(x) for x, events in videos])


def sklearn_score(train, held_out, event):
    train = [video for video in train if event in video[1]]
    held_out = [video for video in held_out if event in video[1]]
    model = LinearRegression().fit(np.concatenate([x for x, _ in train]), targets(train, event))
    return r2_score(targets(held_out, event), model.predict(np.concatenate([x for x, _ in held_out])))


def test_each_event_is_one_least_squares_fit(timed):
    train, held_out = timed[:3], timed[3:]
    result = phase_progression(train, held_out)
    expected = {event: sklearn_score(train, held_out, event) for event in ("start", "end")}
    assert result.by_event == {event: pytest.approx(score) for event, score in expected.items()}
    assert result.value == pytest.approx(np.mean(list(expected.values())))


def test_videos_count_for_the_events_they_have(timed):
    del timed[0][1]["start"], timed[3][1]["end"]
    train, held_out = timed[:3], timed[3:]
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
    assert (result.value, result.by_event) == (None, {})


def test_counting_from_the_frame_before_is_another_target(timed):
    before = [(block, {event: frame - 1 for event, frame in events.items()}) for block, events in timed]
    shifted = phase_progression(timed[:3], timed[3:], shift=-1)
    assert shifted == phase_progression(before[:3], before[3:])


def test_resampled_videos_count_as_often_as_they_are_drawn(timed):
    del timed[3][1]["end"]
    train, held_out = timed[:2], timed[2:]
    drawn = [[0, 0, 1], [0, 2, 2], [2, 2, 1]]
    counts = np.stack([np.bincount(row, minlength=3) for row in drawn])
    expected = [phase_progression(train, [held_out[video] for video in row]).value for row in drawn]
    np.testing.assert_allclose(phase_progression(train, held_out).resample(counts), expected)


def test_a_resample_without_a_key_event_is_undefined(timed):
    del timed[3][1]["end"]
    progression = phase_progression(timed[:3], timed[3:])
    assert np.isnan(progression.resample(np.array([[2, 0]]))).all()


def test_directions_that_are_only_rounding_are_not_fitted(rng):
    plane = rng.normal(size=(2, 8))

    def video(length: int, rounding: float):
        time = np.linspace(0, 1, length)[:, None]
        points = np.hstack([time, rng.normal(size=(length, 1))]) @ plane
        return points + rounding * rng.normal(size=points.shape), {"top": int(rng.integers(10, 30))}

    train, held_out = [video(40, 1e-9) for _ in range(4)], [video(40, 1e-7) for _ in range(3)]
    assert 0.5 < phase_progression(train, held_out).value < 1
