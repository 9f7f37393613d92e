import io

import numpy as np
from PIL import Image

from cycleback.comparison.pictures import map_picture
from cycleback.embeddings import EmbeddingSet


def size(picture: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(picture)).size


def test_a_map_is_drawn_with_and_without_labels() -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=(12, 3)) for name in "ab"}
    bare = EmbeddingSet.from_arrays(arrays)
    labelled = EmbeddingSet.from_arrays(arrays, events={name: {"top": 5} for name in "ab"})
    for videos in (bare, labelled):
        width, height = size(map_picture({"x": videos, "y": videos}, ["a", "b"], None))
        assert width > height
