"""Where weights of a ResNet-50 come from, and the two conventions they were trained with.

A file of weights alone does not say which convention it needs, and the wrong one gives wrong features without
any error. So every known file is bound to its convention, and for any other the user must name it.
"""

import os
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

import torch

from cycleback.errors import CheckpointError, MissingDependencyError
from cycleback.models.preprocessing import Preprocessing

Strides = Literal["v1", "torchvision"]

IMAGENET_FILE = "resnet50_imagenet.npz"
TORCHVISION_FILE = "resnet50-0676ba61.pth"  # torchvision's ResNet50_Weights.IMAGENET1K_V1
KNOWN_FILES: dict[str, Strides] = {
    IMAGENET_FILE: "v1",
    TORCHVISION_FILE: "torchvision",
    "resnet50-11ad3fa6.pth": "torchvision",  # IMAGENET1K_V2
}


@dataclass(frozen=True)
class Convention:
    """What differs between two ResNet-50 whose tensors have the same names and shapes.

    Attributes:
        preprocessing: what the pixels must look like.
        eps: of every BatchNorm.
        strides_first: whether a block of stride 2 has it in its first 1x1 convolution, or in its 3x3 one.
    """

    preprocessing: Preprocessing
    eps: float
    strides_first: bool


CONVENTIONS: dict[Strides, Convention] = {
    "v1": Convention(
        Preprocessing(scale=255.0, mean=(123.68, 116.779, 103.939), std=(1.0, 1.0, 1.0)),
        eps=1e-3,
        strides_first=True,
    ),
    "torchvision": Convention(
        Preprocessing(scale=1.0, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)),
        eps=1e-5,
        strides_first=False,
    ),
}


@dataclass(frozen=True)
class WeightsSource:
    """A file of weights and the convention it was trained with."""

    path: Path
    strides: Strides

    @property
    def preprocessing(self) -> Preprocessing:
        """What the pixels must look like for these weights."""
        return CONVENTIONS[self.strides].preprocessing


def find_source(weights: str | Path, *, strides: Strides | None = None) -> WeightsSource:
    """The file that `weights` means.

    Args:
        weights: "imagenet", "torchvision", or a path.
        strides: the convention; needed for a file that is not known by its name, checked for one that is.
    """
    if weights == "imagenet":
        path = find_imagenet_file()
    elif weights == "torchvision":
        path = find_torchvision_file()
    else:
        path = Path(weights).expanduser()
    known = KNOWN_FILES.get(path.name)
    if known is None and strides is None:
        choices = " or ".join(f"strides={name!r}" for name in CONVENTIONS)
        raise CheckpointError(f"{path} does not say how it was trained. Give {choices} with it.")
    if known is not None and strides not in (None, known):
        raise CheckpointError(f"{path} needs strides={known!r}, got strides={strides!r}.")
    return WeightsSource(path, known or strides or "v1")


def weights_folders() -> list[Path]:
    """Where weights are looked for: $CYCLEBACK_WEIGHTS, then `weights` in the user's cache folder."""
    named = os.environ.get("CYCLEBACK_WEIGHTS")
    cache = Path(os.environ.get("CYCLEBACK_CACHE") or Path.home() / ".cache" / "cycleback")
    return [Path(folder).expanduser() for folder in (named, cache / "weights") if folder]


def find_imagenet_file() -> Path:
    """The Keras weights of ResNet-50 v1, converted to torchvision's names."""
    for folder in weights_folders():
        if (path := folder / IMAGENET_FILE).is_file():
            return path
    raise CheckpointError(
        f"the ImageNet weights of ResNet-50 are not here: put {IMAGENET_FILE} into {weights_folders()[-1]}, "
        "or set CYCLEBACK_WEIGHTS to its folder, or start from random weights with weights=None."
    )


def find_torchvision_file() -> Path:
    """The weights that torchvision published: where it keeps what it fetched, else fetched by it now."""
    folders = [*weights_folders(), Path(torch.hub.get_dir()) / "checkpoints"]
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
            f"cannot fetch {TORCHVISION_FILE} ({error}). Put it into {folders[-1]}."
        ) from error
    return folders[-1] / TORCHVISION_FILE
