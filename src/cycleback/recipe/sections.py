"""Every setting of a run, section by section, and the rules for which settings have an effect.

`[encoder.NAME]` holds the keyword arguments of the base or embedder NAME, `[loss.NAME]` those of a loss. A
setting that does nothing with the others is refused, so a typo or a leftover cannot pass unnoticed.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

from cycleback.data.augmentation import AugmentSettings
from cycleback.errors import one_of
from cycleback.models import BASES, EMBEDDERS, STREAMS
from cycleback.models.streams import Stream
from cycleback.ranges import MAX_CHANNELS, Channels, Factor, Range, Scale, Share, ShareBelow1, Weight
from cycleback.training.settings import OptimizerSettings, RunSettings

Context = Annotated[int, Range(1, 1000)]
Iterations = Annotated[int, Range(1, 1000)]
Stride = Annotated[int, Range(1, 100_000)]
LossName = Literal[
    "match",
    "tcc",
    "stochastic_tcc",
    "tcn",
    "order",
    "sal",
    "supervised",
    "lav",
    "idm",
    "gta",
    "vava",
    "vaot",
    "reversal",
    "scl",
    "next_frame",
]


@dataclass(frozen=True)
class DataSettings:
    """Which frames of which videos."""

    frame_size: Annotated[int, Range(16, 2048)] = 112
    action: str = ""  # train on this action only; "" trains on all, with one action per batch
    fit: Literal["stretch", "crop"] = "stretch"
    held_out: ShareBelow1 = 0.2  # share of the videos kept out of training
    sampler: Literal["random_sorted", "segments", "strided"] = "random_sorted"
    frames_per_video: Annotated[int, Range(2, 10_000)] = 32
    stride: Stride = 16  # frames between two sampled frames, of sampler "strided"
    context_scale: tuple[Factor, Factor] = (0.25, 4.0)  # factor on the context stride, drawn once per clip
    storage: Literal["auto", "memory", "mapped"] = "auto"  # where the frames of a trained base are kept

    def __post_init__(self) -> None:
        low, high = self.context_scale
        if not 0 <= low <= high:
            raise ValueError(
                f"data.context_scale must be a range 0 <= low <= high, got {tuple(self.context_scale)}"
            )


@dataclass(frozen=True)
class EfficientNetLite0Settings:
    """`block` is the last block kept."""

    block: Annotated[int, Range(0, 15)] = 10


@dataclass(frozen=True)
class ResNet50Settings:
    """The default layer is the paper's Conv4c. Weights are a name, a file, or "" for random values."""

    weights: str = "imagenet"
    layer: str = "layer3[2]"
    strides: Literal["", "v1", "torchvision"] = ""  # for weights that do not say


@dataclass(frozen=True)
class TimmSettings:
    """A model of timm, by its name. Weights are "pretrained", a file, or "" for random values."""

    model: str = ""
    stage: Annotated[int, Range(-100, 100)] = -1
    weights: str = "pretrained"


@dataclass(frozen=True)
class TransformersSettings:
    """A vision model of transformers: its name on the hub, or a folder."""

    model: str = "facebook/dinov2-small"


@dataclass(frozen=True)
class VectorSettings:
    """Poses or other vectors instead of images; `in_features` 0 takes the size of the data."""

    in_features: Annotated[int, Range(0, 1_000_000)] = 0
    velocity: bool = True  # append the difference to the previous frame


@dataclass(frozen=True)
class EmbedderSettings:
    """What all trained embedders share; the defaults are small enough for two CPU cores."""

    embedding_size: Channels = 32
    embedding_gain: Scale = 1.0  # on the first weights of the embedding; below 1 starts faster
    norm_momentum: Share = 0.1
    dropout: ShareBelow1 = 0.1
    normalize: bool = False


def _require_convolution(embedder: str, conv_channels: tuple[int, ...]) -> None:
    if not conv_channels:
        raise ValueError(f"encoder.{embedder}.conv_channels must name at least one convolution, got []")


@dataclass(frozen=True)
class ConvSettings(EmbedderSettings):
    """The paper's embedder."""

    reduce_channels: Annotated[int, Range(0, MAX_CHANNELS)] = 32  # of a 1x1 convolution in front; 0: none
    conv_channels: tuple[Channels, ...] = (64, 64)
    fc_channels: tuple[Channels, ...] = (128,)
    capacity: Annotated[float, Range(0, 100, has_low=False)] = 1.0  # factor on all channels
    batch_norm: bool = True
    pooling: Literal["max", "avg", "flatten"] = "max"
    context_frames: Context = 2
    context_stride: Stride = 5

    def __post_init__(self) -> None:
        _require_convolution("conv", self.conv_channels)


