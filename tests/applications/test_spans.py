import numpy as np
import pytest

from cycleback.applications.spans import flags_of, running_mean, spans_above, threshold_for


def test_short_gaps_are_closed_and_short_spans_dropped() -> None:
    curve = np.zeros(40)
    curve[[5, 6, 7, 11, 12]] = 2.0  # a gap of three frames
    curve[[30, 31]] = 2.0
    assert spans_above(curve, 1.0) == [(5, 12)]
    assert spans_above(curve, 2.0) == []


def test_spans_reach_both_ends() -> None:
    assert spans_above(np.ones(4), 0.5) == [(0, 3)]


def test_flags_cover_the_spans_and_nothing_else() -> None:
    assert np.flatnonzero(flags_of([(1, 2), (4, 4)], 6)).tolist() == [1, 2, 4]


def test_smoothing_is_the_mean_around_each_frame_and_keeps_the_length() -> None:
    curve = np.random.default_rng(0).normal(size=30)
    expected = [np.pad(curve, 2, mode="edge")[i : i + 5].mean() for i in range(30)]
    assert running_mean(curve, window=5) == pytest.approx(expected)


@pytest.mark.parametrize("share", [0.02, 0.05, 0.2])
def test_the_threshold_flags_no_more_than_the_share_asked_for(share: float) -> None:
    rng = np.random.default_rng(1)
    curves = [running_mean(rng.normal(size=200), window=9) for _ in range(8)]
    threshold = threshold_for(curves, share)
    flagged = np.mean([flags_of(spans_above(c, threshold), 200).mean() for c in curves])
    assert 0.4 * share < flagged <= share


def test_equal_scores_raise_no_alarm() -> None:
    assert spans_above(np.ones(9), threshold_for([np.ones(9)] * 3, 0.05)) == []
