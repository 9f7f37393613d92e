import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from cycleback.alignment import align, dtw_indices, dtw_path

align_module = sys.modules["cycleback.alignment.align"]  # the package's `align` is the function


def test_nearest_takes_the_nearest_frame(videos):
    a, b = videos[:2]
    alignment = align(a, b, method="nearest")
    distances = cdist(a, b, "sqeuclidean")
    np.testing.assert_array_equal(alignment.indices, distances.argmin(axis=1))
    np.testing.assert_allclose(alignment.distances, distances.min(axis=1))
    assert alignment.path is None and alignment.method == "nearest"


def test_dtw_is_the_default_and_keeps_its_path(videos):
    a, b = videos[:2]
    alignment = align(a, b)
    distances = cdist(a, b, "sqeuclidean")
    np.testing.assert_array_equal(alignment.path, dtw_path(distances))
    np.testing.assert_array_equal(alignment.indices, dtw_indices(alignment.path))
    np.testing.assert_allclose(alignment.distances, distances[np.arange(9), alignment.indices])
    assert alignment.method == "dtw" and (np.diff(alignment.indices) >= 0).all()


def test_a_video_at_half_speed_is_found_again(rng):
    walk = np.cumsum(rng.normal(size=(50, 8)), axis=0)
    slower = np.repeat(walk, 2, axis=0)
    for method in ("nearest", "dtw"):
        assert (align(slower, walk, method=method).indices == np.arange(100) // 2).all()
        assert (align(walk, slower, method=method).indices // 2 == np.arange(50)).all()


def test_centering_takes_out_what_all_frames_of_a_video_share(rng):
    walk = np.cumsum(rng.normal(size=(50, 8)), axis=0)
    elsewhere = walk + 30 * rng.normal(size=8)
    for method in ("nearest", "dtw"):
        centered = align(walk, elsewhere, method=method, center=True)
        assert (centered.indices == np.arange(50)).all() and centered.confidence.min() > 0.99
        assert align(walk, elsewhere, method=method).confidence.mean() < 0.5


METHODS = ["nearest", "dtw", "subsequence", "open_end", "overlap"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("frames_a", "frames_b"), [(1, 1), (1, 6), (6, 1), (5, 8)])
def test_every_frame_gets_one_match(rng, method, frames_a, frames_b):
    a, b = rng.normal(size=(frames_a, 3)), rng.normal(size=(frames_b, 3))
    alignment = align(a.astype(np.float32), b.tolist(), method=method)
    assert alignment.indices.dtype == np.int64
    assert alignment.indices.shape == alignment.confidence.shape == alignment.distances.shape == (frames_a,)
    assert alignment.indices.min() >= 0 and alignment.indices.max() < frames_b
    assert alignment.matched.shape == (frames_a,) and alignment.matched.any()


def test_unknown_method_is_refused(videos):
    with pytest.raises(ValueError, match="'subsequence', 'open_end', 'overlap', got 'soft'"):
        align(videos[0], videos[1], method="soft")


def test_inputs_that_cannot_be_aligned_are_refused(videos):
    with pytest.raises(ValueError, match=r"b must be \(S, D\) with at least one of each, got \(0, 3\)"):
        align(videos[0], videos[1][:0])
    with pytest.raises(ValueError, match="different embedding sizes, 3 and 2"):
        align(videos[0], videos[1][:, :2])
    with pytest.raises(ValueError, match=r"a\[2, 1\] is nan"):
        align(np.where(np.arange(27).reshape(9, 3) == 7, np.nan, videos[0]), videos[1], method="overlap")


def test_options_of_other_methods_are_refused(videos):
    a, b = videos[:2]
    with pytest.raises(ValueError, match=r"a band is for method 'dtw' only, got band 0.2 with 'overlap'"):
        align(a, b, method="overlap", band=0.2)
    with pytest.raises(ValueError, match=r"skip_cost is for .*'overlap' only, got 1.0 with 'dtw'"):
        align(a, b, skip_cost=1.0)
    with pytest.raises(ValueError, match=r"finite number, 0 or more, got -1.0"):
        align(a, b, method="overlap", skip_cost=-1.0)


def test_abstains_where_a_match_is_more_likely_wrong(videos):
    alignment = align(videos[0], videos[1])
    assert alignment.abstain.tolist() == (alignment.confidence < 0.5).tolist()


@pytest.mark.parametrize("method", METHODS)
def test_long_videos_give_the_same_answer_without_the_whole_matrix(rng, monkeypatch, method):
    walk = np.cumsum(rng.normal(size=(300, 8)), axis=0)
    other = walk[np.sort(rng.integers(0, 300, size=250))] + 0.1 * rng.normal(size=(250, 8))
    whole = align(walk, other, method=method)
    monkeypatch.setattr(align_module, "WHOLE_CELLS", 1000)
    long = align(walk, other, method=method)
    np.testing.assert_array_equal(long.indices, whole.indices)
    np.testing.assert_array_equal(long.matched, whole.matched)
    np.testing.assert_allclose(long.confidence, whole.confidence, atol=1e-6)
    np.testing.assert_allclose(long.distances, whole.distances, atol=1e-6)
