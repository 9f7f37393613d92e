"""The paper's base: ResNet-50 with ImageNet weights, cut off after Conv4c.

Paper: Dwibedi et al., CVPR 2019, Sec. 3.4; network: He et al., "Deep residual learning", CVPR 2016.
Conv4c is the third block of the third stage, `layer3[2]`: 1024 channels at stride 16.
Files of weights have the names of torchvision (see `torchvision_name`).

Shapes: N images, H W pixels, I O channels in and out, F feature channels, h w grid.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, get_args

from torch import Tensor, nn

from cycleback.models.base import Base, ConvNorm
from cycleback.models.gpu_bricks import HalvingMaxPool
from cycleback.models.preprocessing import Preprocess
from cycleback.models.resnet50_weights import CONVENTIONS, Convention, Strides, WeightsSource, find_source
from cycleback.models.tensor_file import read_tensors, require_shapes

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # channels inside a block, blocks, stride
EXPANSION = 4  # channels of a block's output over those inside


def _conv(
    inputs: int, outputs: int, kernel: int, *, convention: Convention, stride: int = 1, relu: bool = True
) -> ConvNorm:
    """A convolution padded alike on all sides, with the BatchNorm constant of the weights."""
    return ConvNorm(
        inputs,
        outputs,
        kernel,
        stride=stride,
        padding=kernel // 2,
        eps=convention.eps,
        activation=nn.ReLU(inplace=True) if relu else None,
    )


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolution, added to the input, or to a 1x1 convolution of it where shapes differ."""

    def __init__(self, inputs: int, channels: int, *, stride: int, convention: Convention) -> None:
        super().__init__()
        outputs = EXPANSION * channels
        first, second = (stride, 1) if convention.strides_first else (1, stride)
        self.conv1 = _conv(inputs, channels, 1, stride=first, convention=convention)
        self.conv2 = _conv(channels, channels, 3, stride=second, convention=convention)
        self.conv3 = _conv(channels, outputs, 1, convention=convention, relu=False)
        self.downsample: nn.Module = nn.Identity()
        if inputs != outputs:
            self.downsample = _conv(inputs, outputs, 1, stride=stride, convention=convention, relu=False)

    def forward(self, input: Tensor) -> Tensor:
        """Grid (N, I, h, w) to (N, O, h / stride, w / stride)."""
        return self.conv3.plus_relu(self.conv2(self.conv1(input)), self.downsample(input))


class ResNet50(Base):
    """ResNet-50 up to and including the block named by `layer`; later weights are not kept."""

    float32_parts = ("network.conv1",)

    def __init__(
        self,
        *,
        weights: str | Path | None = "imagenet",
        layer: str = "layer3[2]",
        strides: Strides | None = None,
    ) -> None:
        """Build the network.

        Args:
            weights: "imagenet" (the file `resnet50_imagenet.npz`), "torchvision", a path (.npz, .safetensors,
                .pth, .pt), or None for random first values.
            layer: last block kept: "layer3[2]" is the paper's Conv4c; "layer4" is all of the fourth stage.
            strides: the convention of the weights, "v1" (stride 2 in the first 1x1 convolution of a stage) or
                "torchvision" (in the 3x3); with it go the preprocessing and BatchNorm's constant. Needed for
                a path of unknown origin; random weights take "v1" unless told.
        """
        super().__init__()
        if strides not in (None, *get_args(Strides)):
            raise ValueError(f"strides must be one of {get_args(Strides)}, got {strides!r}")
        last_stage, last_block = parse_layer(layer)
        source = None if weights is None else find_source(weights, strides=strides)
        self.layer, self.strides = layer, source.strides if source else strides or "v1"
        convention = CONVENTIONS[self.strides]
        self.preprocessing = convention.preprocessing
        self.preprocess = Preprocess(self.preprocessing)
        self.network = nn.Sequential()
        self.network.add_module("conv1", _conv(3, 64, 7, stride=2, convention=convention))
        self.network.add_module("maxpool", HalvingMaxPool())
        self.channels, self.stride = 64, 4
        for number, (channels, blocks, stride) in enumerate(STAGES[:last_stage], start=1):
            kept = last_block + 1 if number == last_stage else blocks
            stage = self._stage(channels, kept, stride=stride, convention=convention)
            self.network.add_module(f"layer{number}", stage)
        if source is not None:
            load_weights_of(self, source)

    def _stage(self, channels: int, blocks: int, *, stride: int, convention: Convention) -> nn.Sequential:
        stage = nn.Sequential()
        for step in (stride, *[1] * (blocks - 1)):
            stage.append(Bottleneck(self.channels, channels, stride=step, convention=convention))
            self.channels, self.stride = EXPANSION * channels, self.stride * step
        return stage

    @property
    def traits(self) -> dict[str, object]:
        """What changes the features besides the weights."""
        return {"strides": self.strides}

    @property
    def blueprint(self) -> dict[str, Any]:
        """The convention, which follows from the weights and must stay with them."""
        return {"strides": self.strides}

    @classmethod
    def rebuild(cls, blueprint: Mapping[str, Any], **options: Any) -> Self:
        """The same network with weights yet to be filled."""
        return cls(**{**options, "weights": None, "strides": blueprint["strides"]})

    def normalize(self, images: Tensor) -> Tensor:
        """Images (N, 3, H, W) in [0, 1] on the scale of the weights (see `preprocessing`)."""
        output: Tensor = self.preprocess(images)
        return output

    def grid(self, images: Tensor) -> Tensor:
        """Normalised images (N, 3, H, W) to features (N, F, h, w)."""
        output: Tensor = self.network(images)
        return output


def parse_layer(layer: str) -> tuple[int, int]:
    """The stage (from 1) and the block (from 0) of "layer3[2]"; of "layer3", its last block."""
    match = re.fullmatch(r"layer([1-4])(?:\[(\d)\])?", layer)
    stage = int(match[1]) if match else 0
    last = STAGES[stage - 1][1] - 1
    block = int(match[2]) if match and match[2] else last
    if not match or block > last:
        raise ValueError(f"layer must be 'layer1' to 'layer4', or a block such as 'layer3[2]', got {layer!r}")
    return stage, block


def torchvision_name(name: str) -> str:
    """Torchvision's name of one of our tensors: `network.conv1.norm.bias` is its `bn1.bias`."""
    name = name.removeprefix("network.")
    name = name.replace("downsample.conv.", "downsample.0.").replace("downsample.norm.", "downsample.1.")
    return re.sub(r"conv(\d)\.norm\.", r"bn\1.", name).replace(".conv.", ".")


def load_weights_of(network: ResNet50, source: WeightsSource) -> None:
    """Fill every tensor of `network` from the file; those of later blocks are not read."""
    own = {name: tensor for name, tensor in network.state_dict().items() if not _is_count(name)}
    wanted = {torchvision_name(name): tensor for name, tensor in own.items()}
    found = read_tensors(source.path, wanted)
    require_shapes(source.path, found, wanted, what="a ResNet-50 with torchvision's names")
    for name, tensor in own.items():
        tensor.copy_(found[torchvision_name(name)])


def _is_count(name: str) -> bool:
    """Whether it is BatchNorm's count of updates, which some files lack and no output depends on."""
    return name.endswith("num_batches_tracked")
