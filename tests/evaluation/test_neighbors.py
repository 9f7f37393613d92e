import re

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from cycleback.evaluation import neighbors
from cycleback.evaluation.neighbors import nearest_frames, nearest_table


def loop(queries, references):
    return np.array([cdist(queries, reference, "sqeuclidean").argmin(axis=1) for reference in references])


def test_nearest_frames_are_those_of_all_distances(walks):
    queries = np.concatenate(walks)
    np.testing.assert_array_equal(nearest_frames(queries, walks), loop(queries, walks))


def test_single_precision_embeddings_far_from_zero_keep_their_neighbors(walks):
    far = [(video + 1000).astype(np.float32) for video in walks]
    np.testing.assert_array_equal(nearest_frames(far[0], far), loop(far[0], far))


@pytest.mark.parametrize("scale", [1e-30, 1e25])
def test_the_scale_of_the_embeddings_does_not_matter(walks, scale):
    expected = nearest_frames(walks[0], walks)
    scaled = [scale * video for video in walks]
    np.testing.assert_array_equal(nearest_frames(scaled[0], scaled), expected)


def test_rows_too_close_for_single_precision_are_told_apart(rng):
    reference = rng.normal(size=8) + 1e-5 * rng.normal(size=(40, 8))
    reference = np.concatenate([reference, -reference])
    queries = reference + 1e-9 * rng.normal(size=reference.shape)
    np.testing.assert_array_equal(nearest_frames(queries, [reference])[0], np.arange(80))


def test_of_equally_near_frames_the_first_is_taken(rng):
    frames = rng.integers(0, 3, size=(60, 2)).astype(np.float64)
    np.testing.assert_array_equal(nearest_frames(frames, [frames[::2]]), loop(frames, [frames[::2]]))


@pytest.mark.parametrize("value", [0.0, 0.1, 12345.678])
def test_a_collapsed_video_sends_all_frames_to_the_first(value, rng):
    collapsed = np.full((50, 128), value, dtype=np.float32)
    assert nearest_frames(rng.normal(size=(30, 128)), [collapsed]).max() == 0


def test_blocks_do_not_change_the_result(walks, monkeypatch):
    expected = nearest_frames(walks[1], walks)
    monkeypatch.setattr(neighbors, "BLOCK_CELLS", 40)
    np.testing.assert_array_equal(nearest_frames(walks[1], walks), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_an_error(walks, bad):
    walks[2][3, 1] = bad
    with pytest.raises(ValueError, match="finite"):
        nearest_frames(walks[0], walks)


@pytest.mark.parametrize("shape", [(0, 4), (5, 1), (4,)])
def test_wrong_shapes_are_an_error(walks, shape):
    with pytest.raises(ValueError, match=re.escape(f"got shapes [(17, 4), {shape}]")):
        nearest_frames(walks[0], [np.zeros(shape)])


def test_the_table_has_every_frame_of_every_video(walks):
    table = nearest_table(walks)
    np.testing.assert_array_equal(table.frames, loop(np.concatenate(walks), walks))
    assert table.starts.tolist() == [0, 17, 47, 77, 85, 108]
