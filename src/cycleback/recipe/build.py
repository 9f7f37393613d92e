"""Build the objects of a run from its recipe."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cycleback.data.sampling import sample_random, sample_segments, sample_strided
from cycleback.losses import (
    CombinedLoss,
    GTALoss,
    IDMLoss,
    LAVLoss,
    Loss,
    MatchLoss,
    NextFrameLoss,
    OrderLoss,
    ReversalLoss,
    SaLLoss,
    SCLLoss,
    StochasticTCCLoss,
    SupervisedLoss,
    TCCLoss,
    TCNLoss,
    VAOTLoss,
    VAVALoss,
)
from cycleback.models import Base, Encoder, FusedBase, build_base, build_embedder, freeze, rebuild_base
from cycleback.recipe.sections import DataSettings, EncoderSettings, LossSettings, Recipe
from cycleback.training import BatchMaker, OptimizerSettings
from cycleback.training.matches import Matches
from cycleback.training.videos import count_frames

# (settings, embedding size, number of phases) -> loss
LOSSES: Mapping[str, Callable[[LossSettings, int, int], Loss]] = {
    "tcc": lambda settings, size, phases: TCCLoss(**vars(settings.tcc)),
    "stochastic_tcc": lambda settings, size, phases: StochasticTCCLoss(
        TCCLoss(**vars(settings.tcc)), **vars(settings.stochastic)
    ),
    "tcn": lambda settings, size, phases: TCNLoss(
        temperature=settings.tcn.temperature, l2_weight=settings.tcn.l2_weight
    ),
    "lav": lambda settings, size, phases: LAVLoss(**vars(settings.lav)),
    "idm": lambda settings, size, phases: IDMLoss(**vars(settings.idm)),
    "gta": lambda settings, size, phases: GTALoss(**vars(settings.gta)),
    "vava": lambda settings, size, phases: VAVALoss(**vars(settings.vava)),
    "vaot": lambda settings, size, phases: VAOTLoss(**vars(settings.vaot)),
    "reversal": lambda settings, size, phases: ReversalLoss(**vars(settings.reversal)),
    "scl": lambda settings, size, phases: SCLLoss(size, **vars(settings.scl)),
    "next_frame": lambda settings, size, phases: NextFrameLoss(
        size, hidden_size=settings.next_frame.hidden_size
    ),
    "match": lambda settings, size, phases: MatchLoss(**vars(settings.match)),
    "order": lambda settings, size, phases: OrderLoss(
        temperature=settings.tcc.temperature,
        scaling=settings.tcc.scaling,
        similarity=settings.tcc.similarity,
        normalize=settings.tcc.normalize,
    ),
    "sal": lambda settings, size, phases: SaLLoss(size, **vars(settings.sal)),
    "supervised": lambda settings, size, phases: SupervisedLoss(size, phases, **vars(settings.supervised)),
}

SAMPLERS: Mapping[str, Callable[[DataSettings], Callable[..., Tensor]]] = {
    "random_sorted": lambda data: partial(sample_random, count=data.frames_per_video, allow_short=True),
    "segments": lambda data: partial(sample_segments, count=data.frames_per_video, allow_short=True),
    "strided": lambda data: partial(
        sample_strided, count=data.frames_per_video, stride=data.stride, allow_short=True
    ),
}


def build_encoder(recipe: Recipe, *, saved: Path | None = None) -> Encoder:
    """Build the untrained encoder of a recipe; a pretrained base has its weights.

    If the weights of the run folder `saved` will be loaded, no pretrained file is needed.
    """
    settings = recipe.encoder
    base = _build_base(settings, saved)
    size = (recipe.data.frame_size, recipe.data.frame_size)
    embedder = build_embedder(settings.embedder, base.channels, **_embedder_options(settings, base, size))
    encoder = Encoder(base, embedder, frame_size=size, fit=recipe.data.fit)
    freeze(encoder, settings.train_base, statistics=settings.statistics, train_from=settings.train_from)
    return encoder


def _build_base(settings: EncoderSettings, saved: Path | None) -> Base:
    if settings.is_fused and "appearance" not in settings.streams:
        return FusedBase(settings.streams)
    options = settings.options(settings.base)
    if saved is None:
        base = build_base(settings.base, **options)
    else:
        base = rebuild_base(settings.base, saved, **options)
    if not settings.is_fused:
        return base
    return FusedBase(settings.streams, base, is_frozen=settings.train_base == "frozen")


def _embedder_options(settings: EncoderSettings, base: Base, size: tuple[int, int]) -> dict[str, Any]:
    options = settings.options(settings.embedder)
    if settings.embedder == "conv" and settings.conv.pooling == "flatten":
        options["feature_map_size"] = base.feature_map_size(*size)
    if settings.embedder == "pooled" and isinstance(base, FusedBase):
        options |= {"grid": 1, "standardize": False}  # streams are averaged and normalised already
    return options


def build_loss(recipe: Recipe, *, embedding_size: int | None = None, num_phases: int = 0) -> CombinedLoss:
    """Build the weighted sum of the losses with a positive weight.

    `num_phases` counts the phases of all actions together, for the supervised loss.
    """
    size = embedding_size or recipe.encoder.options(recipe.encoder.embedder)["embedding_size"]
    weights = {name: weight for name, weight in recipe.loss.weights.items() if weight > 0}
    losses = {name: LOSSES[name](recipe.loss, size, num_phases) for name in weights}
    return CombinedLoss({name: (losses[name], weight) for name, weight in weights.items()})


def build_optimizer(recipe: Recipe, *modules: nn.Module) -> torch.optim.Optimizer:
    """Build the optimizer; weight decay is coupled, as in the paper, except for AdamW."""
    settings = recipe.optimizer
    groups = _groups(settings, modules)
    is_on_gpu = all(p.is_cuda for group in groups for p in group["params"])
    options: dict[str, Any] = {"weight_decay": settings.weight_decay}
    if settings.name == "sgd":
        return torch.optim.SGD(groups, momentum=settings.momentum, **options)
    kind = torch.optim.AdamW if settings.name == "adamw" else torch.optim.Adam
    return kind(groups, fused=is_on_gpu, **options)


def _groups(settings: OptimizerSettings, modules: Sequence[nn.Module]) -> list[dict[str, Any]]:
    """Return the trained weights in one group, or in two if the base has a learning rate of its own."""
    bases = [module.base for module in modules if isinstance(module, Encoder)]
    slow = {id(p) for base in bases for p in base.parameters()} if settings.base_factor != 1 else set()
    trained = [p for module in modules for p in module.parameters() if p.requires_grad]
    rate = settings.learning_rate
    groups = [
        {"params": [p for p in trained if id(p) not in slow], "lr": rate},
        {"params": [p for p in trained if id(p) in slow], "lr": rate * settings.base_factor},
    ]
    return [group for group in groups if group["params"]]


def build_batches(
    recipe: Recipe,
    videos: Sequence[Tensor],
    actions: list[str],
    *,
    encoder: Encoder,
    phases: Sequence[Tensor] | None = None,
    sides: Sequence[Tensor] | None = None,
    mirrored: Sequence[Tensor] | None = None,
) -> BatchMaker:
    """Build the batches, each of one action.

    `phases` (N,) per video are for the supervised loss, `sides` (N, V') for a trained base of streams;
    `mirrored` are the same videos from the other side.
    """
    sample = SAMPLERS[recipe.data.sampler](recipe.data)
    lengths = count_frames(videos)
    _warn_about_short_videos(lengths, recipe.data.frames_per_video)
    losses = recipe.loss
    return BatchMaker(
        videos,
        actions,
        sample=lambda num_frames, generator: sample(num_frames, generator=generator),
        batch_size=recipe.optimizer.batch_size,
        context_frames=encoder.context_frames,
        context_stride=encoder.context_stride,
        positive_window=losses.tcn.positive_window if losses.is_used("tcn") else None,
        ahead=losses.next_frame.ahead if losses.is_used("next_frame") else None,
        second_view=losses.is_used("scl") or (losses.is_used("tcn") and losses.tcn.second_view),
        seed=recipe.run.seed,
        phases=phases,
        sides=sides,
        mirrored=mirrored,
        matches=Matches(sides or videos) if losses.is_used("match") else None,
        context_scale=recipe.data.context_scale,
        lengths=lengths,
    )


def _warn_about_short_videos(lengths: Sequence[int], frames_per_video: int) -> None:
    short = [length for length in lengths if length < frames_per_video]
    if short:
        warnings.warn(
            f"{len(short)} of {len(lengths)} videos have fewer than data.frames_per_video={frames_per_video} "
            f"frames (the shortest {min(short)}): some of their frames are drawn twice",
            stacklevel=3,
        )
