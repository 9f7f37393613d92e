import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cycleback.evaluation import few_shot_accuracy


@pytest.fixture
def labelled(rng):
    """Nine videos with three overlapping phases."""
    videos = []
    for length in rng.integers(12, 25, size=9):
        phases = np.sort(rng.integers(0, 3, size=length))
        videos.append((phases[:, None] * [1.0, 10.0] + rng.normal(size=(length, 2)) * [0.7, 7], phases))
    return videos


def pooled(videos):
    return np.concatenate([x for x, _ in videos]), np.concatenate([y for _, y in videos])


def test_all_training_videos_give_what_one_classifier_gives(labelled):
    train, test = labelled[:3], labelled[3:]
    (features, phases), (others, truth) = pooled(train), pooled(test)
    scaler = StandardScaler().fit(features)
    model = LogisticRegression().fit(scaler.transform(features), phases)
    result = few_shot_accuracy(train, test, videos=(3,), episodes=4)[3]
    assert result.mean == pytest.approx(model.score(scaler.transform(others), truth))
    assert len(result.accuracies) == 4 and result.spread == 0


def test_one_video_is_each_time_one_of_the_training_videos(labelled):
    train, test = labelled[:4], labelled[4:]
    possible = [SVC().fit(*video).score(*pooled(test)) for video in train]
    result = few_shot_accuracy(train, test, videos=(1,), episodes=30, protocol="paper")[1]
    assert set(result.accuracies) == set(possible)
    assert result.mean == np.mean(result.accuracies) and result.spread == np.std(result.accuracies)


def test_episodes_are_fixed_by_the_seed(labelled):
    runs = [few_shot_accuracy(labelled[:6], labelled[6:], episodes=5, seed=seed) for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


def test_numbers_beyond_the_training_videos_are_left_out_and_change_no_other(labelled):
    few = few_shot_accuracy(labelled[:3], labelled[3:], episodes=3)
    assert list(few) == [1, 2, 3]
    assert few == few_shot_accuracy(labelled[:3], labelled[3:], episodes=3, videos=(1, 2, 3))


def test_the_reference_protocol_goes_from_one_to_ten(labelled):
    result = few_shot_accuracy([*labelled, *labelled], labelled[:2], episodes=1, protocol="reference")
    assert list(result) == list(range(1, 11))


def test_a_stride_tests_on_fewer_frames(labelled):
    train, test = labelled[:2], labelled[2:]
    thin = [(block[::3], phases[::3]) for block, phases in test]
    assert few_shot_accuracy(train, test, episodes=3, stride=3) == few_shot_accuracy(train, thin, episodes=3)


def test_one_phase_in_a_video_is_found_everywhere(rng):
    train = [(rng.normal(size=(5, 2)), np.zeros(5, int))]
    held_out = [(rng.normal(size=(4, 2)), np.array([0, 0, 0, 1]))]
    assert few_shot_accuracy(train, held_out, episodes=2)[1].mean == 0.75


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episodes": 0}, "0 episodes"),
        ({"videos": (0, 1)}, r"\(0, 1\)"),
        ({"stride": 0}, "stride 0"),
        ({"protocol": "svm"}, "'svm'"),
    ],
)
def test_impossible_settings_are_an_error(labelled, settings, message):
    with pytest.raises(ValueError, match=message):
        few_shot_accuracy(labelled, labelled, **settings)


def test_no_videos_are_an_error(labelled):
    with pytest.raises(ValueError, match="9 to learn from, 0 held out"):
        few_shot_accuracy(labelled, [])
