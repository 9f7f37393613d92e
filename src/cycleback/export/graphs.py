"""Rewrite the networks of an encoder for other programs, and write them as ONNX files.

A graph takes pixels from 0 to 255, or features, and holds everything else: normalisation, the choice of
context frames, the decoding of joints. BatchNorm is folded into the layer before it, and convolutions over
time are sums of 2-D convolutions, because browsers have no 3-D ones on a GPU.

Shapes: B videos, N frames, C context frames, H W pixels, S size of an image, F feature channels, h w feature
map, V size of a vector, D embedding size.
"""

import contextlib
import copy
import io
import logging
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.errors import CheckpointError, MissingDependencyError, one_of
from cycleback.models import (
    Base,
    ConvEmbedder,
    EfficientNetLite0,
    Embedder,
    Encoder,
    FusedBase,
    ResNet50,
    SmallBase,
    TemporalConv,
    VectorBase,
    VGGMBase,
)
from cycleback.models.embedder import ContextEmbedder
from cycleback.models.joints import JOINTS
from cycleback.models.layers import FoldedConv, MaxPool, freeze_copy
from cycleback.models.movenet import DISTANCE_FLOOR, HEADS, MoveNetMaps, load_network
from cycleback.models.ops import fold_batch_norm
from cycleback.models.pooling_embedders import MLPEmbedder, PooledEmbedder
from cycleback.models.transformer_embedder import TransformerEmbedder

OPSET = 18
BASES = (EfficientNetLite0, ResNet50, SmallBase, VGGMBase, VectorBase)
EMBEDDERS = (ConvEmbedder, MLPEmbedder, PooledEmbedder, TransformerEmbedder)
EXAMPLE = {"frames": 2, "batch": 2, "length": 7}  # no axis of size 1: it would be taken as fixed


def check_exportable(encoder: Encoder) -> None:
    """Refuse an encoder that cannot be written as ONNX."""
    base = encoder.base
    if isinstance(base, FusedBase) and not base.is_frozen:
        raise CheckpointError(
            "a run whose streams were joined to a trained network cannot be exported; "
            "train it with encoder.train_base=frozen"
        )
    network = base.appearance if isinstance(base, FusedBase) else base
    if network is not None and not isinstance(network, BASES):
        known = one_of(kind.__name__ for kind in BASES)
        raise CheckpointError(f"the base {type(network).__name__} cannot be exported; expected {known}")
    if not isinstance(encoder.embedder, EMBEDDERS):
        known = one_of(kind.__name__ for kind in EMBEDDERS)
        raise CheckpointError(
            f"the embedder {type(encoder.embedder).__name__} cannot be exported; expected {known}"
        )


class PlainConv(FoldedConv):
    """A `FoldedConv` of torch's own operations; "SAME" padding that differs by side is an explicit pad."""

    def forward(self, input: Tensor) -> Tensor:
        """Map (N, I, H, W) to (N, O, h, w)."""
        (top, bottom), (left, right) = self.padding_of(input)
        padding = (top, left)
        if padding != (bottom, right):
            input, padding = F.pad(input, (left, right, top, bottom)), (0, 0)
        summed = F.conv2d(input, self.weight, self.bias, self.stride, padding, 1, self.groups)
        activated: Tensor = self.activation(summed)
        return activated


def fold_base(base: Base) -> Base:
    """Copy a base with BatchNorm folded into plain convolutions."""
    network = freeze_copy(base, lambda layer, _: PlainConv(layer, dtype=torch.float32))
    for name, module in list(network.named_modules()):
        if isinstance(module, MaxPool):
            parent, _, child = name.rpartition(".")
            setattr(network.get_submodule(parent), child, nn.MaxPool2d(3, stride=2, padding=1))
        if isinstance(module, nn.ReLU | nn.ReLU6):
            module.inplace = False
    return network


