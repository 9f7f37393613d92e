"""MoveNet: the 17 body key points of the most central person of an image.

The network is MobileNetV2, a pyramid of three levels, and four heads on a map of a quarter of the image's
size: `center` (where the middle of a person is), `heatmap` (where a joint is), `regress` (from the middle to
each joint) and `offset` (from the cell of a joint to the joint). Network and weights are by Google, see
weights/NOTICE.

Shapes: N images, S size of an image, s = S / 4 size of the maps, J = 17 joints, F map channels.
"""

from importlib.resources import as_file, files
from typing import get_args

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from cycleback.errors import UserError
from cycleback.models.base import Base
from cycleback.models.inference import Precision, fast_inference
from cycleback.models.joints import IMAGE_SIZES, JOINTS, Variant
from cycleback.models.layers import ConvNorm, InvertedBottleneck

WIDTHS: dict[Variant, float] = {"thunder": 1.75, "lightning": 1.0}

STEM_CHANNELS, TOP_CHANNELS = 32, 1280  # the top is not widened
STAGES = (  # stride, expansion, channels, blocks; channels are multiplied by the width
    (1, 1, 16, 1),
    (2, 6, 24, 2),
    (2, 6, 32, 3),
    (2, 6, 64, 4),
    (1, 6, 96, 3),
    (2, 6, 160, 3),
    (1, 6, 320, 1),
)
TAPS = (2, 5, 9)  # the blocks whose outputs join the pyramid, of stride 4, 8 and 16
PYRAMID_CHANNELS = (64, 64, 32, 24, 24)  # of the joined maps from stride 32 to 4, and of the last level
HEAD_CHANNELS = 96
HEADS = {"center": 1, "heatmap": len(JOINTS), "regress": 2 * len(JOINTS), "offset": 2 * len(JOINTS)}
PIXEL_SCALE = 257 / 32768  # 1 / 127.5 in float16, as the weights were published
GPU_BATCH = 64  # images; cuDNN plans every layer again for another number of them
DISTANCE_FLOOR = 1.8  # cells; keeps the quotient of score and distance finite


def _conv(
    inputs: int, outputs: int, kernel: int = 1, *, relu: bool = True, stride: int = 1, groups: int = 1
) -> ConvNorm:
    """A convolution of the MobileNet, with ReLU6 if `relu`."""
    activation = nn.ReLU6(inplace=True) if relu else None
    sizes = (inputs, outputs, kernel)
    return ConvNorm(*sizes, stride=stride, groups=groups, activation=activation, has_norm=False)


def _separable(inputs: int, outputs: int) -> nn.Sequential:
    """A 3 x 3 filter of each channel, then a mixture of the channels with ReLU."""
    mixture = ConvNorm(inputs, outputs, 1, activation=nn.ReLU(inplace=True), has_norm=False)
    return nn.Sequential(_conv(inputs, inputs, 3, relu=False, groups=inputs), mixture)


