"""Every setting of a run, as `recipe.toml` holds it. Nothing below the recipe reads these classes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from cycleback.data import AugmentSettings

LossName = Literal["tcc", "stochastic_tcc", "tcn", "order", "sal", "supervised"]


@dataclass(frozen=True)
class DataSection:
    """Which frames of which videos."""

    frame_size: int = 112
    action: str = ""  # train on this action alone; "": on all, a batch always of one action
    fit: Literal["stretch", "crop"] = "stretch"
    held_out: float = 0.2
    sampler: Literal["random_sorted", "segments", "strided"] = "random_sorted"
    frames_per_video: int = 20
    stride: int = 16
    context_scale: tuple[float, float] = (1.0, 1.0)  # factor on the context stride, drawn a clip

    def __post_init__(self) -> None:
        low, high = self.context_scale
        if not 0 <= low <= high:
            raise ValueError(
                f"data.context_scale must be a range 0 <= low <= high, got {tuple(self.context_scale)}"
            )


@dataclass(frozen=True)
class EncoderSection:
    """Base network and embedder; the defaults are small enough for two CPU cores."""

    base: Literal["efficientnet_lite0", "resnet50", "vggm", "small", "transformers", "timm", "vector"] = (
        "efficientnet_lite0"
    )
    train_base: Literal["frozen", "bn", "all"] = "frozen"
    statistics: Literal["batch", "fixed"] = "batch"  # of BatchNorm in the base while it trains
    train_from: str = ""  # the first part of the base that trains, such as "network.layer2"; "": all of it
    block: int = 10  # of efficientnet_lite0: the last one kept
    weights: str = "imagenet"  # of resnet50 and timm: a name, a file, or "" for random first values
    layer: str = "layer3[2]"  # of resnet50: the paper's Conv4c
    strides: Literal["", "v1", "torchvision"] = ""  # of resnet50, for weights that do not say
    model: str = ""  # of transformers and timm: name on the hub or folder
    stage: int = -1  # of timm
    in_features: int = 0  # of vector: numbers of a frame; 0: as many as the data have
    velocity: bool = True  # of vector: append the difference to the previous frame
    embedder: Literal["conv", "mlp", "gru", "pooled"] = "conv"
    reduce_channels: int = 32  # of conv: a 1x1 convolution in front; 0: none
    conv_channels: tuple[int, ...] = (64, 64)
    fc_channels: tuple[int, ...] = (128,)
    embedding_size: int = 32
    embedding_gain: float = 1.0  # on the first weights of the embedding; below 1, a quicker start
    capacity: float = 1.0  # of conv: factor on all channels
    batch_norm: bool = True
    norm_momentum: float = 0.1
    dropout: float = 0.1
    pooling: Literal["max", "avg", "flatten"] = "max"
    normalize: bool = False
    hidden_size: int = 128  # of gru
    context_frames: int = 2
    context_stride: int = 5
    grid: int = 3  # of pooled
    standardize: bool = True  # of pooled


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

    positive_window: int = 3  # frames; the paper has 5, too far where a phase takes a few frames
    temperature: float = 1.0
    l2_weight: float = 0.002


@dataclass(frozen=True)
class StochasticSection:
    """Cycles sampled at random instead of all pairs; the rest of the loss as in `tcc`."""

    cycle_length: int = 2
    fraction: float = 1.0  # cycles a frame of the batch


@dataclass(frozen=True)
class SaLSection:
    """Shuffle and Learn: are three frames in order?"""

    triplets_per_video: int = 8
    shuffled_fraction: float = 0.75
    hidden_sizes: tuple[int, ...] = (128, 64)


@dataclass(frozen=True)
class SupervisedSection:
    """Phase labels, where the data set has them."""

    label_smoothing: float = 0.0
    dropout: float = 0.0


@dataclass(frozen=True)
class LossSection:
    """A weighted sum, and the settings of its parts."""

    weights: Mapping[str, float] = field(default_factory=lambda: {"tcc": 1.0, "tcn": 1.0})
    tcc: TCCSection = field(default_factory=TCCSection)
    stochastic: StochasticSection = field(default_factory=StochasticSection)
    tcn: TCNSection = field(default_factory=TCNSection)
    sal: SaLSection = field(default_factory=SaLSection)
    supervised: SupervisedSection = field(default_factory=SupervisedSection)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.weights) - set(get_args(LossName)))
        if unknown:
            raise ValueError(
                f"loss.weights has no loss {unknown[0]!r}; known: {', '.join(get_args(LossName))}"
            )
        if negative := [name for name, weight in self.weights.items() if weight < 0]:
            weight = self.weights[negative[0]]
            raise ValueError(f"loss.weights.{negative[0]} must not be negative, got {weight:g}")
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
    base_factor: float = 1.0  # on the learning rate of the base: below 1, what it knows lasts
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
        if not self.base_factor > 0:
            raise ValueError(
                f"optimizer.base_factor must be above 0, got {self.base_factor:g}; "
                "to keep the base as it is, set encoder.train_base='frozen'"
            )
        if self.accumulate < 1:
            raise ValueError(f"optimizer.accumulate must be at least 1, got {self.accumulate}")
        if self.batch_size < 2:
            raise ValueError(
                f"optimizer.batch_size must be at least 2 (cycles need two videos), got {self.batch_size}"
            )


@dataclass(frozen=True)
class RunSection:
    """Seed, rhythm and arithmetic."""

    seed: int = 0
    start_from: str = ""  # a run folder or name whose encoder to begin with; "": from the first weights
    save_every: int = 100
    log_every: int = 10
    precision: Literal["float32", "bfloat16"] = "float32"  # of the network; losses are always float32
    channels_last: bool = False
    compile: bool = False
    deterministic: bool = False
    record: bool = True  # on a GPU, replay each update as one CUDA graph
    ema_decay: float = 0.0  # 0: keep the weights themselves
    select_every: int = 0  # updates between looks at the held-out cycle-consistency; 0: keep the last weights
    patience: int = 0  # looks without progress before stopping; 0: never
    tensorboard: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.ema_decay < 1:
            raise ValueError(f"run.ema_decay must be at least 0 and below 1, got {self.ema_decay}")
        if self.patience > 0 and self.select_every == 0:
            raise ValueError(f"run.patience={self.patience} counts looks: set run.select_every as well")


@dataclass(frozen=True)
class Recipe:
    """All of a run but the videos."""

    data: DataSection = field(default_factory=DataSection)
    encoder: EncoderSection = field(default_factory=EncoderSection)
    loss: LossSection = field(default_factory=LossSection)
    augment: AugmentSettings = field(default_factory=AugmentSettings)
    optimizer: OptimizerSection = field(default_factory=OptimizerSection)
    run: RunSection = field(default_factory=RunSection)

    def __post_init__(self) -> None:
        length, videos = self.loss.stochastic.cycle_length, self.optimizer.batch_size
        if self.loss.weights.get("stochastic_tcc", 0) > 0 and length > videos:
            raise ValueError(
                f"loss.stochastic.cycle_length {length} needs {length} videos a batch, got {videos}"
            )
        if self.loss.weights.get("sal", 0) > 0 and self.data.frames_per_video < 5:
            raise ValueError(f"loss sal needs data.frames_per_video >= 5, got {self.data.frames_per_video}")

    @property
    def caches_features(self) -> bool:
        """With a frozen base its feature maps are computed once and only the embedder trains."""
        return self.encoder.train_base == "frozen" and self.encoder.base != "vector"