@dataclass(frozen=True)
class MLPSettings(EmbedderSettings):
    """Fully connected layers on the frame and its context."""

    embedding_size: Channels = 64
    fc_channels: tuple[Channels, ...] = (256,)
    context_frames: Context = 3
    context_stride: Stride = 4


@dataclass(frozen=True)
class GRUSettings(EmbedderSettings):
    """Convolutions on each frame and a recurrent network over all frames so far."""

    conv_channels: tuple[Channels, ...] = (64, 64)
    hidden_size: Channels = 128

    def __post_init__(self) -> None:
        _require_convolution("gru", self.conv_channels)


@dataclass(frozen=True)
class TransformerSettings(MLPSettings):
    """`MLPSettings` for each frame, then attention over all frames of the video."""

    attention: Literal["full", "causal"] = "full"
    positions: Literal["none", "relative", "shifted"] = "none"
    token_size: Channels = 128
    depth: Annotated[int, Range(1, 100)] = 2
    heads: Annotated[int, Range(1, 100)] = 4

    def __post_init__(self) -> None:
        if self.token_size % (2 * self.heads):
            wrong = f"{self.token_size} for {self.heads} heads"
            key = "encoder.transformer.token_size"
            raise ValueError(f"{key} must be a multiple of twice the heads, got {wrong}")


@dataclass(frozen=True)
class PooledSettings:
    """Features averaged over a grid of cells; nothing is trained."""

    grid: Annotated[int, Range(1, 1000)] = 3
    standardize: bool = True


@dataclass(frozen=True)
class EncoderSettings:
    """What is seen of a video, base network and embedder, the last two with a section for their settings."""

    streams: tuple[Stream, ...] = STREAMS  # in any order; appearance is seen by the base
    base: str = "efficientnet_lite0"
    embedder: str = "transformer"
    train_base: Literal["frozen", "bn", "all"] = "frozen"
    statistics: Literal["batch", "fixed"] = "batch"  # of BatchNorm in the base while it trains
    train_from: str = ""  # the first part of the base that trains, such as "network.layer2"; "": all of it
    efficientnet_lite0: EfficientNetLite0Settings = field(default_factory=EfficientNetLite0Settings)
    resnet50: ResNet50Settings = field(default_factory=ResNet50Settings)
    timm: TimmSettings = field(default_factory=TimmSettings)
    transformers: TransformersSettings = field(default_factory=TransformersSettings)
    vector: VectorSettings = field(default_factory=VectorSettings)
    conv: ConvSettings = field(default_factory=ConvSettings)
    mlp: MLPSettings = field(default_factory=MLPSettings)
    gru: GRUSettings = field(default_factory=GRUSettings)
    transformer: TransformerSettings = field(default_factory=TransformerSettings)
    pooled: PooledSettings = field(default_factory=PooledSettings)

    def __post_init__(self) -> None:
        for key, value, known in (("base", self.base, BASES), ("embedder", self.embedder, EMBEDDERS)):
            if value not in known:
                raise ValueError(f"encoder.{key} must be {one_of(map(repr, known))}, got {value!r}")
        ordered = tuple(name for name in STREAMS if name in self.streams)
        if not ordered or len(ordered) != len(self.streams):
            some = f"some of {', '.join(STREAMS)}, each once"
            raise ValueError(f"encoder.streams must name {some}, got {list(self.streams)}")
        object.__setattr__(self, "streams", ordered)
        if self.is_fused and self.embedder == "conv":
            advice = f'set encoder.streams=["appearance"], got {list(self.streams)}'
            raise ValueError(f"encoder.embedder='conv' needs feature maps: use 'mlp', or {advice}")

    @property
    def is_fused(self) -> bool:
        """Whether frames are described by other streams than their appearance; sequences never are."""
        return self.base != "vector" and self.streams != ("appearance",)

    def options(self, name: str) -> dict[str, Any]:
        """Return the settings of a base or embedder as its keyword arguments; "" stands for None."""
        settings = vars(getattr(self, name)) if hasattr(self, name) else {}
        return {key: None if value == "" else value for key, value in settings.items()}


@dataclass(frozen=True)
class MatchSettings:
    """Matches found by warping the untrained streams, or vectors."""

    sigma: Scale = 1.0  # frames by which a match may be off
    temperature: Scale = 1.0
    l2_weight: Weight = 1e-3


