"""The paper's base: ResNet-50 with ImageNet weights, up to Conv4c.

Paper: Dwibedi et al., CVPR 2019, Sec. 3.4; network: He et al., "Deep residual learning", CVPR 2016.
Conv4c is the third block of the third stage, `layer3[2]`: 1024 channels at stride 16.

Weights come in two conventions, and a file does not say which one it needs. The wrong one gives wrong
features without any error. So every known file has a fixed convention, and for others the user must name it.
Tensors have torchvision's names in all files (see `torchvision_name`).

Shapes: N images, H W pixels, I O channels in and out, F feature channels, h w feature map.
"""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor, nn

from cycleback.errors import CheckpointError, MissingDependencyError, one_of
from cycleback.models.base import Base, Normalize, Preprocessing
from cycleback.models.layers import ConvNorm, MaxPool

Strides = Literal["v1", "torchvision"]

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # channels inside a block, blocks, stride
EXPANSION = 4  # output channels of a block / channels inside
SUFFIXES = (".npz", ".safetensors", ".pth", ".pt")
IMAGENET_FILE = "resnet50_imagenet.npz"
TORCHVISION_FILE = "resnet50-0676ba61.pth"  # torchvision's ResNet50_Weights.IMAGENET1K_V1
KNOWN_FILES: dict[str, Strides] = {
    IMAGENET_FILE: "v1",
    TORCHVISION_FILE: "torchvision",
    "resnet50-11ad3fa6.pth": "torchvision",  # IMAGENET1K_V2
}


@dataclass(frozen=True)
class Convention:
    """The differences between two ResNet-50 whose tensors have the same names and shapes."""

    preprocessing: Preprocessing
    eps: float  # of every BatchNorm
    strides_first: bool  # whether a block of stride 2 has it in its first 1x1 convolution, not in the 3x3 one


