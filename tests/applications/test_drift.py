"""Drift over repetitions whose duration and size are known."""

import numpy as np
import pytest

from cycleback.applications import find_repetitions, measure_drift
from cycleback.applications.drift import describe_drift, find_trend


def write_repetitions(lengths: list[int], sizes: list[float], *, odd: int | None = None) -> np.ndarray:
    """Return embeddings (N, 6) of repetitions of so many frames, each of its own size."""
    rng = np.random.default_rng(0)
    blocks = []
    for number, (length, size) in enumerate(zip(lengths, sizes, strict=True)):
        angle = 2 * np.pi * np.arange(length)[:, None] / length
        block = np.concatenate([1 - np.cos(angle), np.sin(angle), np.sin(2 * angle)] * 2, axis=1)
        block[:, 3:] *= 0.5
        if number == odd:
            block[length // 3 : 2 * length // 3, 5] += 0.8
        blocks.append(size * block)
    rows = np.concatenate(blocks)
    return rows + 0.02 * rng.normal(size=rows.shape)


def test_repetitions_that_become_slower_and_smaller_are_told_with_their_sizes() -> None:
    lengths, sizes = [30, 31, 33, 34, 36, 37, 39, 40], np.linspace(1.2, 0.8, 8)
    rows = write_repetitions(lengths, sizes.tolist())
    found = find_repetitions(rows, np.arange(len(rows)) / 30)
    drift = measure_drift(rows, found)
    assert drift is not None and len(drift.durations) == found.count == 8
    inner = slice(1, -1)
    assert drift.durations[inner] * 30 == pytest.approx(lengths[inner], abs=3)
    assert drift.amplitudes[inner] == pytest.approx(sizes[inner], abs=0.08)
    trends = drift.trends
    assert trends["duration"] == pytest.approx(100 * (40 / 30 - 1), abs=10)
    assert trends["amplitude"] == pytest.approx(100 * (0.8 / 1.2 - 1), abs=8)
    assert trends["speed"] is not None and trends["speed"] < trends["amplitude"]
    assert describe_drift(drift).startswith("slower towards the end (duration +")
    assert "smaller towards the end (amplitude -" in describe_drift(drift)


def test_even_repetitions_have_no_trend_and_the_odd_one_is_the_worst() -> None:
    rows = write_repetitions([30] * 9, [1.0] * 9, odd=5)
    drift = measure_drift(rows, find_repetitions(rows))
    assert drift is not None and drift.worst == 6
    assert drift.differences[5] > 2 * np.nanmedian(drift.differences)
    assert drift.trends["duration"] is None
    assert drift.to_json()["worst"] == 6


def test_a_trend_is_that_of_the_middle_line_and_noise_has_none() -> None:
    assert find_trend(np.array([1.0, 1.1, 1.2, 9.0, 1.4, 1.5, 1.6])) == pytest.approx(60, abs=6)
    assert find_trend(np.array([1.0, 2.0, 1.0, 2.0, 1.0, 2.0])) is None
    assert find_trend(np.array([1.0, 1.1, 1.2, 1.3])) is None  # too few to tell


def test_two_repetitions_have_no_drift() -> None:
    rows = write_repetitions([30, 30], [1.0, 1.0])
    found = find_repetitions(rows)
    assert found.count == 2 and measure_drift(rows, found) is None
