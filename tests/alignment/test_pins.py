import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from alignment import loops
from cycleback.alignment import align, align_many, check_pins, match_frames
from cycleback.alignment.bounds import FREE
from cycleback.alignment.pins import place_pins
from cycleback.errors import UserError

align_module = sys.modules["cycleback.alignment.align"]  # the package's `align` is the function
WARPS = ["auto", "dtw", "subsequence", "open_end", "overlap"]


@st.composite
def pinned_pairs(draw, max_frames=5):
    """Two tiny videos and up to three pins between them."""
    num_a, num_b = draw(st.integers(1, max_frames)), draw(st.integers(1, max_frames))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(0, min(num_a, num_b, 3)))
    rows, columns = (sorted(rng.choice(n, size=count, replace=False).tolist()) for n in (num_a, num_b))
    a, b = (rng.normal(size=(n, 2)) for n in (num_a, num_b))
    return a, b, list(zip(rows, columns, strict=True))


def paths_through(pins, shape, *, starts=((0, 0),)):
    """Every monotone path from one of `starts` that visits all pins."""
    return [path for start in starts for path in loops.all_paths(shape, start) if set(pins) <= set(path)]


def cost_of(path, cost):
    return sum(cost[i][j] for i, j in path)


@settings(max_examples=60, deadline=None)
@given(pinned_pairs())
def test_dtw_is_the_cheapest_of_all_paths_through_the_pins(case):
    a, b, pins = case
    cost, last = cdist(a, b, "sqeuclidean"), (len(a) - 1, len(b) - 1)
    path = [tuple(cell) for cell in align(a, b, method="dtw", pins=pins).path.tolist()]
    known = paths_through(pins, cost.shape)
    least = min(cost_of(way, cost) for way in known if way[-1] == last)
    assert path in known and path[-1] == last
    assert cost_of(path, cost) == pytest.approx(least)


@settings(max_examples=60, deadline=None)
@given(pinned_pairs(max_frames=4), st.sampled_from(sorted(FREE)), st.floats(0, 4))
def test_free_ends_are_the_cheapest_of_all_paths_through_the_pins(case, method, skip_cost):
    a, b, pins = case
    cost, free = cdist(a, b, "sqeuclidean"), FREE[method]
    starts = [
        (i, j) for i, j in np.ndindex(cost.shape) if (free.lead_in_a or not i) and (free.lead_in_b or not j)
    ]
    allowed = [
        path
        for path in paths_through(pins, cost.shape, starts=starts)
        if (free.tail_a or path[-1][0] == len(a) - 1) and (free.tail_b or path[-1][1] == len(b) - 1)
    ]
    path = [tuple(cell) for cell in align(a, b, method=method, pins=pins, skip_cost=skip_cost).path.tolist()]
    least = min(loops.free_price(cost, way, skip_cost) for way in allowed)
    assert path in allowed
    assert loops.free_price(cost, path, skip_cost) == pytest.approx(least)


@settings(max_examples=40, deadline=None)
@given(pinned_pairs())
def test_auto_takes_the_cheapest_path_between_its_own_ends(case):
    a, b, pins = case
    cost = cdist(a, b, "sqeuclidean")
    path = [tuple(cell) for cell in align(a, b, pins=pins).path.tolist()]
    known = paths_through(pins, cost.shape, starts=[path[0]])
    assert path in known
    assert cost_of(path, cost) == pytest.approx(
        min(cost_of(way, cost) for way in known if way[-1] == path[-1])
    )


@settings(max_examples=80, deadline=None)
@given(pinned_pairs(max_frames=30), st.sampled_from([*WARPS, "nearest"]))
def test_pinned_frames_take_their_pin_and_the_others_stay_between(case, method):
    a, b, pins = case
    match = align(a, b, method=method, pins=pins)
    for i, j in pins:
        assert match.indices[i] == match.positions[i] == j
        assert match.confidence[i] == 1 and match.matched[i] and not match.abstain[i]
        for values in (match.indices, match.positions):
            assert (values[:i] <= j).all() and (values[i:] >= j).all()
    if method != "nearest":
        steps = np.diff(match.path, axis=0)
        assert ((steps >= 0) & (steps <= 1)).all() and (steps.sum(axis=1) >= 1).all()
        assert {tuple(pin) for pin in pins} <= {tuple(cell) for cell in match.path.tolist()}
        assert (np.diff(match.indices) >= 0).all() and (np.diff(match.positions) >= 0).all()
    assert (np.abs(match.positions - match.indices) <= 0.5).all() or method != "nearest"