@dataclass(frozen=True)
class TCCSettings:
    """Temporal cycle-consistency, paper section 3."""

    kind: Literal["regression", "classification", "mse", "huber"] = "regression"
    similarity: Literal["l2", "cosine"] = "l2"
    scaling: Literal["dimension", "none"] = "dimension"
    temperature: Scale = 0.1
    variance_weight: Weight = 1e-3
    variance_term: Literal["log_variance", "log_sigma"] = "log_variance"
    index: Literal["time", "position"] = "time"
    huber_delta: Scale = 0.1
    label_smoothing: ShareBelow1 = 0.0
    normalize: bool = False


@dataclass(frozen=True)
class StochasticSettings:
    """Cycles sampled at random instead of all pairs; the other settings are those of `tcc`."""

    cycle_length: Annotated[int, Range(2, 1000)] = 2
    fraction: Annotated[float, Range(0, 100, has_low=False)] = 1.0  # cycles per frame of the batch


@dataclass(frozen=True)
class TCNSettings:
    """Single-view time-contrastive loss with positives a few frames away."""

    positive_window: Stride = 3  # frames; the paper has 5, too far where a phase takes a few frames
    temperature: Scale = 1.0
    l2_weight: Weight = 0.002
    second_view: bool = False  # whether positives are drawn from another view: its own side and augmentation


@dataclass(frozen=True)
class LAVSettings:
    """Soft-DTW between videos and the contrastive inverse difference moment within each."""

    smoothing: Scale = 0.1  # of the soft minimum
    idm_weight: Weight = 0.5  # as in the authors' program; the paper has 1
    window: Stride = 10  # frames up to which two frames of a video should be alike
    margin: Scale = 2.0  # squared distance from which far frames no longer repel
    normalize: bool = True


@dataclass(frozen=True)
class IDMSettings:
    """The contrastive inverse difference moment alone, to be added to another loss."""

    window: Stride = 15  # as in CnC, which adds it to TCC
    margin: Scale = 2.0
    normalize: bool = True


@dataclass(frozen=True)
class GTASettings:
    """SmoothDTW on contrastive costs, and cycles through all paths."""

    temperature: Scale = 0.1  # of the softmax in the costs
    smoothing: Scale = 0.1  # of the soft minimum
    warp_weight: Weight = 0.1
    cycle_weight: Weight = 1.0  # 0: smoothDTW alone


@dataclass(frozen=True)
class VAVASettings:
    """Optimal transport with a prior along the diagonal, and contrast within videos."""

    regularization: Scale = 0.1
    diagonal_share: Share = 0.9  # of the prior; the paper lowers it slowly from 1
    sigma: Scale = 2.0  # of the prior, in sampled frames
    virtual_cost: Weight = 0.5  # of leaving a frame without counterpart
    virtual_share: ShareBelow1 = 0.2  # of the frames that may be left; 0: none
    idm_weight: Weight = 0.5
    window: Stride = 15
    margin: Scale = 2.0
    iterations: Iterations = 20


@dataclass(frozen=True)
class VAOTSettings:
    """Cross-entropy to a plan of fused Gromov-Wasserstein transport."""

    temperature: Scale = 0.1
    regularization: Scale = 0.07
    time_weight: Weight = 0.35  # cost of matching different shares of two videos
    structure_weight: Share = 0.3  # of the Gromov-Wasserstein part
    radius: Share = 0.02  # of its neighbourhoods, in sampled frames over their number; at least one frame
    virtual_cost: Weight = 0.5
    virtual_share: ShareBelow1 = 0.2
    steps: Iterations = 5  # linearisations
    iterations: Iterations = 10  # of Sinkhorn, for each


@dataclass(frozen=True)
class ReversalSettings:
    """Warping forwards must be cheaper than backwards."""

    margin: Scale = 0.1  # per sampled frame
    smoothing: Scale = 0.1
    normalize: bool = True


@dataclass(frozen=True)
class SCLSettings:
    """Two views of one video agree on how close in time their frames are."""

    variance: Scale = 10.0  # of the Gaussian, in squared frames
    temperature: Scale = 0.1
    hidden_size: Annotated[int, Range(0, MAX_CHANNELS)] = 512  # of a network for training alone; 0: none


