import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cycleback.evaluation import phase_accuracy


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
        assert result.train_videos[share] == count


def test_the_linear_protocol_is_logistic_regression_on_standardised_embeddings(labelled):
    train, test = labelled[:6], labelled[6:]
    (features, phases), (others, truth) = pooled(train), pooled(test)
    scaler = StandardScaler().fit(features)
    model = LogisticRegression(max_iter=1000).fit(scaler.transform(features), phases)
    result = phase_accuracy(train, test)
    assert result.value == pytest.approx(accuracy_score(truth, model.predict(scaler.transform(others))))
    assert result.frames == len(truth)


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
    result = phase_accuracy(labelled[:6], labelled[6:])
    assert result.train_videos == {0.1: 1, 0.5: 3, 1.0: 6}


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
