import numpy as np
import pytest
from scipy.spatial.distance import cdist

from cycleback.alignment import nearest_neighbors


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
