import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import cdist

from cycleback.alignment import nearest_neighbors, squared_distances


@settings(deadline=None)
@given(
    rows=hnp.arrays(np.float32, (7, 3), elements=st.floats(-1e3, 1e3, width=32)),
    offset=st.sampled_from([0.0, 1e3, -1e6]),
)
def test_squared_distances_equal_scipy(rows, offset):
    a, b = rows[:4] + offset, rows[4:] + offset
    np.testing.assert_allclose(squared_distances(a, b), cdist(a, b, "sqeuclidean"), rtol=1e-9, atol=1e-6)


def test_equal_rows_are_at_distance_zero_exactly(rng):
    rows = rng.normal(size=(300, 128)) + 50
    distances = squared_distances(rows, rows)
    assert (distances.diagonal() == 0).all() and np.count_nonzero(distances == 0) == 300


def test_collapsed_embeddings_have_no_order():
    collapsed = np.full((40, 128), 0.1, dtype=np.float32)
    assert (squared_distances(collapsed, collapsed) == 0).all()


def test_close_frames_are_told_apart(rng):
    row = rng.normal(size=(1, 64))
    rows = row + 1e-5 * np.arange(5)[:, None]
    np.testing.assert_allclose(squared_distances(row, rows)[0], 64e-10 * np.arange(5) ** 2, rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_located(bad):
    b = np.ones((4, 3))
    b[2, 1] = bad
    with pytest.raises(ValueError, match=rf"b\[2, 1\] is {bad}: only finite numbers can be aligned"):
        squared_distances(np.ones((5, 3)), b)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,), (1, 3, 3)])
def test_anything_but_frames_by_channels_is_refused(shape):
    text = str(shape).replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=rf"a must be \(T, D\) with at least one of each, got {text}"):
        squared_distances(np.ones(shape), np.ones((2, 3)))


def test_different_embedding_sizes_are_named():
    with pytest.raises(ValueError, match="different embedding sizes, 128 and 32"):
        squared_distances(np.ones((2, 128)), np.ones((3, 32)))


@pytest.mark.parametrize("chunk_frames", [1, 7, 50, 1024])
def test_neighbors_equal_scipy_whatever_the_chunk(rng, chunk_frames):
    a, b = rng.normal(size=(50, 8)), rng.normal(size=(31, 8))
    found = nearest_neighbors(a, b, chunk_frames=chunk_frames)
    np.testing.assert_array_equal(found, cdist(a, b).argmin(axis=1))
    assert found.dtype == np.int64


def test_first_of_equals_is_taken():
    assert nearest_neighbors([[0.0]], [[5.0], [1.0], [-1.0]]).tolist() == [1]
    assert nearest_neighbors(np.ones((3, 2)), np.ones((4, 2))).tolist() == [0, 0, 0]


def test_numbers_that_are_not_finite_are_located_in_the_whole_video():
    a = np.ones((10, 2))
    a[9, 1] = np.nan
    with pytest.raises(ValueError, match=r"a\[9, 1\] is nan"):
        nearest_neighbors(a, a, chunk_frames=4)


def test_chunks_without_frames_are_refused():
    with pytest.raises(ValueError, match="chunk_frames must be at least 1, got 0"):
        nearest_neighbors([[1.0]], [[1.0]], chunk_frames=0)