def fold_embedder(embedder: Embedder) -> ContextEmbedder:
    """Copy an embedder of context frames with BatchNorm folded into the layer before it."""
    folded = copy.deepcopy(embedder).requires_grad_(False).eval()
    if isinstance(folded, ConvEmbedder):
        for number, (conv, norm) in enumerate(zip(folded.convs, folded.norms, strict=True)):
            assert isinstance(conv, TemporalConv)
            weight, bias = fold_batch_norm(conv.weight, conv.bias, norm)
            conv.weight, conv.bias = nn.Parameter(weight), nn.Parameter(bias)
            folded.norms[number] = nn.Identity()
        if isinstance(folded.reduce, nn.Sequential):
            folded.reduce = _fold_layers(folded.reduce)
    elif isinstance(folded, MLPEmbedder):
        folded.layers = _fold_layers(folded.layers)
    assert isinstance(folded, ContextEmbedder)
    return folded


def _fold_layers(layers: nn.Sequential) -> nn.Sequential:
    """Fold each BatchNorm into the layer before it, and leave out dropout."""
    kept: list[nn.Module] = []
    for layer in layers:
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            before = kept[-1]
            assert isinstance(before, nn.Linear | nn.Conv2d)
            weight, bias = fold_batch_norm(before.weight, before.bias, layer)
            before.weight, before.bias = nn.Parameter(weight), nn.Parameter(bias)
        elif isinstance(layer, nn.ReLU):
            kept.append(nn.ReLU())
        elif not isinstance(layer, nn.Dropout):
            kept.append(layer)
    return nn.Sequential(*kept)


class BaseGraph(nn.Module):
    """Pixels from 0 to 255 (N, 3, H, W), or vectors (N, V), to features (N, F, h, w)."""

    def __init__(self, base: Base) -> None:
        super().__init__()
        self.base = base if isinstance(base, VectorBase) else fold_base(base)

    def forward(self, frames: Tensor) -> Tensor:
        """Map frames to features."""
        images = frames if isinstance(self.base, VectorBase) else frames / 255.0
        features: Tensor = self.base.feature_map(self.base.normalize(images))
        return features


class EmbedderGraph(nn.Module):
    """Features of whole videos (B, N, F, h, w) to embeddings (B, N, D).

    The context of a frame is earlier frames; the first frame stands in for those before the start.
    """

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self.embedder = fold_embedder(embedder)

    def forward(self, features: Tensor) -> Tensor:
        """Map features to embeddings."""
        count, length = features.shape[:2]
        terms = self.embedder.frame_terms(features.flatten(0, 1))
        back = torch.arange(self.embedder.context_frames - 1, -1, -1) * self.embedder.context_stride  # (C,)
        own = (torch.arange(length) - back[:, None]).clamp_min(0)  # (C, N)
        indices = (own[:, None] + length * torch.arange(count)[:, None]).flatten(1)  # (C, B * N)
        embeddings = self.embedder.embed_terms(terms, indices)
        return embeddings.reshape(count, length, embeddings.shape[-1])