def test_nearest_searches_only_between_the_pins(rng):
    a, b = rng.normal(size=(12, 3)), rng.normal(size=(15, 3))
    cost = cdist(a, b, "sqeuclidean")
    expected = [*(cost[:4, :7].argmin(axis=1)), 6, *(6 + cost[5:, 6:].argmin(axis=1))]
    assert align(a, b, method="nearest", pins=[(4, 6)]).indices.tolist() == expected


def test_a_pin_decides_between_two_equal_moments(rng):
    swing = np.cumsum(rng.normal(size=(30, 6)), axis=0)
    twice = np.concatenate([swing, swing]) + 0.1 * rng.normal(size=(60, 6))
    free = align(swing, twice, method="subsequence")
    first, second = (align(swing, twice, method="subsequence", pins=[(5, at)]) for at in (5, 35))
    np.testing.assert_array_equal(first.indices, np.arange(30))
    np.testing.assert_array_equal(second.indices, np.arange(30, 60))
    # after the pin the first moment is no longer in question
    assert np.median(free.confidence[6:]) < 0.7 < 0.9 < np.median(second.confidence[6:])


def test_auto_leaves_out_a_lead_in_before_the_first_pin_but_never_a_pin(rng):
    swing = np.cumsum(rng.normal(size=(60, 6)), axis=0)
    longer = np.concatenate([30 + rng.normal(size=(25, 6)), swing])
    match = align(longer, swing, pins=[(45, 20), (70, 45)])
    assert not match.matched[:24].any() and match.matched[26:].all()
    np.testing.assert_array_equal(match.indices[26:], np.arange(1, 60))
    early = align(longer, swing, pins=[(3, 0), (70, 45)])  # in the lead-in: the user knows better
    assert early.matched[3:].all() and early.indices[3] == 0


@pytest.mark.parametrize("method", [*WARPS, "nearest"])
def test_long_videos_and_short_ones_agree(rng, monkeypatch, method):
    a = np.cumsum(rng.normal(size=(90, 4)), axis=0)
    b, pins = np.repeat(a, 2, axis=0) + 0.01 * rng.normal(size=(180, 4)), [(20, 47), (60, 121)]
    short = align(a, b, method=method, pins=pins)
    monkeypatch.setattr(align_module, "MAX_CELLS", 1000)  # also of each rectangle
    long = align(a, b, method=method, pins=pins)
    np.testing.assert_array_equal(long.indices, short.indices)
    np.testing.assert_array_equal(long.matched, short.matched)
    np.testing.assert_allclose(long.positions, short.positions, atol=1e-6)
    np.testing.assert_allclose(long.confidence, short.confidence, atol=1e-6)


def test_a_band_follows_the_lines_from_pin_to_pin(rng):
    a, b, pins = rng.normal(size=(60, 3)), rng.normal(size=(80, 3)), [(10, 40), (11, 60)]
    knots = np.array([(0, 0), *pins, (59, 79)])
    path = align(a, b, method="dtw", band=0.05, pins=pins).path
    line = np.interp(path[:, 0], *knots.T)
    outside = np.abs(path[:, 1] - line) > 0.05 * 80 + 1e-9
    assert not outside[(path[:, 0] < 10) | (path[:, 0] > 11)].any()
    assert {(10, 40), (11, 60)} <= {
        tuple(cell) for cell in path.tolist()
    }  # a jump that the band alone forbids


@pytest.mark.parametrize("method", ["dtw", "nearest"])
def test_a_strong_time_prior_gives_straight_lines_from_pin_to_pin(rng, method):
    a, b, pins = rng.normal(size=(41, 3)), rng.normal(size=(41, 3)), [(10, 20), (30, 24)]
    match = align(a, b, method=method, time_prior=1e6, pins=pins)
    line = np.interp(np.arange(41), [0, 10, 30, 40], [0, 20, 24, 40])
    assert np.abs(match.indices - line).max() <= 1


def test_without_pins_nothing_changes(videos):
    a, b = videos[:2]
    for method in [*WARPS, "nearest"]:
        plain, empty = align(a, b, method=method), align(a, b, method=method, pins=[])
        np.testing.assert_array_equal(plain.positions, empty.positions)
        np.testing.assert_array_equal(plain.confidence, empty.confidence)
    np.testing.assert_array_equal(
        align(a, b, method="dtw").indices, match_frames(loops.dtw(cdist(a, b, "sqeuclidean"))[1])
    )


