import time

import numpy as np
import pytest

from cycleback.evaluation.bootstrap import draw_counts, middle_interval, resample_means, resample_medians


@pytest.fixture
def drawn(rng):
    """Eight resamples of six videos, as lists of the videos drawn and as counts."""
    videos = rng.integers(6, size=(8, 6))
    return videos, np.stack([np.bincount(row, minlength=6) for row in videos]).astype(float)


def pairs_of(row):
    """All ordered pairs of the drawn videos, a video never with itself."""
    return [(a, b) for a in row for b in row if a != b]


def test_counts_are_draws_of_as_many_videos_with_replacement():
    counts = draw_counts(7, resamples=50, seed=1)
    assert counts.shape == (50, 7) and (counts.sum(axis=1) == 7).all() and counts.max() > 1
    np.testing.assert_array_equal(counts, draw_counts(7, resamples=50, seed=1))
    assert (counts != draw_counts(7, resamples=50, seed=2)).any()


def test_means_over_videos_are_those_of_a_loop(drawn, rng):
    sums, totals = rng.integers(0, 9, 6), rng.integers(9, 20, 6)
    expected = [sums[row].sum() / totals[row].sum() for row in drawn[0]]
    np.testing.assert_allclose(resample_means(sums, totals, drawn[1]), expected)


def test_means_over_pairs_are_those_of_a_loop(drawn, rng):
    table = rng.normal(size=(6, 6))
    np.fill_diagonal(table, 0)
    expected = [np.mean([table[pair] for pair in pairs_of(row)]) for row in drawn[0]]
    known = ~np.eye(6, dtype=bool)
    np.testing.assert_allclose(resample_means(table, known, drawn[1]), expected)


def test_medians_over_pairs_are_those_of_a_loop(drawn, rng):
    values, first = rng.integers(0, 7, 60), rng.integers(6, size=60)
    second = (first + rng.integers(1, 6, 60)) % 6  # another video
    expected = []
    for row in drawn[0]:
        weights = [sum((a, b) == pair for pair in pairs_of(row)) for a, b in zip(first, second, strict=True)]
        expected.append(np.median(np.repeat(values, weights)))
    np.testing.assert_array_equal(resample_medians(values, drawn[1], first, second), expected)


def test_medians_over_videos_are_those_of_a_loop(drawn, rng):
    values = rng.normal(size=6)
    expected = [np.median(values[row]) for row in drawn[0]]
    found = resample_medians(values, drawn[1], np.arange(6), np.arange(6))
    np.testing.assert_allclose(found, expected)


def test_the_interval_of_a_mean_is_near_the_textbook(rng):
    values = rng.normal(size=400)
    counts = draw_counts(400, resamples=2000)
    low, high = middle_interval(resample_means(values, np.ones(400), counts))
    half = 1.96 * values.std() / 20
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.02)


def test_the_interval_of_pairs_goes_by_videos_and_not_by_pairs(rng):
    effects, pairs = rng.normal(size=30), ~np.eye(30, dtype=bool)
    table = effects[:, None] + effects[None, :] + 0.01 * rng.normal(size=(30, 30))
    low, high = middle_interval(resample_means(table * pairs, pairs, draw_counts(30)))
    as_if_independent = 2 * 1.96 * table.std() / np.sqrt(table.size)
    assert high - low > 4 * as_if_independent


def test_fewer_than_three_videos_and_no_values_have_no_interval():
    assert middle_interval(resample_means(np.ones(2), np.ones(2), draw_counts(2))) is None
    assert middle_interval(resample_means(np.zeros((4, 4)), np.zeros((4, 4)), draw_counts(4))) is None
    assert middle_interval(np.empty(0)) is None


def test_a_thousand_resamples_of_a_hundred_videos_are_quick(rng):
    errors, pairs = rng.integers(0, 60, size=(100, 100)), ~np.eye(100, dtype=bool)
    start = time.process_time()
    counts = draw_counts(100)
    middle_interval(resample_means(errors * pairs, pairs, counts))
    middle_interval(resample_medians(errors[pairs], counts, *np.nonzero(pairs)))
    assert time.process_time() - start < 2
