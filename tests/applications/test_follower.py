import tracemalloc

import numpy as np
import pytest

from alignment import loops
from cycleback.alignment import squared_distances
from cycleback.applications.follower import Follower


@pytest.fixture
def reference() -> np.ndarray:
    clock = np.linspace(0, 1, 80)
    return np.stack([np.sin(3 * clock), np.cos(3 * clock), 2 * clock], axis=1)


@pytest.fixture
def stream(reference: np.ndarray) -> np.ndarray:
    """The same at half the pace, with noise."""
    rng = np.random.default_rng(0)
    return np.repeat(reference, 2, axis=0) + 0.03 * rng.normal(size=(160, 3))


def frames(follower: Follower, rows: np.ndarray) -> list[int]:
    return [follower.push(row).frame for row in rows]


def test_it_is_the_open_end_of_offline_time_warping(reference: np.ndarray, stream: np.ndarray) -> None:
    ends = loops.accumulated_cost(squared_distances(stream, reference)).argmin(axis=1)
    assert frames(Follower(reference), stream) == np.maximum.accumulate(ends).tolist()


def test_it_finds_the_true_place(reference: np.ndarray, stream: np.ndarray) -> None:
    errors = np.abs(np.array(frames(Follower(reference), stream)) - np.arange(160) // 2)
    assert np.median(errors) <= 1
    assert errors.max() <= 4


def test_the_future_never_changes_what_was_said(reference: np.ndarray, stream: np.ndarray) -> None:
    other = np.concatenate([stream[:70], stream[::-1][:50]])
    first, second = Follower(reference), Follower(reference)
    assert [first.push(row) for row in stream[:70]] == [second.push(row) for row in other][:70]


def test_it_never_goes_back(reference: np.ndarray) -> None:
    rows = np.concatenate([reference[:50], reference[:30], reference[30:]])
    assert (np.diff(frames(Follower(reference), rows)) >= 0).all()


def test_deviation_is_small_on_the_way_and_large_off_it(reference: np.ndarray) -> None:
    follower = Follower(reference)
    assert max(follower.push(row).deviation for row in reference[:40]) == pytest.approx(0, abs=1e-9)
    assert follower.push(reference[40] + 5).deviation > 5


def test_progress_and_phase_go_with_the_frame(reference: np.ndarray) -> None:
    follower = Follower(reference, events={"b": 60, "a": 20})
    found = [follower.push(row) for row in reference]
    assert [found[frame].phase for frame in (0, 19, 20, 59, 60, 79)] == [0, 0, 1, 1, 2, 2]
    assert (found[0].progress, found[-1].progress) == (0, 1)


def test_a_reference_without_labels_has_no_phase(reference: np.ndarray) -> None:
    assert Follower(reference).push(reference[0]).phase is None
    assert Follower(reference, events={}).push(reference[0]).phase is None


def test_memory_and_numbers_stay_bounded_on_a_long_stream(reference: np.ndarray) -> None:
    follower = Follower(reference)
    tracemalloc.start()
    for _ in range(500):
        follower.push(reference[0] + 100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200_000
    assert np.isfinite(follower._cost).all()


def test_bad_shapes_are_refused(reference: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"\(S >= 2, D\), got \(1, 3\)"):
        Follower(reference[:1])
    with pytest.raises(ValueError, match="different embedding sizes, 2 and 3"):
        Follower(reference).push([0.0, 1.0])
