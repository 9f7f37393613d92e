import numpy as np
import pytest

from cycleback.applications.label_probe import BUMP_FRAMES, NEIGHBORS, PENALTY, fit_probe

TOP, BACK, END = ("event", "top", 0), ("event", "back", 0), ("end", "swing", 0)


def make_video(top: int, *, length: int = 40, seed: int = 0) -> np.ndarray:
    """(N, 4) noise, in which one dimension shows `top`."""
    video = np.random.default_rng(seed).normal(size=(length, 4))
    video[:, 2] += 5 * np.exp(-((np.arange(length) - top) ** 2) / 8)
    return video


def test_the_probe_recognises_a_moment_wherever_it_is() -> None:
    probe = fit_probe([(make_video(top, seed=top), {TOP: top}) for top in (5, 12, 20, 30)])
    for top in (8, 17, 33):
        scores, usual = probe(make_video(top, seed=100 + top))[TOP]
        assert abs(int(scores.argmax()) - top) <= 1 and scores.max() > 0.5 * usual > 0.2


def test_the_scores_are_those_of_ridge_regression() -> None:
    from sklearn.linear_model import Ridge

    sources = [(make_video(top, seed=top), {TOP: top, END: 40}) for top in (5, 20)]

    def wide(video: np.ndarray) -> np.ndarray:
        return np.array([[video[min(max(t + s, 0), 39)] for s in NEIGHBORS] for t in range(40)]).reshape(
            40, -1
        )

    frames = np.concatenate([wide(video) for video, _ in sources])
    targets = np.concatenate(
        [np.exp(-((np.arange(40) - marks[TOP]) ** 2) / (2 * BUMP_FRAMES**2)) for _, marks in sources]
    )
    around = frames - frames.mean(axis=0)
    model = Ridge(alpha=PENALTY * np.square(around).sum() / frames.shape[1]).fit(frames, targets)
    video = make_video(11, seed=9)
    found = fit_probe(sources)(video)[TOP]
    assert found.scores == pytest.approx(model.predict(wide(video)))
    labelled = [model.predict(wide(source))[marks[TOP]] for source, marks in sources]
    assert found.usual == pytest.approx(np.mean(labelled))


def test_a_video_without_a_mark_does_not_teach_it() -> None:
    one, other = (make_video(9, seed=1), {TOP: 9, BACK: 30}), (make_video(20, seed=2), {TOP: 20})
    video = make_video(15, seed=3)
    both, alone = fit_probe([one, other])(video), fit_probe([one])(video)
    assert both[BACK].scores == pytest.approx(alone[BACK].scores)
    assert not np.allclose(both[TOP].scores, alone[TOP].scores)


def test_a_collapsed_embedding_gives_no_hint() -> None:
    scores = fit_probe([(np.zeros((9, 2)), {TOP: 4})])(np.zeros((5, 2)))[TOP].scores
    assert np.ptp(scores) == 0
