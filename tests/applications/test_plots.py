import io

import numpy as np
import pytest
from PIL import Image

from cycleback.applications.plots import similarity_picture, tsne_picture


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


@pytest.fixture
def videos() -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    line = np.linspace(0, 1, 30)[:, None]
    return [np.hstack([line, line**2]) + 0.01 * generator.normal(size=(30, 2)) for _ in range(3)]


def test_a_similarity_picture_has_a_panel_each_and_shows_the_events(videos: list[np.ndarray]) -> None:
    one = pixels(similarity_picture({"a": (videos[0], videos[1])}))
    two = pixels(similarity_picture({"a": (videos[0], videos[1]), "b": (videos[1], videos[2])}))
    ringed = pixels(similarity_picture({"a": (videos[0], videos[1])}, events=([5, 20], [6, 21])))
    assert two.shape[1] == 2 * one.shape[1]
    assert (ringed[..., 0] - ringed[..., 1] > 100).sum() > 100 > (one[..., 0] - one[..., 1] > 100).sum()


def test_a_tsne_picture_is_the_same_twice(videos: list[np.ndarray]) -> None:
    phases = [np.repeat([0, 1], 15)] * 3
    first, second = (tsne_picture({"x": videos}, phases, phase_names=["before", "after"]) for _ in range(2))
    assert np.array_equal(pixels(first), pixels(second))
    assert (pixels(first) != 255).any()
