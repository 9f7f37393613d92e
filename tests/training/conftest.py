"""A tiny problem: videos that are feature maps, an encoder of a few hundred weights."""

from collections.abc import Callable

import pytest
import torch

from cycleback.data import random_sorted
from cycleback.losses import CombinedLoss, TCCLoss, TCNLoss
from cycleback.models import Encoder, build_base, build_embedder
from cycleback.training import BatchMaker, Trainer


def make_trainer(num_updates: int = 6, *, learning_rate: float = 1e-3, dropout: float = 0.2) -> Trainer:
    torch.manual_seed(0)
    videos = [torch.rand(n, 128, 3, 3) for n in (24, 30, 27, 40)]
    embedder = build_embedder(
        "conv",
        in_channels=128,
        conv_channels=(6,),
        fc_channels=(6,),
        embedding_size=4,
        dropout=dropout,
        context_frames=2,
        context_stride=2,
    )
    encoder = Encoder(build_base("small"), embedder)
    loss = CombinedLoss({"tcc": (TCCLoss(), 1.0), "tcn": (TCNLoss(), 0.5)})
    batches = BatchMaker(
        videos,
        ["pour"] * 4,
        sample=lambda n, generator: random_sorted(n, 6, generator=generator),
        batch_size=2,
        context_frames=2,
        context_stride=2,
        positive_window=3,
        seed=5,
    )
    optimizer = torch.optim.Adam(embedder.parameters(), lr=learning_rate)
    return Trainer(
        encoder,
        loss,
        optimizer,
        batches,
        names=["a", "b", "c", "d"],
        num_updates=num_updates,
        schedule="cosine",
    )


@pytest.fixture
def trainer() -> Callable[..., Trainer]:
    return make_trainer
