import numpy as np
import pytest

from cycleback.applications.label_votes import in_order, vote, weighted_median


def event(name: str) -> tuple[str, str, int]:
    return ("event", name, 0)


def test_a_video_votes_for_itself_with_full_confidence() -> None:
    video = np.random.default_rng(0).normal(size=(30, 4)).cumsum(axis=0)
    found = vote(video, [(video, {event("x"): 7, ("start", "s", 0): 12, ("end", "s", 0): 30})])
    assert {mark: frame for mark, (frame, _) in found.items()} == {
        event("x"): 7,
        ("start", "s", 0): 12,
        ("end", "s", 0): 30,
    }
    assert all(sure == pytest.approx(1) for _, sure in found.values())


def test_a_collapsed_embedding_is_not_trusted() -> None:
    found = vote(np.zeros((20, 3)), [(np.zeros((30, 3)), {event("x"): 7})])
    assert found[event("x")][1] == 0


def test_the_weighted_median_halves_the_weight() -> None:
    values = np.array([5.0, 1.0, 9.0])
    assert weighted_median(values, np.ones(3)) == 5.0
    assert weighted_median(values, np.array([1e-9, 1.0, 1e-9])) == pytest.approx(1.0)
    assert weighted_median(values[:2], np.ones(2)) == 3.0


def test_swapped_marks_meet_in_the_middle() -> None:
    found = in_order(
        {event("a"): 8.0, event("b"): 4.0, event("c"): 20.0}, [{event("a"): 1, event("b"): 2, event("c"): 3}]
    )
    assert found == {event("a"): 6, event("b"): 6, event("c"): 20}


def test_marks_that_no_source_compares_stay_where_they_are() -> None:
    sources = [{event("x"): 10, event("y"): 50}, {event("z"): 5}]
    assert in_order({event("x"): 10.0, event("y"): 50.0, event("z"): 30.0}, sources) == {
        event("x"): 10,
        event("z"): 30,
        event("y"): 50,
    }


def test_sources_that_contradict_each_other_bind_nothing() -> None:
    sources = [{event("x"): 1, event("y"): 2}, {event("y"): 1, event("x"): 2}]
    assert in_order({event("x"): 9.0, event("y"): 3.0}, sources) == {event("y"): 3, event("x"): 9}


def test_no_segment_ends_before_it_starts() -> None:
    start, end = ("start", "s", 0), ("end", "s", 0)
    sources = [{start: 3, end: 5}, {event("x"): 1, start: 2}, {start: 1, event("x"): 2}]
    assert in_order({start: 9.0, end: 4.0, event("x"): 0.0}, sources)[end] == 9
