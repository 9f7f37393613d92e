"""Small encoders and pictures for the tests of the networks."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from cycleback.models import ConvEmbedder, Encoder, SmallBase


def build_encoder(
    *, context_frames: int = 2, context_stride: int = 3, seed: int = 0, **options: object
) -> Encoder:
    """A tiny encoder whose BatchNorm statistics are not the trivial first ones."""
    torch.manual_seed(seed)
    base = SmallBase(width=4)
    embedder = ConvEmbedder(
        base.channels,
        conv_channels=(8, 6),
        fc_channels=(10,),
        embedding_size=5,
        context_frames=context_frames,
        context_stride=context_stride,
        **options,  # type: ignore[arg-type]
    )
    encoder = Encoder(base, embedder).train()
    with torch.no_grad():
        encoder(torch.rand(2, 3, context_frames, 3, 32, 32))
    return encoder.eval()


@pytest.fixture
def make_encoder() -> Callable[..., Encoder]:
    return build_encoder


@pytest.fixture
def encoder() -> Encoder:
    return build_encoder()


@pytest.fixture
def picture() -> Tensor:
    """A smooth picture (1, 3, 64, 64) in [0, 1], the same on every machine."""
    row, column = torch.linspace(0, 1, 64)[:, None], torch.linspace(0, 1, 64)[None]
    return torch.stack([0.5 + 0.5 * torch.sin(9 * row + 4 * column * channel) for channel in (1, 2, 3)])[None]
