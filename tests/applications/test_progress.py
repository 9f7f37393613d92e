import numpy as np
import pytest

from cycleback.applications.progress import Goal, fit_goal, measure_progress, progress_signal
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import DataError, EmbeddingError

LINE = np.linspace(0, 1, 41)[:, None]


@pytest.mark.parametrize("method", ["dtw", "nearest"])
def test_progress_is_the_place_in_the_reference(method: str) -> None:
    half = progress_signal(LINE[:21], LINE, method="nearest")
    assert half.progress[-1] == pytest.approx(0.5)
    slow = progress_signal(np.linspace(0, 1, 121)[:, None], LINE, method=method)
    assert np.abs(slow.progress - np.linspace(0, 1, 121)).max() < 0.03


def test_dtw_never_goes_back_and_nearest_shows_a_step_back() -> None:
    back = np.r_[LINE[:30], LINE[20:]]
    assert (np.diff(progress_signal(back, LINE).progress) >= 0).all()
    assert progress_signal(back, LINE, method="nearest").progress[30] == pytest.approx(0.5)


def test_progress_goes_by_the_clock_of_the_reference() -> None:
    times = np.r_[np.arange(21), 20 + 9 * np.arange(1, 21)]  # the second half takes nine times as long
    found = progress_signal(LINE, LINE, times=times)
    assert found.progress[20] == pytest.approx(0.1)


def test_confidence_is_high_for_the_reference_and_low_where_all_is_alike() -> None:
    assert progress_signal(LINE, LINE).confidence.min() > 0.9
    assert progress_signal(np.ones((5, 1)), np.ones((9, 1))).confidence.max() == 0


def test_a_reference_of_one_frame_is_refused() -> None:
    with pytest.raises(EmbeddingError, match="at least 2 frames to show an action, got 1"):
        progress_signal(LINE, LINE[:1])


def test_the_goal_is_the_mean_end_and_rewards_begin_at_minus_one() -> None:
    good = EmbeddingSet.from_arrays({"a": LINE, "b": LINE + 0.2})
    goal = fit_goal(good)
    assert goal.embedding == pytest.approx([1.1])
    assert np.mean([goal.reward(good[name])[0] for name in good]) == pytest.approx(-1)
    assert goal.reward([[1.1]]) == pytest.approx([0], abs=1e-6)
    assert (np.diff(goal.reward(LINE)) > 0).all()


def test_a_goal_that_is_the_start_is_refused() -> None:
    with pytest.raises(EmbeddingError, match="end where they begin"):
        fit_goal(EmbeddingSet.from_arrays({"a": np.ones((4, 2))}))


def test_rewards_of_another_embedding_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(N, D=1\), got \(4, 2\)"):
        Goal(np.ones(1), 1.0).reward(np.ones((4, 2)))


def test_rows_have_a_reward_only_with_a_goal() -> None:
    videos = EmbeddingSet.from_arrays({"a": LINE, "b": LINE[:21]}, fps=10)
    assert "reward" not in measure_progress(videos, "a").rows()[0]
    rows = measure_progress(videos, "a", goal=videos.subset(["a"]), method="nearest").rows()
    last = next(row for row in rows if (row["video"], row["frame"]) == ("b", 20))
    assert (last["seconds"], last["progress"], last["reference_frame"], last["reward"]) == (
        2.0,
        0.5,
        20,
        -0.5,
    )


def test_the_reference_may_come_from_another_set() -> None:
    whole = EmbeddingSet.from_arrays({"whole": LINE}, actions={"whole": "pour"})
    report = measure_progress(
        EmbeddingSet.from_arrays({"a": LINE[:21]}), "whole", source=whole, method="nearest"
    )
    assert (report.reference, report.signals["a"].progress[-1]) == ("whole", pytest.approx(0.5))
    golf = EmbeddingSet.from_arrays({"a": LINE}, actions={"a": "golf"})
    with pytest.raises(DataError, match="videos of the same action"):
        measure_progress(golf, "whole", source=whole)
    with pytest.raises(EmbeddingError, match="the good takes by x, the videos by y"):
        named = [EmbeddingSet.from_arrays({"a": LINE}, encoder=name) for name in "xy"]
        measure_progress(named[1], "a", goal=named[0])
