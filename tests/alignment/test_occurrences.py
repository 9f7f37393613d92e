"""Parts of a long recording: the recurrence in windows, settling, and what is kept of overlapping parts."""

from itertools import pairwise

import numpy as np
import pytest

from cycleback.alignment.occurrences import (
    Part,
    divide_shared,
    find_parts,
    gather_action,
    is_same,
    keep_apart,
    score_part,
    settle_part,
    squared_gaps,
)


def walk(num_frames: int, *, seed: int, size: int = 24) -> np.ndarray:
    """Return a smooth random walk (N, D)."""
    steps = np.random.default_rng(seed).normal(size=(num_frames + 8, size))
    kernel = np.ones(9) / 9
    return np.stack([np.convolve(column, kernel, "valid") for column in steps.T], axis=1)


def normalize(values: np.ndarray, times: np.ndarray | None = None) -> np.ndarray:
    centred = values - values.mean(axis=0)
    return (centred / np.sqrt((centred**2).sum() / len(centred))).astype(np.float32)


def test_gaps_are_squared_distances() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 5, 3)).astype(np.float32), rng.normal(size=(7, 3)).astype(np.float32)
    expected = [[[np.square(x - y).sum() for y in b] for x in rows] for rows in a]
    assert np.allclose(squared_gaps(a, b), expected, atol=1e-5)


def test_the_likeness_of_a_video_to_itself_is_one_and_to_another_small() -> None:
    one, other = normalize(walk(80, seed=1)), normalize(walk(90, seed=2))
    action = gather_action([(one, 80 / 30)])
    assert score_part(one, action) == pytest.approx(1, abs=1e-4)
    assert score_part(np.repeat(one, 2, axis=0), action) == pytest.approx(1, abs=1e-4)
    assert score_part(other, action) < 0.4
    both = gather_action([(one, 80 / 30), (other, 90 / 30)])
    halves = [score_part(one, gather_action([each])) for each in ((one, 1.0), (other, 1.0))]
    assert score_part(one, both) == pytest.approx(np.mean(halves))
    assert both.seconds == pytest.approx(85 / 30) and both.rows.shape == (2, 48, 24)


@pytest.mark.parametrize("length", [60, 100, 160, 400])
def test_a_hidden_part_is_found_and_settled(length: int) -> None:
    action = walk(100, seed=1)
    stretched = np.stack(
        [np.interp(np.linspace(0, 99, length), np.arange(100), column) for column in action.T], axis=1
    )
    long = np.concatenate([walk(300, seed=2), stretched, walk(250, seed=3)])
    sought, times = gather_action([(normalize(action), 100 / 30)]), np.arange(len(long)) / 30
    stretch = max(2.0, 1.2 * length / 100)
    parts, curve = find_parts(sought, normalize(long), frame_s=1 / 30, max_stretch=stretch, least=0.3)
    settled = settle_part(parts[0], long, times, action=sought, describe=normalize, max_stretch=stretch)
    assert abs(settled.start - 300) <= 0.06 * length and abs(settled.stop - 300 - length) <= 0.06 * length
    assert settled.likeness > 0.8
    assert curve.shape == (len(long),) and curve[300 : 300 + length].min() > 0.3


def test_the_ends_of_parts_of_a_window_are_apart() -> None:
    action = walk(60, seed=1)
    long = np.concatenate([walk(80, seed=2), action, walk(60, seed=3), action, walk(80, seed=4)])
    sought = gather_action([(normalize(action), 2.0)])
    parts, _ = find_parts(sought, normalize(long), frame_s=1 / 30, max_stretch=2, least=0.2)
    assert {round(part.start / 20) * 20 for part in parts[:2]} == {80, 200}
    ends = sorted(part.stop for part in parts)
    assert min(np.diff(ends)) >= 18


def test_keeping_apart_agrees_with_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        starts, lengths = rng.integers(0, 300, 30), rng.integers(20, 40, 30)
        parts = [
            Part(int(s), int(s + n), float(v))
            for s, n, v in zip(starts, lengths, rng.permutation(30) / 30, strict=True)
        ]
        kept: list[Part] = []
        for part in sorted(parts, key=lambda each: -each.likeness):
            shares = [
                (min(part.stop, k.stop) - max(part.start, k.start))
                / min(part.stop - part.start, k.stop - k.start)
                for k in kept
            ]
            if all(share <= 0.25 for share in shares):
                kept.append(part)
        assert keep_apart(parts, max_overlap=0.25) == sorted(kept)
        divided = divide_shared(sorted(kept))
        assert all(a.stop <= b.start for a, b in pairwise(divided))
        assert all(part.start < part.stop for part in divided)


def test_the_same_part_shares_most_frames() -> None:
    assert is_same(Part(0, 100, 0.5), Part(3, 102, 0.1))
    assert not is_same(Part(0, 100, 0.5), Part(0, 50, 0.5))
    assert not is_same(Part(0, 10, 0.5), Part(20, 30, 0.5))
