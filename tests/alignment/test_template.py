import numpy as np
import pytest

from alignment import loops
from cycleback.alignment import align, align_many, squared_distances, template


@pytest.fixture
def takes(rng):
    """One action at five paces."""
    walk = np.cumsum(rng.normal(size=(60, 6)), axis=0)
    paces = [np.sort(rng.integers(0, 60, size=n)) for n in (50, 60, 70, 80, 55)]
    return [walk[pace] + 0.1 * rng.normal(size=(len(pace), 6)) for pace in paces], paces


def test_every_video_runs_forwards_on_the_clock(videos):
    found = align_many(videos)
    ticks = len(found.template)
    assert found.indices.shape == (4, ticks) and found.template.shape == (ticks, 3)
    for video, indices, own in zip(videos, found.indices, found.ticks, strict=True):
        assert (np.diff(indices) >= 0).all() and (np.diff(own) >= 0).all()
        assert indices.min() >= 0 and indices.max() < len(video)
        assert own.shape == (len(video),) and own.min() >= 0 and own.max() < ticks


def test_the_same_moment_has_the_same_tick(takes):
    videos, paces = takes
    found = align_many(videos)
    for indices, pace in zip(found.indices[1:], paces[1:], strict=True):
        assert np.median(np.abs(pace[indices] - paces[0][found.indices[0]])) <= 1


def test_ways_through_the_clock_agree(takes):
    """u to v to w is u to w, up to frames that share a tick."""
    found = align_many(takes[0])
    step = max(np.diff(indices).max() for indices in found.indices)
    for u, v, w in ((0, 1, 2), (3, 0, 4), (2, 4, 1)):
        straight, round_about = found.between(u, w), found.between(v, w)[found.between(u, v)]
        assert np.median(np.abs(straight - round_about)) <= 1
        assert np.abs(straight - round_about).max() <= 2 * step


def test_between_is_about_as_good_as_aligning_the_pair(takes):
    videos, paces = takes
    found = align_many(videos)
    by_clock = np.abs(paces[1][found.between(0, 1)] - paces[0]).mean()
    by_pair = np.abs(paces[1][align(videos[0], videos[1]).indices] - paces[0]).mean()
    assert by_clock <= by_pair + 1


def test_medoid_has_the_least_cost_to_the_others(videos):
    def cost(a, b):
        return loops.dtw(squared_distances(a, b).tolist())[0] / (len(a) + len(b))

    totals = [sum(cost(a, b) for b in videos) for a in videos]
    found = align_many(videos, iterations=0)
    assert found.medoid == int(np.argmin(totals))
    np.testing.assert_array_equal(found.template, videos[found.medoid])


def test_a_round_of_averaging_equals_the_loop(videos):
    start = align_many(videos, iterations=0)
    paths = [loops.dtw(squared_distances(start.template, video).tolist())[1] for video in videos]
    expected = loops.barycentre(paths, videos, len(start.template))
    np.testing.assert_allclose(align_many(videos, iterations=1).template, expected)


def test_no_round_makes_the_template_worse(videos):
    costs = align_many(videos, iterations=6).costs
    assert len(costs) == 7 and (np.diff(costs) <= 1e-9).all() and costs[-1] < costs[0]


def test_equal_videos_are_the_template(videos):
    found = align_many([videos[0]] * 3)
    assert (found.indices == np.arange(9)).all() and found.costs[-1] == 0
    np.testing.assert_allclose(found.template, videos[0])


def test_centering_takes_out_what_all_frames_of_a_video_share(takes):
    videos = takes[0]
    shifted = [video + 50 * number for number, video in enumerate(videos)]
    centered = [video - video.mean(axis=0) for video in videos]
    found = align_many(shifted, center=True)
    np.testing.assert_array_equal(found.indices, align_many(centered).indices)


def test_long_videos_go_coarse_to_fine(takes, monkeypatch):
    whole = align_many(takes[0])
    monkeypatch.setattr(template, "WHOLE_CELLS", 100)
    np.testing.assert_array_equal(align_many(takes[0]).indices, whole.indices)


@pytest.mark.parametrize("frames", [1, 2])
def test_very_short_videos_share_a_clock_too(rng, frames):
    found = align_many([rng.normal(size=(n, 3)) for n in (frames, 5, 1)])
    assert found.indices.shape == (3, len(found.template))


def test_bad_input_is_refused(videos):
    with pytest.raises(ValueError, match="expected at least 2 videos, got 1"):
        align_many(videos[:1])
    with pytest.raises(ValueError, match="iterations must not be negative, got -1"):
        align_many(videos, iterations=-1)
    with pytest.raises(ValueError, match=r"different embedding sizes \[3, 2\]"):
        align_many([videos[0], videos[1][:, :2]])
    with pytest.raises(ValueError, match=r"embeddings\[1\]\[0, 0\] is nan"):
        align_many([videos[0], np.full((4, 3), np.nan)])
    with pytest.raises(ValueError, match=r"embeddings\[0\] must be \(N, D\) .* got \(0, 3\)"):
        align_many([videos[0][:0], videos[1]])
