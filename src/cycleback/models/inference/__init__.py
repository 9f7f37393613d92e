"""Frozen copies of bases and encoders that embed whole videos several times faster.

On a CPU, BatchNorm and the activation run inside the convolutions (oneDNN, see `cpu`), and images go
through in batches whose feature maps stay in the processor's cache. On a GPU in bfloat16, sums and
activations run inside cuDNN's convolutions, and the paper's embedder becomes few large products (see `gpu`).

Shapes: N frames of a video, n frames of a chunk, F feature channels, h w feature map, D embedding size.
"""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from cycleback.models.base import Base
from cycleback.models.conv_embedder import ConvEmbedder
from cycleback.models.embedder import Embedder
from cycleback.models.encoder import Encoder
from cycleback.models.inference.cpu import CpuConv
from cycleback.models.inference.gpu import GpuBase, GpuEmbedder
from cycleback.models.layers import ConvNorm, FoldedConv, freeze_copy

Precision = Literal["float32", "bfloat16"]

PIXELS_PER_BATCH = 16 * 112 * 112  # the fastest batch measured on a CPU: its feature maps fit the cache


class FastBase(nn.Module):
    """The frozen copy that `fast_inference` returns; call it like the base. It keeps no gradient."""

    def __init__(self, network: Base, *, precision: Precision) -> None:
        super().__init__()
        self.network, self.precision = network, precision
        is_folded = any(isinstance(module, FoldedConv) for module in network.modules())
        self.is_autocast = precision == "bfloat16" and not is_folded

    @torch.no_grad()
    def forward(self, frames: Tensor) -> Tensor:
        """Map frames, as `Encoder.features` takes them, to features (N, F, h, w) float32."""
        size = max(len(frames), 1)
        if frames.ndim == 4 and frames.device.type == "cpu":
            size = max(PIXELS_PER_BATCH // (frames.shape[-2] * frames.shape[-1]), 1)
        starts = range(0, max(len(frames), 1), size)
        return torch.cat([self._features(frames[start : start + size]) for start in starts])

    def _features(self, frames: Tensor) -> Tensor:
        frames = self.network.to_float(frames)
        if frames.ndim == 4:
            frames = frames.contiguous(memory_format=torch.channels_last)
        with torch.autocast(frames.device.type, torch.bfloat16, enabled=self.is_autocast):
            features: Tensor = self.network(frames)
        return features.to(torch.float32).contiguous()


def fast_inference(base: Base, *, precision: Precision = "float32") -> FastBase | GpuBase:
    """Copy a base for fast inference: frozen, in evaluation mode, independent of later changes of `base`.

    Args:
        base: on the device where the copy will run. Bases built of `ConvNorm` gain most; all others work.
        precision: "float32" gives the values of `base` up to rounding. "bfloat16" is up to twice as fast on
            processors with bfloat16 arithmetic, and for the pretrained base about 2 % off (root mean square);
            the layers named in `base.float32_parts` stay in float32. On a GPU the features are bfloat16, too.
    """
    if precision not in get_args(Precision):
        raise ValueError(f"precision must be one of {get_args(Precision)}, got {precision!r}")
    has_conv_norm = any(isinstance(module, ConvNorm) for module in base.modules())
    if precision == "bfloat16" and has_conv_norm and next(base.parameters()).is_cuda:
        return GpuBase(base).eval()

    def replace(layer: ConvNorm, is_float32: bool) -> nn.Module:
        is_half = precision == "bfloat16" and not is_float32
        return CpuConv(layer, dtype=torch.bfloat16 if is_half else torch.float32)

    return FastBase(freeze_copy(base, replace), precision=precision).eval()


def default_precision(device: torch.device) -> Precision:
    """The precision for embedding on a device where the user names none: bfloat16 on a GPU."""
    return "bfloat16" if device.type == "cuda" else "float32"


class FastEncoder:
    """A frozen copy of an encoder of images for whole videos, independent of later changes of the original.

    Precision "float32" gives the embeddings of the encoder up to rounding; "bfloat16" is about 1 % off on a
    GPU. None chooses by the device, see `default_precision`.
    """

    def __init__(self, encoder: Encoder, *, precision: Precision | None = None) -> None:
        self.precision: Precision = precision or default_precision(encoder.device)
        self.features = fast_inference(encoder.base, precision=self.precision)
        self.embedder: Embedder = encoder.embedder
        is_half_on_gpu = encoder.device.type == "cuda" and self.precision == "bfloat16"
        if is_half_on_gpu and isinstance(self.embedder, ConvEmbedder) and GpuEmbedder.supports(self.embedder):
            self.embedder = GpuEmbedder(self.embedder, dtype=torch.bfloat16)
