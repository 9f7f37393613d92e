from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest

from cycleback.applications.label_probe import Hint
from cycleback.applications.label_votes import (
    DURATION_WEIGHT,
    PRIOR_SPREAD,
    choose_frames,
    vote,
    weighted_median,
)


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


def test_a_vote_between_two_frames_is_rounded_once() -> None:
    """Frame 1 of the sources matches frames 1 and 2, or 2 and 3: on average frame 2."""
    video = np.array([[0.0], [4.0], [4.0], [4.0], [9.0]])
    near, far = np.array([[0.0], [4.0], [9.0]]), np.array([[0.0], [4.0], [9.0]])
    assert vote(video, [(near, {event("x"): 1}), (far, {event("x"): 1})])[event("x")][0] == 2


def test_a_source_that_fits_badly_has_little_weight() -> None:
    video = np.linspace(0, 1, 50)[:, None] * [1.0, 0.0]
    odd = video + np.array([0.0, 0.3])  # as far from every frame
    for labelled, expected in (({event("x"): 10}, 10), ({event("x"): 40}, 40)):
        found = vote(video, [(video, labelled), (odd, {event("x"): 25}), (odd, {event("x"): 25})])
        assert found[event("x")][0] == expected


def test_a_hint_decides_between_votes_that_are_equally_strong() -> None:
    video = np.linspace(0, 1, 60)[:, None]
    sources = [(video, {event("x"): 15}), (video, {event("x"): 45})]
    for place in (15, 45):
        scores = np.exp(-((np.arange(60) - place) ** 2) / 8.0)
        frame, sure = vote(video, sources, hints={event("x"): Hint(scores, 1.0)})[event("x")]
        assert frame == place
        unusual = vote(video, sources, hints={event("x"): Hint(scores, 4.0)})[event("x")]
        assert unusual[1] < sure < 1  # less like the labelled frames


MARKS = [event(name) for name in "abc"]
STEADY = [dict(zip(MARKS, frames, strict=True)) for frames in ((5, 15, 25), (2, 22, 42))]


def bumps(*places: float, length: int = 12, width: float = 2.0) -> dict[tuple[str, str, int], np.ndarray]:
    """Evidence (N + 1,) around the places of the marks; none at the end of the video."""
    rows = [np.exp(-((np.arange(length + 1) - place) ** 2) / (2 * width**2)) for place in places]
    for row in rows:
        row[-1] = -np.inf
    return dict(zip(MARKS, rows, strict=False))


@pytest.mark.parametrize("seed", range(5))
def test_the_choice_is_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    evidence = {mark: np.append(rng.uniform(size=9), -np.inf) for mark in MARKS}
    middles = dict(zip(MARKS, sorted(rng.uniform(0, 8, size=3).tolist()), strict=True))
    sources = [
        dict(zip(MARKS, np.cumsum(rng.integers(1, 6, size=3)).tolist(), strict=True)) for _ in range(3)
    ]
    logs = np.log([[marks[b] - marks[a] for a, b in pairwise(MARKS)] for marks in sources])
    spread = (np.square(logs - logs.mean(axis=0)).sum(axis=0) + 2 * PRIOR_SPREAD**2) / (len(logs) + 2)
    guess = np.log(np.maximum(np.diff(list(middles.values())), 0.5))
    usual = logs.mean(axis=0) + np.median(guess - logs.mean(axis=0))

    def value(frames: tuple[int, ...]) -> float:
        gaps = np.log(np.maximum(np.diff(frames), 0.5))
        price = DURATION_WEIGHT * ((gaps - usual) ** 2 / (2 * spread)).sum()
        return sum(evidence[mark][frame] for mark, frame in zip(MARKS, frames, strict=True)) - price

    best = max(combinations_with_replacement(range(9), 3), key=value)
    found = choose_frames(evidence, middles, sources)
    assert tuple(found[mark] for mark in MARKS) == best


def test_a_doubtful_mark_goes_to_where_it_usually_is_between_sure_ones() -> None:
    evidence = bumps(10, 17, 30, length=40, width=1.0)
    evidence[event("b")] *= 0.01
    middles = {mark: float(row.argmax()) for mark, row in evidence.items()}
    found = choose_frames(evidence, middles, STEADY)
    assert [found[mark] for mark in MARKS] == [10, 20, 30]


def test_marks_at_the_usual_pace_stay_at_any_speed() -> None:
    for speed in (0.5, 1.0, 8.0):
        places = [3 + speed * place for place in (0, 10, 20)]
        middles = dict(zip(MARKS, places, strict=True))
        found = choose_frames(bumps(*places, length=200), middles, STEADY)
        assert list(found.values()) == places


def test_one_source_does_not_tell_what_is_usual() -> None:
    middles = dict(zip(MARKS, (1.0, 9.0, 10.0), strict=True))
    assert choose_frames(bumps(1, 9, 10), middles, STEADY[:1]) == middles


def test_swapped_marks_meet_in_the_middle() -> None:
    found = choose_frames(bumps(8, 4, 11), {MARKS[0]: 8.0, MARKS[1]: 4.0, MARKS[2]: 11.0}, STEADY[:1])
    assert found == {MARKS[0]: 6, MARKS[1]: 6, MARKS[2]: 11}


def test_the_most_likely_frames_of_a_long_video_are_enough() -> None:
    places = (1500.0, 4000.0, 7000.0)
    middles = dict(zip(MARKS, places, strict=True))
    assert choose_frames(bumps(*places, length=9000, width=3.0), middles, STEADY) == middles


def test_marks_that_no_source_compares_stay_where_they_are() -> None:
    middles = dict(zip(MARKS, (1.0, 9.0, 5.0), strict=True))
    sources = [{MARKS[0]: 10, MARKS[1]: 50}, {MARKS[2]: 5}]
    assert choose_frames(bumps(1, 9, 5), middles, sources) == middles


def test_sources_that_contradict_each_other_bind_nothing() -> None:
    middles = {MARKS[0]: 9.0, MARKS[1]: 3.0}
    sources = [{MARKS[0]: 1, MARKS[1]: 2}, {MARKS[1]: 1, MARKS[0]: 2}]
    assert choose_frames(bumps(9, 3), middles, sources) == middles


def test_no_segment_ends_before_it_starts() -> None:
    start, end = ("start", "s", 0), ("end", "s", 0)
    evidence = dict(zip((start, end, event("x")), bumps(9, 4, 0).values(), strict=True))
    sources = [{start: 3, end: 5}, {event("x"): 1, start: 2}, {start: 1, event("x"): 2}]
    assert choose_frames(evidence, {start: 9.0, end: 4.0, event("x"): 0.0}, sources)[end] == 9
