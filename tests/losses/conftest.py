"""Small batches the tests of the losses share."""

import pytest
import torch
from torch import Tensor


@pytest.fixture
def embeddings() -> Tensor:
    """(B, T, D) = (3, 7, 5), float64; B, T and D all differ, so a mixed-up axis cannot pass."""
    return torch.randn(3, 7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def times() -> Tensor:
    """(3, 7) sorted, unevenly spaced fractions of the video, float64."""
    draws = torch.rand(3, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return draws.sort(dim=1).values
