"""Tensors by name from a file that another program wrote: .npz, .safetensors, .pth or .pt.

Only the tensors asked for are read, and no file can run code (`weights_only`, no pickled arrays).
"""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from cycleback.errors import CheckpointError

Tensors = dict[str, Tensor]


def read_tensors(path: Path, names: Collection[str]) -> Tensors:
    """Those of `names` that the file holds, in the type they were saved in."""
    if path.suffix not in READERS:
        raise CheckpointError(f"{path} is no file of weights: expected {', '.join(READERS)}.")
    if not path.is_file():
        raise CheckpointError(f"there is no file of weights {path}.")
    try:
        return READERS[path.suffix](path, names)
    except Exception as error:  # each format raises half a dozen types for a damaged file
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path} cannot be read ({reason}). Copy it again.") from error


def require_shapes(
    path: Path, found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], *, what: str
) -> None:
    """Refuse a file that lacks one of the `wanted` tensors, or has it in another shape."""
    if missing := [name for name in wanted if name not in found]:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise CheckpointError(f"{path} is not {what}: it has no {', '.join(missing[:3])}{more}.")
    for name, tensor in wanted.items():
        if found[name].shape != tensor.shape:
            shapes = f"{tuple(found[name].shape)}, expected {tuple(tensor.shape)}"
            raise CheckpointError(f"{path} is not {what}: {name} is {shapes}.")


def _read_npz(path: Path, names: Collection[str]) -> Tensors:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return {name: torch.from_numpy(archive[name]) for name in names if name in archive.files}


def _read_safetensors(path: Path, names: Collection[str]) -> Tensors:
    with safe_open(path, framework="pt", device="cpu") as file:
        present = set(file.keys())
        return {name: file.get_tensor(name) for name in names if name in present}


def _read_torch(path: Path, names: Collection[str]) -> Tensors:
    saved: Mapping[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return {name: saved[name] for name in names if name in saved}


READERS: dict[str, Callable[[Path, Collection[str]], Tensors]] = {
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".pth": _read_torch,
    ".pt": _read_torch,
}
