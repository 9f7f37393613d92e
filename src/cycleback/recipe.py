"""What a run is made of: every setting a user can change, and the only tables from names to classes.

The dataclasses are what `recipe.toml` holds; the `build_*` functions turn them into keyword arguments, and
nothing below this file reads a configuration.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from cycleback.config import load_config, to_toml
from cycleback.data import AugmentSettings, random_sorted, segments, strided
from cycleback.losses import CombinedLoss, Loss, TCCLoss, TCNLoss
from cycleback.models import Encoder, build_base, build_embedder, freeze
from cycleback.training import BatchMaker

RECIPE_FILE = "recipe.toml"


@dataclass(frozen=True)
class DataSection:
    """Which frames of which videos."""

    frame_size: int = 112
    fit: Literal["stretch", "crop"] = "stretch"
    held_out: float = 0.2
    sampler: Literal["random_sorted", "segments", "strided"] = "random_sorted"
    frames_per_video: int = 20
    stride: int = 16


@dataclass(frozen=True)
class EncoderSection:
    """Base network and embedder; the defaults are small enough for two CPU cores."""

    base: Literal["efficientnet_lite0", "vggm", "small"] = "efficientnet_lite0"
    block: int = 10
    train_base: Literal["frozen", "bn", "all"] = "frozen"
    embedder: Literal["conv", "pooled"] = "conv"
    grid: int = 3  # of the pooled embedder
    standardize: bool = True  # of the pooled embedder
    reduce_channels: int = 32
    conv_channels: tuple[int, ...] = (64, 64)
    fc_channels: tuple[int, ...] = (128,)
    embedding_size: int = 32
    dropout: float = 0.1
    pooling: Literal["max", "avg"] = "max"
    context_frames: int = 2
    context_stride: int = 5


@dataclass(frozen=True)
class TCCSection:
    """Temporal cycle-consistency, paper section 3."""

    kind: Literal["regression", "classification", "mse", "huber"] = "regression"
    similarity: Literal["l2", "cosine"] = "l2"
    scaling: Literal["dimension", "none"] = "dimension"
    temperature: float = 0.1
    variance_weight: float = 1e-3
    variance_term: Literal["log_variance", "log_sigma"] = "log_variance"
    index: Literal["time", "position"] = "time"
    huber_delta: float = 0.1
    label_smoothing: float = 0.0
    normalize: bool = False


@dataclass(frozen=True)
class TCNSection:
    """Single-view time-contrastive loss with positives a few frames away."""

    positive_window: int = 5
    temperature: float = 1.0
    l2_weight: float = 0.002


@dataclass(frozen=True)
class LossSection:
    """A weighted sum, and the settings of its parts."""

    weights: Mapping[str, float] = field(default_factory=lambda: {"tcc": 1.0, "tcn": 1.0})
    tcc: TCCSection = field(default_factory=TCCSection)
    tcn: TCNSection = field(default_factory=TCNSection)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.weights) - set(LOSSES))
        if unknown:
            raise ValueError(f"loss.weights has no loss {unknown[0]!r}; known: {', '.join(LOSSES)}")
        if not any(weight > 0 for weight in self.weights.values()):
            raise ValueError(f"loss.weights must have a positive weight, got {dict(self.weights)}")


@dataclass(frozen=True)
class OptimizerSection:
    """How the weights move; the paper has Adam with a fixed rate and coupled weight decay."""

    name: Literal["adam", "adamw", "sgd"] = "adam"
    num_updates: int = 1000
    batch_size: int = 4  # videos; with several processes, of all of them together
    accumulate: int = 1  # batches an update
    learning_rate: float = 3e-3
    weight_decay: float = 1e-5
    momentum: float = 0.9  # of sgd
    clip_norm: float = 10.0  # 0: never
    schedule: Literal["constant", "cosine", "step"] = "cosine"
    warmup_updates: int = 20
    step_updates: tuple[int, ...] = (5000, 10000)  # of schedule "step": where the rate falls
    step_factor: float = 0.1

    def __post_init__(self) -> None:
        if self.num_updates < 1:
            raise ValueError(f"optimizer.num_updates must be at least 1, got {self.num_updates}")
        if self.batch_size < 2:
            raise ValueError(
                f"optimizer.batch_size must be at least 2 (cycles need two videos), got {self.batch_size}"
            )


@dataclass(frozen=True)
class RunSection:
    """Seed, rhythm and arithmetic."""

    seed: int = 0
    save_every: int = 100
    log_every: int = 10
    precision: Literal["float32", "bfloat16"] = "float32"  # of the network; losses are always float32
    channels_last: bool = False
    compile: bool = False
    deterministic: bool = False
    ema_decay: float = 0.0  # 0: keep the weights themselves
    select_every: int = 0  # updates between looks at the held-out cycle-consistency; 0: keep the last weights
    patience: int = 0  # looks without progress before stopping; 0: never
    tensorboard: bool = False


@dataclass(frozen=True)
class Recipe:
    """All of a run but the videos."""

    data: DataSection = field(default_factory=DataSection)
    encoder: EncoderSection = field(default_factory=EncoderSection)
    loss: LossSection = field(default_factory=LossSection)
    augment: AugmentSettings = field(default_factory=AugmentSettings)
    optimizer: OptimizerSection = field(default_factory=OptimizerSection)
    run: RunSection = field(default_factory=RunSection)

    @property
    def caches_features(self) -> bool:
        """With a frozen base its feature maps are computed once and only the embedder trains."""
        return self.encoder.train_base == "frozen"


def load_recipe(path: Path | None = None, overrides: tuple[str, ...] | list[str] = ()) -> Recipe:
    """Defaults < file < overrides such as `optimizer.num_updates=2000`."""
    return load_config(Recipe, path, overrides)


def recipe_toml(recipe: Recipe) -> str:
    """The resolved recipe as text for the run folder."""
    return to_toml(recipe)


LOSSES: Mapping[str, Callable[[LossSection], Loss]] = {
    "tcc": lambda section: TCCLoss(**vars(section.tcc)),
    "tcn": lambda section: TCNLoss(temperature=section.tcn.temperature, l2_weight=section.tcn.l2_weight),
}

SAMPLERS: Mapping[str, Callable[[DataSection], Callable[..., Tensor]]] = {
    "random_sorted": lambda data: partial(random_sorted, count=data.frames_per_video),
    "segments": lambda data: partial(segments, count=data.frames_per_video),
    "strided": lambda data: partial(strided, count=data.frames_per_video, stride=data.stride),
}


def build_encoder(recipe: Recipe) -> Encoder:
    """The untrained encoder (a pretrained base keeps its weights)."""
    section = recipe.encoder
    options = {"block": section.block} if section.base == "efficientnet_lite0" else {}
    base = build_base(section.base, **options)
    size = (recipe.data.frame_size, recipe.data.frame_size)
    if section.embedder == "pooled":
        pooled = build_embedder("pooled", base.channels, grid=section.grid, standardize=section.standardize)
        encoder = Encoder(base, pooled, frame_size=size, fit=recipe.data.fit)
    else:
        embedder = build_embedder(
            "conv",
            base.channels,
            reduce_channels=section.reduce_channels or None,
            conv_channels=section.conv_channels,
            fc_channels=section.fc_channels,
            embedding_size=section.embedding_size,
            dropout=section.dropout,
            pooling=section.pooling,
            context_frames=section.context_frames,
            context_stride=section.context_stride,
        )
        encoder = Encoder(base, embedder, frame_size=size, fit=recipe.data.fit)
    freeze(encoder, section.train_base)
    return encoder


def build_loss(recipe: Recipe) -> CombinedLoss:
    """The weighted sum of the losses with a positive weight."""
    section = recipe.loss
    return CombinedLoss(
        {name: (LOSSES[name](section), weight) for name, weight in section.weights.items() if weight > 0}
    )


def build_optimizer(recipe: Recipe, *modules: nn.Module) -> torch.optim.Optimizer:
    """Adam over whatever is to be trained, with the paper's coupled weight decay."""
    parameters = [p for module in modules for p in module.parameters() if p.requires_grad]
    section = recipe.optimizer
    return torch.optim.Adam(parameters, lr=section.learning_rate, weight_decay=section.weight_decay)


def build_batches(
    recipe: Recipe, videos: list[Tensor], actions: list[str], *, encoder: Encoder
) -> BatchMaker:
    """Batches of one action, drawn as the recipe says."""
    sample = SAMPLERS[recipe.data.sampler](recipe.data)
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
    )