def widen(channels: int, width: float) -> int:
    """Multiply a number of channels by the width and round to a multiple of 8, at least 90 % of it."""
    wanted = channels * width
    rounded = max(8, int(wanted + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * wanted else rounded + 8


class MoveNetMaps(Base):
    """The network of MoveNet: images (N, 3, S, S) to the maps of the four heads, one after another.

    S is a multiple of 32. `MoveNet` loads the weights and finds the joints in the maps.
    """

    stride = 4
    channels = sum(HEADS.values())
    float32_parts = ("stem", "blocks.0")

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        width = WIDTHS[variant]
        channels = widen(STEM_CHANNELS, width)
        self.stem = _conv(3, channels, 3, stride=2)
        self.blocks = nn.ModuleList()
        outputs = []
        for stride, expansion, base_channels, count in STAGES:
            for number in range(count):
                first, wide = stride if number == 0 else 1, widen(base_channels, width)
                self.blocks.append(
                    InvertedBottleneck(
                        channels, wide, conv=_conv, kernel=3, stride=first, expansion=expansion
                    )
                )
                channels = wide
                outputs.append(channels)
        self.top = _conv(channels, TOP_CHANNELS)
        sources = [TOP_CHANNELS, *(outputs[tap] for tap in reversed(TAPS))]
        self.lateral = nn.ModuleList(map(_lateral, sources, PYRAMID_CHANNELS))
        self.smooth = nn.ModuleList(map(_separable, PYRAMID_CHANNELS[1:], PYRAMID_CHANNELS[2:]))
        self.heads = nn.ModuleDict({name: _head(outputs) for name, outputs in HEADS.items()})

    def normalize(self, images: Tensor) -> Tensor:
        """Scale images (N, 3, S, S) in [0, 1] to [-1, 1]."""
        return images * (255 * PIXEL_SCALE) - 1.0

    def feature_map(self, images: Tensor) -> Tensor:
        """Map normalised images (N, 3, S, S) to the maps of all heads (N, F, s, s)."""
        output, tapped = self.stem(images), []
        for number, block in enumerate(self.blocks):
            output = block(output)
            if number in TAPS:
                tapped.append(output)
        output = self.lateral[0](self.top(output))
        for lateral, smooth, tap in zip(self.lateral[1:], self.smooth, reversed(tapped), strict=True):
            larger = F.interpolate(output, scale_factor=2, mode="bilinear", align_corners=False)
            output = smooth(larger + lateral(tap))
        return torch.cat([head(output) for head in self.heads.values()], dim=1)


def _lateral(inputs: int, outputs: int) -> ConvNorm:
    return _conv(inputs, outputs, relu=False)


def _head(outputs: int) -> nn.Sequential:
    separable = _separable(PYRAMID_CHANNELS[-1], HEAD_CHANNELS)
    return nn.Sequential(*separable, _conv(HEAD_CHANNELS, outputs, relu=False))


class MoveNet(nn.Module):
    """Find the key points of the most central person of each image. It cannot be trained.

    Args:
        variant: "thunder" (256 px) is more accurate, "lightning" (192 px) about three times faster. The
            weights of "thunder" are in the repository, not in the wheel.
        device: where it runs; the CPU by default. The copy for fast inference stays there.
        precision: "bfloat16" is faster on a GPU, but moves joints by about 0.001, and confuses some.
    """

    def __init__(
        self,
        variant: Variant = "lightning",
        *,
        device: torch.device | None = None,
        precision: Precision = "float32",
    ) -> None:
        super().__init__()
        if variant not in get_args(Variant):
            raise ValueError(f"variant must be one of {get_args(Variant)}, got {variant!r}")
        device = device or torch.device("cpu")
        self.image_size, self.key = IMAGE_SIZES[variant], str(variant)
        maps, self.center_weight = load_network(variant, device)
        self.maps = fast_inference(maps, precision=precision)

    @torch.inference_mode()
    def forward(self, images: Tensor) -> Tensor:
        """Find key points (N, 17, 3) in images uint8 (N, 3, S, S): y, x in [0, 1] of the image, score."""
        expected = (3, self.image_size, self.image_size)
        if images.ndim != 4 or images.shape[1:] != expected or images.dtype != torch.uint8:
            found = f"{images.dtype} {tuple(images.shape)}"
            raise ValueError(f"images must be torch.uint8 (N, {', '.join(map(str, expected))}), got {found}")
        return decode_maps(self.maps(images).float(), self.center_weight)

    def find(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Find key points (n, 17, 3) in images (n, S, S, 3): what `JointFinder` asks for."""
        device = self.center_weight.device
        size = -(-len(images) // GPU_BATCH) * GPU_BATCH if device.type == "cuda" else len(images)
        padded = np.pad(images, ((0, size - len(images)), *[(0, 0)] * 3))
        tensor = torch.from_numpy(padded).movedim(-1, 1).to(device)
        found = torch.cat([self(batch) for batch in torch.split(tensor, GPU_BATCH)])
        joints: NDArray[np.float32] = found[: len(images)].cpu().numpy()
        return joints


def load_network(variant: Variant, device: torch.device) -> tuple[MoveNetMaps, Tensor]:
    """Build the network with its weights, and the weight (s, s) of each cell as the middle of a person."""
    from safetensors.torch import load_file

    with as_file(files("cycleback") / "weights" / f"movenet-{variant}.safetensors") as path:
        if not path.is_file():
            raise UserError(
                f"the weights of MoveNet {variant!r} are not installed (expected {path}). Use 'lightning', "
                f"or copy src/cycleback/weights/{path.name} of the repository there."
            )
        weights = {name: tensor.float() for name, tensor in load_file(path).items()}
    center_weight = weights.pop("center_weight").to(device)
    maps = MoveNetMaps(variant)
    maps.load_state_dict(weights)
    return maps.to(device).eval(), center_weight


def decode_maps(maps: Tensor, center_weight: Tensor) -> Tensor:
    """Find the joints (N, 17, 3) of one person in the maps of the heads (N, F, s, s): y, x, score.

    The person is the cell with the highest centre score times `center_weight` (s, s), which is high in the
    middle. A joint is the cell with the highest score over distance to where that person expects it.
    """
    size = maps.shape[-1]
    center, heatmap, regress, offset = torch.split(maps, list(HEADS.values()), dim=1)
    person = (center.sigmoid()[:, 0] * center_weight).flatten(1).argmax(dim=1)  # (N,)
    expected = torch.unflatten(_take(regress, person[:, None])[..., 0], 1, (-1, 2))  # (N, 17, 2)
    expected = expected + torch.stack([person // size, person % size], dim=-1)[:, None]
    axis = torch.arange(size, device=maps.device, dtype=maps.dtype)
    rows, columns = axis - expected[..., :1], axis - expected[..., 1:]  # (N, 17, s) each
    distances = torch.sqrt(rows[..., :, None] ** 2 + columns[..., None, :] ** 2)  # (N, 17, s, s)
    scores = heatmap.sigmoid()
    cells = (scores / (distances + DISTANCE_FLOOR)).flatten(2).argmax(dim=2)  # (N, 17)
    every = torch.arange(len(JOINTS), device=maps.device)
    by_joint = torch.unflatten(_take(offset, cells), 1, (-1, 2))  # (N, 17, 2, 17)
    inside = by_joint[:, every, :, every].transpose(0, 1)  # (N, 17, 2)
    places = (torch.stack([cells // size, cells % size], dim=-1) + inside) / size
    score = scores.flatten(2).gather(2, cells[..., None])
    return torch.cat([places, score], dim=-1)


def _take(maps: Tensor, cells: Tensor) -> Tensor:
    """Read all channels of maps (N, F, s, s) at `cells` (N, n): (N, F, n)."""
    return maps.flatten(2).gather(2, cells[:, None].expand(-1, maps.shape[1], -1))