@dataclass(frozen=True)
class NextFrameSettings:
    """An embedding tells a later one, as a slow copy of the encoder has it."""

    ahead: Stride = 3  # frames
    hidden_size: Channels = 128  # of the predictor
    momentum: ShareBelow1 = 0.99  # of the slow copy


@dataclass(frozen=True)
class SaLSettings:
    """Shuffle and Learn: are three frames in order?"""

    triplets_per_video: Annotated[int, Range(1, 10_000)] = 8
    shuffled_fraction: Share = 0.75
    hidden_sizes: tuple[Channels, ...] = (128, 64)


@dataclass(frozen=True)
class SupervisedSettings:
    """Phase labels, for data sets that have them."""

    label_smoothing: ShareBelow1 = 0.0
    dropout: ShareBelow1 = 0.0


@dataclass(frozen=True)
class LossSettings:
    """A weighted sum of losses, and the settings of each."""

    weights: Mapping[str, Weight] = field(default_factory=lambda: {"match": 1.0, "tcc": 0.2})
    match: MatchSettings = field(default_factory=MatchSettings)
    tcc: TCCSettings = field(default_factory=TCCSettings)
    stochastic: StochasticSettings = field(default_factory=StochasticSettings)
    tcn: TCNSettings = field(default_factory=TCNSettings)
    lav: LAVSettings = field(default_factory=LAVSettings)
    idm: IDMSettings = field(default_factory=IDMSettings)
    gta: GTASettings = field(default_factory=GTASettings)
    vava: VAVASettings = field(default_factory=VAVASettings)
    vaot: VAOTSettings = field(default_factory=VAOTSettings)
    scl: SCLSettings = field(default_factory=SCLSettings)
    next_frame: NextFrameSettings = field(default_factory=NextFrameSettings)
    reversal: ReversalSettings = field(default_factory=ReversalSettings)
    sal: SaLSettings = field(default_factory=SaLSettings)
    supervised: SupervisedSettings = field(default_factory=SupervisedSettings)

    def __post_init__(self) -> None:
        known = get_args(LossName)
        for name, weight in self.weights.items():
            if name not in known:
                raise ValueError(f"loss.weights has no loss {name!r}; known: {', '.join(known)}")
            if weight < 0:
                raise ValueError(f"loss.weights.{name} must not be negative, got {weight:g}")
        if not any(weight > 0 for weight in self.weights.values()):
            raise ValueError(f"loss.weights must have a positive weight, got {dict(self.weights)}")

    def is_used(self, *names: str) -> bool:
        """Whether one of these losses has a positive weight."""
        return any(self.weights.get(name, 0.0) > 0 for name in names)


