import numpy as np
import pytest

from cycleback.applications.label_votes import restore_durations, restore_order, vote, weighted_median


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


def test_a_source_has_no_say_on_what_the_new_video_does_not_show() -> None:
    film = np.random.default_rng(1).normal(size=(40, 8))
    new = film[10:]
    whole = vote(new, [(film, {event("early"): 2, event("late"): 30})])
    assert whole[event("late")][0] == 20
    assert whole[event("early")] == (0, 0.0)
    both = vote(new, [(film, {event("early"): 2}), (new, {event("early"): 5})])
    assert both[event("early")][0] == 5


def test_a_collapsed_embedding_is_not_trusted() -> None:
    found = vote(np.zeros((20, 3)), [(np.zeros((30, 3)), {event("x"): 7})])
    assert found[event("x")][1] == 0


def test_the_weighted_median_halves_the_weight() -> None:
    values = np.array([5.0, 1.0, 9.0])
    assert weighted_median(values, np.ones(3)) == 5.0
    assert weighted_median(values, np.array([1e-9, 1.0, 1e-9])) == pytest.approx(1.0)
    assert weighted_median(values[:2], np.ones(2)) == 3.0


STEADY = [{event("a"): 5, event("b"): 15, event("c"): 25}, {event("a"): 2, event("b"): 22, event("c"): 42}]


def test_a_doubtful_mark_goes_to_where_it_usually_is_between_sure_ones() -> None:
    frames = {event("a"): 10.0, event("b"): 17.0, event("c"): 30.0}
    doubts = {event("a"): 0.01, event("b"): 100.0, event("c"): 0.01}
    found = restore_durations(frames, STEADY, errors=doubts)
    assert [found[mark] for mark in frames] == pytest.approx([10, 20, 30], abs=0.1)


def test_marks_at_the_usual_pace_stay_at_any_speed() -> None:
    for speed in (0.5, 1.0, 8.0):
        frames = {event(name): 3 + speed * place for name, place in (("a", 0), ("b", 10), ("c", 20))}
        assert restore_durations(frames, STEADY, errors=dict.fromkeys(frames, 1.0)) == pytest.approx(frames)


def test_marks_move_less_where_durations_differ() -> None:
    frames = {event("a"): 10.0, event("b"): 17.0, event("c"): 30.0}
    doubts = dict.fromkeys(frames, 2.0)
    unsteady = [{event("a"): 0, event("b"): place, event("c"): 20} for place in (3, 17)]
    steady, loose = (restore_durations(frames, sources, errors=doubts) for sources in (STEADY, unsteady))
    assert steady[event("b")] > loose[event("b")] > 17


def test_one_source_does_not_tell_what_is_usual() -> None:
    frames = {event("a"): 10.0, event("b"): 17.0, event("c"): 30.0}
    assert restore_durations(frames, STEADY[:1], errors=dict.fromkeys(frames, 5.0)) == pytest.approx(frames)


def test_moving_marks_is_a_least_squares_fit() -> None:
    frames, doubts = [10.0, 17.0, 30.0], [1.0, 2.0, 3.0]
    spread = np.sqrt(
        2 * (0.5 * 10) ** 2 / 3
    )  # at the speed of the new video, both gaps are 10 in both sources
    rows = [*(np.eye(3) / np.array(doubts)[:, None]), *(np.array([[-1, 1, 0], [0, -1, 1]]) / spread)]
    right = [*np.divide(frames, doubts), 10 / spread, 10 / spread]
    marks = [event(name) for name in "abc"]
    found = restore_durations(
        dict(zip(marks, frames, strict=True)), STEADY, errors=dict(zip(marks, doubts, strict=True))
    )
    assert list(found.values()) == pytest.approx(np.linalg.lstsq(np.array(rows), np.array(right))[0])


def test_two_marks_say_nothing_about_the_speed() -> None:
    frames, doubts = {event("a"): 4.0, event("b"): 20.0}, {event("a"): 1.0, event("b"): 3.0}
    sources = [{event("a"): 1, event("b"): 11}, {event("a"): 0, event("b"): 40}, {event("b"): 7}]
    assert restore_durations(frames, sources, errors=doubts) == pytest.approx(frames)


def test_swapped_marks_meet_in_the_middle() -> None:
    found = restore_order(
        {event("a"): 8.0, event("b"): 4.0, event("c"): 20.0}, [{event("a"): 1, event("b"): 2, event("c"): 3}]
    )
    assert found == {event("a"): 6, event("b"): 6, event("c"): 20}


def test_marks_that_no_source_compares_stay_where_they_are() -> None:
    sources = [{event("x"): 10, event("y"): 50}, {event("z"): 5}]
    assert restore_order({event("x"): 10.0, event("y"): 50.0, event("z"): 30.0}, sources) == {
        event("x"): 10,
        event("z"): 30,
        event("y"): 50,
    }


def test_sources_that_contradict_each_other_bind_nothing() -> None:
    sources = [{event("x"): 1, event("y"): 2}, {event("y"): 1, event("x"): 2}]
    assert restore_order({event("x"): 9.0, event("y"): 3.0}, sources) == {event("y"): 3, event("x"): 9}


def test_no_segment_ends_before_it_starts() -> None:
    start, end = ("start", "s", 0), ("end", "s", 0)
    sources = [{start: 3, end: 5}, {event("x"): 1, start: 2}, {start: 1, event("x"): 2}]
    assert restore_order({start: 9.0, end: 4.0, event("x"): 0.0}, sources)[end] == 9