KERAS_PIXELS = Preprocessing(scale=255.0, mean=(123.68, 116.779, 103.939), std=(1.0, 1.0, 1.0))
TORCHVISION_PIXELS = Preprocessing(scale=1.0, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
CONVENTIONS: dict[Strides, Convention] = {
    "v1": Convention(KERAS_PIXELS, eps=1e-3, strides_first=True),
    "torchvision": Convention(TORCHVISION_PIXELS, eps=1e-5, strides_first=False),
}


def _conv(
    inputs: int, outputs: int, kernel: int, *, eps: float, stride: int = 1, relu: bool = True
) -> ConvNorm:
    """A convolution with equal padding on all sides and the BatchNorm constant of the weights."""
    activation, padding = nn.ReLU(inplace=True) if relu else None, kernel // 2
    return ConvNorm(inputs, outputs, kernel, stride=stride, padding=padding, eps=eps, activation=activation)


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolution, added to the input, or to a 1x1 convolution of it where shapes differ."""

    def __init__(self, inputs: int, channels: int, *, stride: int, convention: Convention) -> None:
        super().__init__()
        outputs, eps = EXPANSION * channels, convention.eps
        first, second = (stride, 1) if convention.strides_first else (1, stride)
        self.conv1 = _conv(inputs, channels, 1, stride=first, eps=eps)
        self.conv2 = _conv(channels, channels, 3, stride=second, eps=eps)
        self.conv3 = _conv(channels, outputs, 1, eps=eps, relu=False)
        self.downsample: nn.Module = nn.Identity()
        if inputs != outputs:
            self.downsample = _conv(inputs, outputs, 1, stride=stride, eps=eps, relu=False)

    def forward(self, input: Tensor) -> Tensor:
        """Map (N, I, h, w) to (N, O, h / stride, w / stride)."""
        return self.conv3.add_relu(self.conv2(self.conv1(input)), self.downsample(input))


class ResNet50(Base):
    """ResNet-50 up to and including the block named by `layer`; later weights are dropped.

    Args:
        weights: "imagenet" (the file `resnet50_imagenet.npz`), "torchvision", a path (.npz, .safetensors,
            .pth, .pt), or "" or None for random weights.
        layer: last block: "layer3[2]" is the paper's Conv4c; "layer4" is all of the fourth stage.
        strides: the convention of the weights, "v1" (stride 2 in the first 1x1 convolution of a stage) or
            "torchvision" (in the 3x3); it also sets the preprocessing and BatchNorm's constant. Needed for a
            path with an unknown file name. "" or None: by the file name; "v1" for random weights.
    """

    float32_parts = ("network.conv1",)

    def __init__(
        self,
        *,
        weights: str | Path | None = "imagenet",
        layer: str = "layer3[2]",
        strides: Strides | Literal[""] | None = None,
    ) -> None:
        super().__init__()
        strides = strides or None
        if strides not in (None, *get_args(Strides)):
            raise ValueError(f"strides must be one of {get_args(Strides)}, got {strides!r}")
        last_stage, last_block = _parse_layer(layer)
        path: Path | None = None
        if weights:
            path, strides = find_weights(weights, strides=strides)
        self.strides: Strides = strides or "v1"
        convention = CONVENTIONS[self.strides]
        self.preprocess = Normalize(convention.preprocessing)
        self.network = nn.Sequential()
        self.network.add_module("conv1", _conv(3, 64, 7, stride=2, eps=convention.eps))
        self.network.add_module("maxpool", MaxPool())
        self.channels, self.stride = 64, 4
        for number, (channels, blocks, stride) in enumerate(STAGES[:last_stage], start=1):
            kept = last_block + 1 if number == last_stage else blocks
            stage = nn.Sequential()
            for step in (stride, *[1] * (kept - 1)):
                stage.append(Bottleneck(self.channels, channels, stride=step, convention=convention))
                self.channels, self.stride = EXPANSION * channels, self.stride * step
            self.network.add_module(f"layer{number}", stage)
        if path is not None:
            load_published_weights(self, path)

    @property
    def traits(self) -> dict[str, object]:
        """Settings besides the weights that change the features."""
        return {"strides": self.strides}

    @property
    def blueprint(self) -> dict[str, Any]:
        """The convention, which belongs to the weights."""
        return {"strides": self.strides}

    @classmethod
    def rebuild(cls, blueprint: Mapping[str, Any], **options: Any) -> Self:
        """Build the same network for weights that are loaded later."""
        return cls(**{**options, "weights": None, "strides": blueprint["strides"]})

    def feature_map(self, images: Tensor) -> Tensor:
        """Map normalised images (N, 3, H, W) to features (N, F, h, w)."""
        output: Tensor = self.network(images)
        return output


def _parse_layer(layer: str) -> tuple[int, int]:
    """Split "layer3[2]" into stage (from 1) and block (from 0); "layer3" means its last block."""
    match = re.fullmatch(r"layer([1-4])(?:\[(\d)\])?", layer)
    stage = int(match[1]) if match else 0
    last = STAGES[stage - 1][1] - 1
    block = int(match[2]) if match and match[2] else last
    if not match or block > last:
        raise ValueError(f"layer must be 'layer1' to 'layer4', or a block such as 'layer3[2]', got {layer!r}")
    return stage, block


def torchvision_name(name: str) -> str:
    """Translate the name of a tensor into torchvision's: `network.conv1.norm.bias` to `bn1.bias`."""
    name = name.removeprefix("network.")
    name = name.replace("downsample.conv.", "downsample.0.").replace("downsample.norm.", "downsample.1.")
    return re.sub(r"conv(\d)\.norm\.", r"bn\1.", name).replace(".conv.", ".")


def load_published_weights(network: ResNet50, path: Path) -> None:
    """Fill every tensor of `network` from a file; later blocks are not read."""
    wanted = {
        torchvision_name(name): tensor
        for name, tensor in network.state_dict().items()
        if not name.endswith("num_batches_tracked")
    }  # some files lack these counts, and no output depends on them
    tensors = read_tensors(path, wanted)
    require_shapes(path, tensors, wanted)
    for name, tensor in wanted.items():
        tensor.copy_(tensors[name])


def find_weights(weights: str | Path, *, strides: Strides | None = None) -> tuple[Path, Strides]:
    """Find the file that `weights` names ("imagenet", "torchvision" or a path), and its convention.

    `strides` is needed for a file with an unknown name, and checked for a known one.
    """
    if weights == "imagenet":
        path = find_imagenet_file()
    elif weights == "torchvision":
        path = _find_torchvision_file()
    else:
        path = Path(weights).expanduser()
    known = KNOWN_FILES.get(path.name)
    if known is None and strides is None:
        choices = " or ".join(f"strides={name!r}" for name in CONVENTIONS)
        raise CheckpointError(f"{path} does not say how it was trained. Set {choices}.")
    if known is not None and strides not in (None, known):
        raise CheckpointError(f"{path} needs strides={known!r}, got strides={strides!r}.")
    return path, known or strides or "v1"


def _weights_folders() -> list[Path]:
    """The folders to search for weights: $CYCLEBACK_WEIGHTS, then `weights` in the user's cache folder."""
    named = os.environ.get("CYCLEBACK_WEIGHTS")
    cache = Path(os.environ.get("CYCLEBACK_CACHE") or Path.home() / ".cache" / "cycleback")
    return [Path(folder).expanduser() for folder in (named, cache / "weights") if folder]


def find_imagenet_file() -> Path:
    """Find the Keras weights of ResNet-50 v1, converted to torchvision's names."""
    for folder in _weights_folders():
        if (path := folder / IMAGENET_FILE).is_file():
            return path
    raise CheckpointError(
        f"the ImageNet weights of ResNet-50 are missing: put {IMAGENET_FILE} into {_weights_folders()[-1]}, "
        "or set CYCLEBACK_WEIGHTS to its folder, or use random weights with weights=''."
    )


def _find_torchvision_file() -> Path:
    """Find the weights that torchvision published, or let it download them into its own cache."""
    folders = [*_weights_folders(), Path(torch.hub.get_dir()) / "checkpoints"]
    for folder in folders:
        if (path := folder / TORCHVISION_FILE).is_file():
            return path
    try:
        published = import_module("torchvision.models").ResNet50_Weights.IMAGENET1K_V1
    except (ImportError, RuntimeError) as error:  # RuntimeError: a build for another torch
        raise MissingDependencyError(
            f"torchvision's weights need torchvision, or its file {TORCHVISION_FILE} in {folders[-1]}."
        ) from error
    try:
        published.get_state_dict(progress=False)
    except OSError as error:
        raise CheckpointError(
            f"cannot download {TORCHVISION_FILE} ({error}). Put it into {folders[-1]}."
        ) from error
    return folders[-1] / TORCHVISION_FILE


def read_tensors(path: Path, names: Collection[str]) -> dict[str, Tensor]:
    """Read the tensors `names` that a file holds, in the type they were saved in."""
    if path.suffix not in SUFFIXES:
        raise CheckpointError(f"{path} is not a weights file: expected {one_of(SUFFIXES)}.")
    if not path.is_file():
        raise CheckpointError(f"weights file {path} does not exist.")
    try:
        return _read(path, names)
    except Exception as error:  # each format raises half a dozen types for a damaged file
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path} cannot be read ({reason}). Copy it again.") from error


def require_shapes(path: Path, tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """Refuse a file that lacks a `wanted` tensor, or holds it in another shape."""
    refusal = f"{path} is not a ResNet-50 with torchvision's names"
    if missing := [name for name in wanted if name not in tensors]:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise CheckpointError(f"{refusal}: it has no {', '.join(missing[:3])}{more}.")
    for name, tensor in wanted.items():
        if tensors[name].shape != tensor.shape:
            shapes = f"{tuple(tensors[name].shape)}, expected {tuple(tensor.shape)}"
            raise CheckpointError(f"{refusal}: {name} is {shapes}.")


def _read(path: Path, names: Collection[str]) -> dict[str, Tensor]:
    """Read only the tensors `names`; no file can run code (`weights_only`, no pickled arrays)."""
    if path.suffix == ".npz":
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: torch.from_numpy(archive[name]) for name in names if name in archive.files}
    if path.suffix == ".safetensors":
        with safe_open(path, framework="pt", device="cpu") as tensors:
            return {name: tensors.get_tensor(name) for name in set(tensors.keys()).intersection(names)}
    saved: Mapping[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return {name: saved[name] for name in names if name in saved}