class AttentionGraph(nn.Module):
    """Features of whole videos (B, N, F, h, w) to embeddings (B, N, D), each of which sees the video."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        assert isinstance(embedder, TransformerEmbedder)
        self.tokens = EmbedderGraph(embedder.tokens)
        self.embedder = copy.deepcopy(embedder).requires_grad_(False).eval()

    def forward(self, features: Tensor) -> Tensor:
        """Map features to embeddings."""
        tokens = self.tokens(features)
        frames = torch.arange(tokens.shape[1]).expand(tokens.shape[:2])
        return self.embedder.attend(tokens, frames)


class PoseGraph(nn.Module):
    """Pixels from 0 to 255 (N, 3, S, S) to the joints of a person (N, 17, 3): y, x, score.

    The decoding is that of `decode_maps`, in operations that all runtimes have.
    """

    center_weight: Tensor

    def __init__(self, maps: MoveNetMaps, center_weight: Tensor) -> None:
        super().__init__()
        self.maps = fold_base(maps)
        self.register_buffer("center_weight", center_weight)

    def forward(self, images: Tensor) -> Tensor:
        """Map images to joints."""
        maps = self.maps.feature_map(self.maps.normalize(images / 255.0))
        size, joints = maps.shape[-1], len(JOINTS)
        center, heatmap, regress, offset = torch.split(maps, list(HEADS.values()), dim=1)
        person = (center.sigmoid()[:, 0] * self.center_weight).flatten(1).argmax(dim=1)  # (N,)
        at = person[:, None, None].expand(-1, 2 * joints, 1)
        expected = regress.flatten(2).gather(2, at).reshape(-1, joints, 2)
        middle = torch.stack([person // size, person % size], dim=-1)[:, None].to(maps.dtype)
        expected = expected + middle
        axis = torch.arange(size, dtype=maps.dtype)
        rows, columns = axis - expected[..., :1], axis - expected[..., 1:]  # (N, 17, s) each
        distances = torch.sqrt((rows * rows)[..., :, None] + (columns * columns)[..., None, :])
        scores = heatmap.sigmoid()
        cells = (scores / (distances + DISTANCE_FLOOR)).flatten(2).argmax(dim=2)[..., None]  # (N, 17, 1)
        by_joint = offset.flatten(2).reshape(-1, joints, 2, size * size)
        inside = by_joint.gather(3, cells[:, :, None].expand(-1, -1, 2, 1))[..., 0]  # (N, 17, 2)
        found = torch.cat([cells // size, cells % size], dim=-1).to(maps.dtype)
        score = scores.flatten(2).gather(2, cells)
        return torch.cat([(found + inside) / size, score], dim=-1)


def build_pose_graph() -> PoseGraph:
    """Build the graph of the small MoveNet, which the stream `pose` uses."""
    return PoseGraph(*load_network("lightning", torch.device("cpu"))).eval()


def write_base(path: Path, base: Base, size: tuple[int, int]) -> None:
    """Write a base as ONNX; images have the `size` (H, W)."""
    shape = (base.in_channels,) if isinstance(base, VectorBase) else (3, *size)
    _write(path, BaseGraph(base), torch.rand(EXAMPLE["frames"], *shape), {0: "frames"}, "features")


def write_pose(path: Path, size: int) -> None:
    """Write MoveNet as ONNX."""
    images = torch.rand(EXAMPLE["frames"], 3, size, size)
    _write(path, build_pose_graph(), images, {0: "frames"}, "joints")


def write_embedder(path: Path, embedder: Embedder, map_size: tuple[int, int]) -> None:
    """Write an embedder as ONNX; feature maps have the size (h, w)."""
    shape = (EXAMPLE["batch"], EXAMPLE["length"], embedder.in_channels, *map_size)
    has_attention = isinstance(embedder, TransformerEmbedder)
    graph = AttentionGraph(embedder) if has_attention else EmbedderGraph(embedder)
    _write(path, graph, torch.rand(shape), {0: "batch", 1: "length"}, "embeddings")


def _write(path: Path, graph: nn.Module, example: Tensor, axes: dict[int, str], output: str) -> None:
    """Export a graph with one input, whose `axes` have any length, to one file."""
    try:
        import onnx  # noqa: F401 - torch needs both
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "writing ONNX needs onnx and onnxscript: pip install 'cycleback[onnx]'"
        ) from error
    shapes = {axis: torch.export.Dim(name, min=1, max=1 << 20) for axis, name in axes.items()}
    name = "features" if output == "embeddings" else "frames"
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            graph.eval(),
            (example,),
            path,
            dynamo=True,
            dynamic_shapes=(shapes,),
            input_names=[name],
            output_names=[output],
            opset_version=OPSET,
            external_data=False,
            verbose=False,
        )