def test_pins_are_sorted_and_equal_pins_count_once():
    assert check_pins([(4, 7), (1, 2), (4, 7)], 5, 8).tolist() == [[1, 2], [4, 7]]
    assert check_pins([], 5, 8).shape == (0, 2)


@pytest.mark.parametrize(
    ("pins", "message"),
    [
        ([(12, 30), (40, 20)], "pins 12:30 and 40:20 of a and b cross, but both videos run forwards"),
        ([(12, 30), (12, 31)], "pins 12:30 and 12:31 of a and b give frame 12 of a two matches"),
        ([(12, 30), (13, 30)], "pins 12:30 and 13:30 of a and b give frame 30 of b two matches"),
        ([(50, 3)], "pin 50:3 names frame 50 of a, which has frames 0 to 49"),
        ([(5, -1)], "pin 5:-1 names frame -1 of b, which has frames 0 to 59"),
    ],
)
def test_pins_that_cannot_hold_are_refused_in_one_line(pins, message):
    with pytest.raises(UserError, match=message) as caught:
        align(np.zeros((50, 2)), np.zeros((60, 2)), pins=pins)
    assert "\n" not in str(caught.value)


def test_pins_that_are_no_pairs_of_frames_are_a_mistake_of_the_caller():
    for pins in ([(1, 2, 3)], [(1.5, 2.0)], np.zeros(4, dtype=int)):
        with pytest.raises(ValueError, match="pins must be pairs of frame numbers"):
            check_pins(pins, 10, 10)


def match_by_share(video, pins):
    """Frame n of a video goes with frame 2 n of the reference; the first videos are the surest."""
    return 2 * np.arange(10), np.full(10, 1 / (1 + video))


def test_a_pin_between_two_other_videos_is_placed_by_the_surer_of_them():
    links = [(0, 4, 1, 3), (2, 6, 1, 8)]  # of the reference with 1; of 2 with 1, by 1: frame 16
    pins = place_pins(links, [20, 10, 10], reference=0, match=match_by_share)
    assert [own.tolist() for own in pins] == [[[4, 4]], [[4, 3], [16, 8]], [[16, 6]]]


def test_a_pin_reaches_the_reference_through_another_video():
    pins = place_pins([(2, 6, 1, 3), (1, 3, 0, 5)], [20, 10, 10], reference=0, match=match_by_share)
    assert [own.tolist() for own in pins] == [[[5, 5]], [[5, 3]], [[5, 6]]]


def test_moments_keep_the_order_of_every_video_where_their_guesses_do_not():
    def match(video, pins):  # the surest matches run backwards
        return np.arange(9, -1, -1), np.ones(10)

    pins = place_pins([(1, 2, 2, 2), (1, 5, 2, 6), (0, 6, 1, 9)], [10, 10, 10], reference=0, match=match)
    assert (np.diff(pins[1], axis=0) > 0).all() and (np.diff(pins[2], axis=0) > 0).all()
    assert pins[1][-1].tolist() == [6, 9] and pins[1][:, 1].tolist() == [2, 5, 9]


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([(0, 1, 1, 2), (1, 1, 0, 5)], "pins 1:2 and 5:1 of u and v cross"),
        (
            [(0, 1, 1, 2), (1, 2, 2, 3), (2, 3, 0, 4)],
            "tie frames 4 and 1 of u together|tie frames 1 and 4 of u",
        ),
        ([(0, 1, 1, 5), (1, 2, 2, 5), (2, 2, 0, 5)], "pins contradict each other"),
        ([(1, 1, 2, 1), (1, 2, 2, 2), (1, 3, 2, 3)], "3 pins of other videos lie between frames 0 and 1"),
    ],
)
def test_pins_of_several_videos_that_contradict_each_other_are_refused(links, message):
    lengths = [2, 9, 9] if "other videos lie" in message else [9, 9, 9]
    with pytest.raises(UserError, match=message):
        place_pins(
            links,
            lengths,
            reference=0,
            match=lambda v, own: (np.zeros(9, int), np.ones(9)),
            names=["u", "v", "w"],
        )


def test_pinned_frames_of_several_videos_share_a_tick(videos):
    links = [(0, 2, 1, 9), (2, 8, 3, 4), (1, 12, 3, 7)]
    together = align_many(videos, pins=links)
    for u, i, v, j in links:
        assert together.ticks[u][i] == together.ticks[v][j]
        assert together.between(u, v)[i] == j and together.between(v, u)[j] == i
    assert all((np.diff(frames) >= 0).all() for frames in (*together.indices, *together.ticks))
    assert (np.diff(together.costs) <= 1e-9).all()
    assert together.medoid == align_many(videos).medoid
