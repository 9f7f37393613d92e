"""A tiny problem: videos that are feature maps, an encoder of a few hundred weights."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import torch

from cycleback.data.sampling import sample_random
from cycleback.losses import CombinedLoss, Loss, NextFrameLoss, SaLLoss, SupervisedLoss, TCCLoss, TCNLoss
from cycleback.models import Encoder, build_base, build_embedder
from cycleback.training import BatchMaker, OptimizerSettings, RunSettings, StepReport, Trainer

LENGTHS = (24, 30, 27, 40, 33, 26)


def make_loss(names: Sequence[str]) -> CombinedLoss:
    known: dict[str, tuple[Callable[[], Loss], float]] = {
        "tcc": (TCCLoss, 1.0),
        "tcn": (TCNLoss, 0.5),
        "sal": (lambda: SaLLoss(4, hidden_sizes=(8,)), 0.5),
        "next_frame": (lambda: NextFrameLoss(4, hidden_size=8), 0.5),
        "supervised": (lambda: SupervisedLoss(4, 3, dropout=0.5), 0.5),
    }
    return CombinedLoss({name: (known[name][0](), known[name][1]) for name in names})


def make_batches(
    *,
    batch_size: int = 2,
    num_videos: int = 4,
    actions: Sequence[str] | None = None,
    device: torch.device | None = None,
    **options: Any,
) -> BatchMaker:
    generator = torch.Generator().manual_seed(0)
    lengths = LENGTHS[:num_videos]
    return BatchMaker(
        [torch.rand(n, 16, 3, 3, generator=generator).to(device) for n in lengths],
        actions or ["pour"] * num_videos,
        sample=lambda n, generator: sample_random(n, 6, generator=generator),
        batch_size=batch_size,
        context_frames=2,
        context_stride=2,
        positive_window=3,
        seed=5,
        phases=[torch.arange(n) * 3 // n for n in lengths],
        **options,
    )


def make_trainer(
    num_updates: int = 6,
    *,
    learning_rate: float = 1e-3,
    dropout: float = 0.2,
    batch_norm: bool = True,
    losses: Sequence[str] = ("tcc", "tcn"),
    batches: BatchMaker | None = None,
    **options: Any,
) -> Trainer:
    torch.manual_seed(0)
    base = build_base("small")
    base.channels = 16  # the maps come from elsewhere: the base is never run
    embedder = build_embedder(
        "conv",
        in_channels=16,
        conv_channels=(6,),
        fc_channels=(6,),
        embedding_size=4,
        dropout=dropout,
        context_frames=2,
        context_stride=2,
        batch_norm=batch_norm,
    )
    names = {item.name for item in fields(OptimizerSettings)}
    settings = {"clip_norm": 0.0, "warmup_updates": 0, "num_updates": num_updates}
    settings |= {name: options.pop(name) for name in list(options) if name in names}
    own = {name: options.pop(name) for name in list(options) if name in {f.name for f in fields(RunSettings)}}
    loss = make_loss(losses)
    optimizer = torch.optim.Adam([*embedder.parameters(), *loss.parameters()], lr=learning_rate)
    return Trainer(
        Encoder(base, embedder),
        loss,
        optimizer,
        batches or make_batches(),
        names=["a", "b", "c", "d", "e", "f"],
        settings=OptimizerSettings(**settings),
        run_settings=RunSettings(**own),
        **options,
    )


class Killed(BaseException):
    """What stands for a kill: nothing catches it."""


def kill_after(step: int) -> Callable[[StepReport], None]:
    def die(report: StepReport) -> None:
        if report.step == step:
            raise Killed

    return die


def all_weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    """Weights and buffers of the encoder and of the loss."""
    parts = {"encoder": trainer.encoder, "loss": trainer.loss}
    return {f"{k}.{n}": v.clone() for k, part in parts.items() for n, v in part.state_dict().items()}
