"""From a recipe to objects: the only tables from names to classes."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cycleback.data import sample_random, sample_segments, sample_strided
from cycleback.losses import (
    CombinedLoss,
    Loss,
    OrderLoss,
    SaLLoss,
    StochasticTCCLoss,
    SupervisedLoss,
    TCCLoss,
    TCNLoss,
)
from cycleback.models import Base, Encoder, build_base, build_embedder, freeze, rebuild_base
from cycleback.recipe.sections import DataSection, EncoderSection, LossSection, OptimizerSection, Recipe
from cycleback.training import BatchMaker

# (settings, embedding size, number of phases) -> loss
LOSSES: Mapping[str, Callable[[LossSection, int, int], Loss]] = {
    "tcc": lambda section, size, phases: TCCLoss(**vars(section.tcc)),
    "stochastic_tcc": lambda section, size, phases: StochasticTCCLoss(
        TCCLoss(**vars(section.tcc)), **vars(section.stochastic)
    ),
    "tcn": lambda section, size, phases: TCNLoss(
        temperature=section.tcn.temperature, l2_weight=section.tcn.l2_weight
    ),
    "order": lambda section, size, phases: OrderLoss(
        temperature=section.tcc.temperature,
        scaling=section.tcc.scaling,
        similarity=section.tcc.similarity,
        normalize=section.tcc.normalize,
    ),
    "sal": lambda section, size, phases: SaLLoss(size, **vars(section.sal)),
    "supervised": lambda section, size, phases: SupervisedLoss(size, phases, **vars(section.supervised)),
}

SAMPLERS: Mapping[str, Callable[[DataSection], Callable[..., Tensor]]] = {
    "random_sorted": lambda data: partial(sample_random, count=data.frames_per_video, allow_short=True),
    "segments": lambda data: partial(sample_segments, count=data.frames_per_video, allow_short=True),
    "strided": lambda data: partial(
        sample_strided, count=data.frames_per_video, stride=data.stride, allow_short=True
    ),
}

BASE_OPTIONS: Mapping[str, Callable[[EncoderSection], dict[str, Any]]] = {
    "efficientnet_lite0": lambda section: {"block": section.block},
    "resnet50": lambda section: {
        "weights": section.weights or None,
        "layer": section.layer,
        "strides": section.strides or None,
    },
    "small": lambda section: {},
    "vggm": lambda section: {},
    "transformers": lambda section: {"model": section.model} if section.model else {},
    "timm": lambda section: {
        "model": section.model,
        "stage": section.stage,
        "weights": "pretrained" if section.weights == "imagenet" else section.weights or None,
    },
    "vector": lambda section: {"in_features": section.in_features, "velocity": section.velocity},
}

COMMON = ("embedding_size", "embedding_gain", "dropout", "norm_momentum", "normalize")
EMBEDDER_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "conv": (
        *("conv_channels", "fc_channels", "context_frames", "context_stride", "pooling"),
        *("capacity", "batch_norm", *COMMON),
    ),
    "mlp": ("fc_channels", "context_frames", "context_stride", *COMMON),
    "gru": ("conv_channels", "hidden_size", *COMMON),
    "pooled": ("grid", "standardize"),
}


def build_encoder(recipe: Recipe, *, saved: Path | None = None) -> Encoder:
    """The encoder before training (a pretrained base has its weights).

    Args:
        recipe: its `encoder` and `data` sections are used.
        saved: a run folder whose weights will be loaded, so that no pretrained file is looked for.
    """
    section = recipe.encoder
    options = BASE_OPTIONS[section.base](section)
    if saved is None:
        base = build_base(section.base, **options)
    else:
        base = rebuild_base(section.base, saved, **options)
    size = (recipe.data.frame_size, recipe.data.frame_size)
    embedder = build_embedder(section.embedder, base.channels, **_embedder_options(section, base, size))
    encoder = Encoder(base, embedder, frame_size=size, fit=recipe.data.fit)
    freeze(encoder, section.train_base, statistics=section.statistics, train_from=section.train_from)
    return encoder


def _embedder_options(section: EncoderSection, base: Base, size: tuple[int, int]) -> dict[str, Any]:
    options = {name: getattr(section, name) for name in EMBEDDER_OPTIONS[section.embedder]}
    if section.embedder == "conv":
        options["reduce_channels"] = section.reduce_channels or None
        if section.pooling == "flatten":
            options["grid"] = base.grid_size(*size)
    return options


def build_loss(recipe: Recipe, *, embedding_size: int | None = None, num_phases: int = 0) -> CombinedLoss:
    """The weighted sum of the losses with a positive weight.

    Args:
        recipe: its `loss` section is used.
        embedding_size: of the encoder; default: what the recipe says.
        num_phases: of all actions together, for the supervised loss.
    """
    size = embedding_size or recipe.encoder.embedding_size
    weights = {name: weight for name, weight in recipe.loss.weights.items() if weight > 0}
    losses = {name: LOSSES[name](recipe.loss, size, num_phases) for name in weights}
    return CombinedLoss({name: (losses[name], weight) for name, weight in weights.items()})


def build_optimizer(recipe: Recipe, *modules: nn.Module) -> torch.optim.Optimizer:
    """The optimizer of all that trains; weight decay is coupled, as in the paper, but for AdamW."""
    section = recipe.optimizer
    groups = _groups(section, modules)
    is_on_gpu = all(p.is_cuda for group in groups for p in group["params"])
    options: dict[str, Any] = {"weight_decay": section.weight_decay}
    if section.name == "sgd":
        return torch.optim.SGD(groups, momentum=section.momentum, **options)
    kind = torch.optim.AdamW if section.name == "adamw" else torch.optim.Adam
    return kind(groups, fused=is_on_gpu, **options)


def _groups(section: OptimizerSection, modules: Sequence[nn.Module]) -> list[dict[str, Any]]:
    """What trains, in one group or, where the base has a learning rate of its own, in two."""
    bases = [module.base for module in modules if isinstance(module, Encoder)]
    slow = {id(p) for base in bases for p in base.parameters()} if section.base_factor != 1 else set()
    trained = [p for module in modules for p in module.parameters() if p.requires_grad]
    rate = section.learning_rate
    groups = [
        {"params": [p for p in trained if id(p) not in slow], "lr": rate},
        {"params": [p for p in trained if id(p) in slow], "lr": rate * section.base_factor},
    ]
    return [group for group in groups if group["params"]]


def build_batches(
    recipe: Recipe,
    videos: list[Tensor],
    actions: list[str],
    *,
    encoder: Encoder,
    phases: Sequence[Tensor] | None = None,
) -> BatchMaker:
    """Batches of one action, drawn as the recipe says; `phases` (N,) a video for the supervised loss."""
    sample = SAMPLERS[recipe.data.sampler](recipe.data)
    _warn_of_short_videos([len(video) for video in videos], recipe.data.frames_per_video)
    wants_positives = recipe.loss.weights.get("tcn", 0.0) > 0
    return BatchMaker(
        videos,
        actions,
        sample=lambda num_frames, generator: sample(num_frames, generator=generator),
        batch_size=recipe.optimizer.batch_size,
        context_frames=encoder.context_frames,
        context_stride=encoder.context_stride,
        positive_window=recipe.loss.tcn.positive_window if wants_positives else None,
        seed=recipe.run.seed,
        phases=phases,
        context_scale=recipe.data.context_scale,
    )


def _warn_of_short_videos(lengths: Sequence[int], frames_per_video: int) -> None:
    short = [length for length in lengths if length < frames_per_video]
    if short:
        warnings.warn(
            f"{len(short)} of {len(lengths)} videos have fewer than data.frames_per_video={frames_per_video} "
            f"frames (the shortest {min(short)}): some of their frames are drawn twice",
            stacklevel=3,
        )