@dataclass(frozen=True)
class Recipe:
    """All settings of a run except the videos."""

    data: DataSettings = field(default_factory=DataSettings)
    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    loss: LossSettings = field(default_factory=LossSettings)
    augment: AugmentSettings = field(default_factory=AugmentSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    run: RunSettings = field(default_factory=RunSettings)

    def __post_init__(self) -> None:
        length, videos = self.loss.stochastic.cycle_length, self.optimizer.batch_size
        if self.loss.is_used("stochastic_tcc") and length > videos:
            raise ValueError(
                f"loss.stochastic.cycle_length {length} needs {length} videos per batch, got {videos}"
            )
        if self.loss.is_used("sal") and self.data.frames_per_video < 5:
            raise ValueError(f"loss sal needs data.frames_per_video >= 5, got {self.data.frames_per_video}")
        for key, reason in self.unused().items():
            if attrgetter(key)(self) != default_settings()[key]:
                raise ValueError(reason)

    def unused(self) -> dict[str, str]:
        """Return the settings without effect, each with a sentence that says why."""
        return unused_settings(lambda key: attrgetter(key)(self))


_PICTURES = "augment data.frame_size data.fit data.storage encoder.train_base"
_BASE = " ".join(["encoder.base encoder.train_base", *(f"encoder.{name}" for name in BASES)])
# losses with a section of their name, which no other loss reads
_OWN_SETTINGS = (
    "match",
    "tcn",
    "lav",
    "idm",
    "gta",
    "vava",
    "vaot",
    "reversal",
    "scl",
    "next_frame",
    "sal",
    "supervised",
)
_TRAINED_BASE = "encoder.statistics encoder.train_from optimizer.base_factor"
_COLOURS = "augment.brightness augment.contrast augment.hue augment.saturation"
_TCC_ONLY = "loss.tcc.kind loss.tcc.index loss.tcc.huber_delta loss.tcc.label_smoothing"
_VARIANCE = "loss.tcc.variance_weight loss.tcc.variance_term"


class Rule(NamedTuple):
    """Settings that have an effect only with some values of another setting."""

    keys: str  # settings or whole sections, separated by spaces
    control: str  # the setting that decides
    values: tuple[Any, ...] = ()  # with these they have an effect; of loss.weights: losses in use
    refused: str = ""  # instead of `values`: the only value with which they have none

    def is_met(self, value: Any) -> bool:
        """Whether the settings have an effect with this value of `control`."""
        if self.control == "encoder.streams":
            return not isinstance(value, list | tuple) or any(name in value for name in self.values)
        if self.control != "loss.weights":
            return value in self.values if self.values else value != self.refused
        if not isinstance(value, Mapping):
            return True  # refused later, for its type
        return any(isinstance(w := value.get(name), int | float) and w > 0 for name in self.values)

    def describe(self, key: str, value: Any) -> str:
        """Say why a setting has no effect and what to do."""
        advice = ""
        if self.values:
            best = f"set {self.control}={_show(self.values[0])}"
            best = f"set loss.weights.{self.values[0]}=1.0" if self.control == "loss.weights" else best
            best = f"add {self.values[0]!r} to {self.control}" if self.control == "encoder.streams" else best
            advice = f", or {best}"
        return f"{key} does nothing with {self.control} = {_show(value)}. Remove it{advice}."


def _show(value: Any) -> str:
    value = list(value) if isinstance(value, tuple) else value
    return str(value).lower() if isinstance(value, bool) else repr(value)


RULES = (
    *(Rule(f"encoder.{name}", "encoder.base", (name,)) for name in BASES),
    *(Rule(f"encoder.{name}", "encoder.embedder", (name,)) for name in EMBEDDERS),
    Rule(f"{_PICTURES} {_TRAINED_BASE}", "encoder.base", refused="vector"),
    Rule("encoder.streams", "encoder.base", refused="vector"),
    Rule(f"{_BASE} {_TRAINED_BASE}", "encoder.streams", ("appearance",)),
    Rule(f"augment data.storage {_TRAINED_BASE}", "encoder.train_base", ("all", "bn")),
    Rule("data.context_scale", "encoder.embedder", ("conv", "mlp", "transformer")),
    Rule("data.stride", "data.sampler", ("strided",)),
    Rule(f"{_COLOURS} augment.flip augment.crop augment.noise", "augment.enabled", (True,)),
    Rule("loss.tcc", "loss.weights", ("tcc", "stochastic_tcc", "order")),
    Rule(f"{_TCC_ONLY} {_VARIANCE}", "loss.weights", ("tcc", "stochastic_tcc")),
    Rule(_VARIANCE, "loss.tcc.kind", ("regression",)),
    Rule("loss.tcc.huber_delta", "loss.tcc.kind", ("huber",)),
    Rule("loss.tcc.label_smoothing", "loss.tcc.kind", ("classification",)),
    Rule("loss.tcc.index", "loss.tcc.kind", ("regression", "mse", "huber")),
    Rule("loss.stochastic", "loss.weights", ("stochastic_tcc",)),
    *(Rule(f"loss.{name}", "loss.weights", (name,)) for name in _OWN_SETTINGS),
    Rule("optimizer.momentum", "optimizer.name", ("sgd",)),
    Rule("optimizer.step_updates optimizer.step_factor", "optimizer.schedule", ("step",)),
)


def unused_settings(value_of: Callable[[str], Any]) -> dict[str, str]:
    """Return the dotted keys of all settings without effect, each with a sentence that says why.

    `value_of` returns the value of a setting by its dotted key, such as "encoder.base".
    """
    unused: dict[str, str] = {}
    for rule in RULES:
        value = value_of(rule.control)
        if not rule.is_met(value):
            for key in default_settings():
                if any(key == under or key.startswith(f"{under}.") for under in rule.keys.split()):
                    unused.setdefault(key, rule.describe(key, value))
    return unused


@cache
def default_settings() -> dict[str, Any]:
    """Return the dotted key of every setting with its default value."""
    return dict(_defaults(Recipe, ""))


def _defaults(cls: type, section: str) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(cls)
    for item in dataclasses.fields(cls):
        if dataclasses.is_dataclass(hints[item.name]):
            yield from _defaults(hints[item.name], f"{section}{item.name}.")
        else:
            factory = item.default_factory
            yield section + item.name, item.default if factory is dataclasses.MISSING else factory()
