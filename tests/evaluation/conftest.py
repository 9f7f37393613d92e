"""Small embedded videos with known structure, and slow references written as loops."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from cycleback.embeddings import EmbeddingSet

EVENTS = ("touch", "pour", "back")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def walks(rng) -> list[NDArray]:
    """Five videos of different lengths along one noisy curve in four dimensions."""
    curve = np.cumsum(rng.normal(size=(200, 4)), axis=0)
    chosen = [np.sort(rng.choice(200, size=size, replace=False)) for size in (17, 30, 30, 8, 23)]
    return [curve[frames] + 0.5 * rng.normal(size=(len(frames), 4)) for frames in chosen]


@pytest.fixture
def make_set() -> Callable[..., EmbeddingSet]:
    """Videos whose true progress is a smooth, uneven function of time, seen through noise.

    The events lie at progress 0.25, 0.5 and 0.75, which is not where their share of the time lies.
    """

    def make(names: str = "abcd", *, seed: int = 0, noise: float = 0.01, **settings) -> EmbeddingSet:
        rng = np.random.default_rng(seed)
        arrays, events = {}, {}
        for name in names:
            length, power = int(rng.integers(30, 50)), rng.uniform(0.5, 2.0)
            progress = np.linspace(0, 1, length) ** power
            arrays[name] = np.stack([progress, progress**2], axis=1) + noise * rng.normal(size=(length, 2))
            frames = [int(np.abs(progress - at).argmin()) for at in (0.25, 0.5, 0.75)]
            events[name] = dict(zip(EVENTS, frames, strict=True))
        return EmbeddingSet.from_arrays(arrays, **({"events": events, "fps": 25.0} | settings))

    return make
