import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from cycleback.alignment import align, ends, squared_distances
from cycleback.alignment.ends import drop_standstills, find_common_part


def film(rng, frames):
    """Embeddings (frames, 24) that change smoothly and stay in one region, as those of real videos do."""
    smooth = gaussian_filter1d(rng.normal(size=(frames + 20, 24)), 3, axis=0)
    return 3 * smooth[10 : 10 + frames]


@pytest.fixture
def action(rng):
    """One action at two paces, with noise."""
    whole = film(rng, 80)
    paces = [np.sort(rng.choice(80, size=n, replace=False)) for n in (60, 70)]
    return [whole[pace] + 0.2 * rng.normal(size=(len(pace), 24)) for pace in paces], paces


def test_videos_that_show_the_same_are_kept_whole(action):
    (a, b), _ = action
    assert find_common_part(a, b) == (slice(0, 60), slice(0, 70))
    found, expected = align(a, b), align(a, b, method="dtw")
    np.testing.assert_array_equal(found.path, expected.path)
    assert found.matched.all() and found.method == "auto"


@pytest.mark.parametrize(("before", "after"), [(25, 0), (0, 25), (20, 20)])
def test_a_lead_in_and_a_lead_out_are_left_out(rng, action, before, after):
    (a, b), _ = action
    other = [film(rng, n) for n in (before, after)]
    longer = np.concatenate([other[0], a, other[1]])
    found = align(longer, b)
    truth = np.zeros(len(longer), dtype=bool)
    truth[before : before + 60] = True
    assert (found.matched == truth).mean() > 0.95
    inside = slice(before + 3, before + 57)
    plain = align(a, b, method="dtw").indices[3:57]
    assert np.abs(found.indices[inside] - plain).max() <= 2
    swapped = align(b, longer)  # the same frames are left out of b
    assert swapped.matched.all() and abs(swapped.indices[0] - before) <= 2


def test_what_one_video_lacks_is_left_out_of_the_other(action):
    (a, b), (pace_a, pace_b) = action
    cut = 20
    found = align(a, b[cut:])
    expected = pace_a >= pace_b[cut]
    assert (found.matched == expected).mean() > 0.9
    error = np.abs(pace_b[cut:][found.indices] - pace_a)[found.matched & expected]
    assert np.median(error) <= 1


def test_distances_may_be_shifted_and_scaled(rng, action):
    (a, b), _ = action
    longer = np.concatenate([film(rng, 25), a])
    part = find_common_part(longer, b)
    assert part[0].start > 15
    distances = squared_distances(longer, b)
    assert find_common_part(longer, b, 7 * distances) == part
    assert find_common_part(longer, b, distances + 100 * distances.max()) == part


def test_less_than_half_in_common_is_not_believed(rng):
    a, b = film(rng, 60), film(rng, 60)
    b[:12] = a[-12:]
    assert find_common_part(a, b) == (slice(0, 60), slice(0, 60))


def test_long_videos_are_decided_at_a_coarser_scale(rng, action, monkeypatch):
    (a, b), _ = action
    longer = np.concatenate([film(rng, 40), a])
    exact = find_common_part(longer, b)
    monkeypatch.setattr(ends, "MAX_CELLS", 2000)
    coarse = find_common_part(longer, b)
    for fine, rough in zip(exact, coarse, strict=True):
        assert abs(fine.start - rough.start) <= 4 and abs(fine.stop - rough.stop) <= 4
    assert coarse[0].stop <= 100 and coarse[1].stop <= 70


def test_a_standstill_at_an_end_is_dropped():
    still = [[i, 0] for i in range(10)]
    moving = [[10 + i, 1 + i] for i in range(20)]
    assert drop_standstills(np.array(still + moving)).tolist() == [[9, 0], *moving]
    assert drop_standstills(np.array(still[6:] + moving)).tolist() == still[6:] + moving  # too short
    tail = [[29, 21 + i] for i in range(12)]
    assert drop_standstills(np.array(moving + tail)).tolist() == moving
    slow = np.array([[i, i // 5] for i in range(100)])  # five times as slow, but never still
    assert drop_standstills(slow).tolist() == slow.tolist()


def test_one_frame_against_many_is_matched(rng):
    for frames_a, frames_b in ((1, 40), (40, 1), (2, 40)):
        found = align(rng.normal(size=(frames_a, 3)), rng.normal(size=(frames_b, 3)))
        assert found.matched.any() and len(found.indices) == frames_a
