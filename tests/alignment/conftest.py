"""Small videos the tests of alignment share."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def videos(rng):
    """Four noisy videos of one action, 9 to 14 frames, embedding size 3."""
    lengths = (9, 14, 11, 10)
    return [np.linspace(0, 4, n)[:, None] + rng.normal(scale=0.8, size=(n, 3)) for n in lengths]
