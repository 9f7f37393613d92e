import io

import numpy as np
import pytest
from PIL import Image

from cycleback.comparison.pictures import map_picture, similarity_picture, spread_points
from cycleback.embeddings import EmbeddingSet


def size(picture: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(picture)).size


def test_spread_points_are_far_from_each_other() -> None:
    points = np.array([[0.0, 0], [0.1, 0], [10, 0], [10.1, 0], [5, 8]])
    assert sorted(spread_points(points, 3)) == [0, 3, 4]
    assert len(spread_points(points, 9)) == 5


def test_there_is_one_matrix_a_stage_and_a_collapsed_one_is_drawn_too() -> None:
    ramp, still = np.linspace(0, 1, 12)[:, None].astype("f4"), np.zeros((12, 1), "f4")
    one = size(similarity_picture({"a": (ramp, ramp)}))
    two = size(similarity_picture({"a": (ramp, ramp), "b": (still, still)}, events=([3], [4])))
    assert two[0] == pytest.approx(2 * one[0], abs=2)


def test_a_map_is_drawn_with_and_without_labels() -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=(12, 3)) for name in "ab"}
    bare = EmbeddingSet.from_arrays(arrays)
    labelled = EmbeddingSet.from_arrays(arrays, events={name: {"top": 5} for name in "ab"})
    for videos in (bare, labelled):
        width, height = size(map_picture({"x": videos, "y": videos}, ["a", "b"], None))
        assert width > height
