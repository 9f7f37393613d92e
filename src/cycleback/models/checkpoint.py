"""The weights of an encoder on disk: one safetensors file with the settings that built it.

Base weights are always saved, even pretrained or frozen ones: the folder alone is enough to use the encoder.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from cycleback.errors import CheckpointError
from cycleback.files import atomic_file
from cycleback.models.base import Base
from cycleback.models.encoder import Encoder
from cycleback.reading import CHECKSUM, checksum, parse_json, seal

FILE_NAME = "encoder.safetensors"
FORMAT = "cycleback-encoder-1"
WEIGHTS = "weights_checksum"
AGAIN = "Copy it again, or train again."


def fingerprint(encoder: Encoder) -> str:
    """Hash everything that changes the embeddings into sixteen hex digits, the same on every device."""
    return _fingerprint(encoder, encoder.state_dict())


def base_fingerprint(base: Base) -> str:
    """Hash everything that changes the features of a base into sixteen hex digits."""
    return _hash([type(base).__name__, base.traits], base.state_dict())


def save_encoder(
    folder: str | Path, encoder: Encoder, settings: dict[str, Any], *, half: bool = False
) -> Path:
    """Write `folder`/encoder.safetensors atomically and return its path.

    Args:
        settings: JSON values from which the same encoder can be built.
        half: store kernels and matrices in 16 bits; biases and BatchNorm stay in float32.
    """
    path, state = Path(folder) / FILE_NAME, encoder.state_dict()
    tensors = {name: _to_half(name, tensor) if half else _to_cpu(tensor) for name, tensor in state.items()}
    as_loaded = {name: tensor.to(state[name].dtype) for name, tensor in tensors.items()}
    metadata = {
        "format": FORMAT,
        "fingerprint": _fingerprint(encoder, as_loaded),
        "settings": json.dumps(settings),
        "base": json.dumps(encoder.base.blueprint),
        WEIGHTS: _checksum(tensors),
    }
    with atomic_file(path, overwrite=True) as draft:
        save_file(tensors, draft, metadata=seal(metadata))
    return path


def load_settings(folder: str | Path) -> dict[str, Any]:
    """Read the settings given to `save_encoder`."""
    return _read_object(folder, "settings")


def load_blueprint(folder: str | Path) -> dict[str, Any]:
    """Read the `Base.blueprint` of the saved base."""
    return _read_object(folder, "base")


def load_weights(folder: str | Path, encoder: Encoder) -> None:
    """Load the saved weights into an `encoder` built with the same settings."""
    tensors, _ = _read(folder, with_tensors=True)
    problems = _differences(tensors, encoder.state_dict())
    if problems:
        listed = "; ".join(problems[:3]) + (f"; and {len(problems) - 3} more" if len(problems) > 3 else "")
        advice = "Build the encoder with the settings saved beside the weights."
        raise CheckpointError(f"{Path(folder) / FILE_NAME} does not fit this encoder: {listed}. {advice}")
    encoder.load_state_dict(tensors)


def _read_object(folder: str | Path, key: str) -> dict[str, Any]:
    """Read an object of the metadata; {} where there is none."""
    _, metadata = _read(folder, with_tensors=False)
    place = f"{Path(folder) / FILE_NAME}, {key}"
    root = parse_json(metadata.get(key, "{}"), place, problem=CheckpointError, advice=f". {AGAIN}")
    return {name: inside.value for name, inside in root.items()}


def _read(folder: str | Path, *, with_tensors: bool) -> tuple[dict[str, Tensor], dict[str, str]]:
    path = Path(folder) / FILE_NAME
    if not path.is_file():
        raise CheckpointError(
            f"no encoder in {folder} (looked for {FILE_NAME}). Train first, or pass a run folder."
        )
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            metadata: dict[str, str] = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()} if with_tensors else {}  # noqa: SIM118
    except Exception as error:  # safetensors and torch raise half a dozen types for a damaged file
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise CheckpointError(f"{path} is damaged ({reason}). {AGAIN}") from error
    if metadata.get("format") != FORMAT:
        mark = metadata.get("format", "no format mark")
        raise CheckpointError(
            f"{path} is not an encoder of this version: expected {FORMAT!r}, found {mark!r}."
        )
    is_whole = seal(metadata)[CHECKSUM] == metadata.get(CHECKSUM, seal(metadata)[CHECKSUM])
    if not is_whole or (with_tensors and metadata.get(WEIGHTS) not in (None, _checksum(tensors))):
        raise CheckpointError(f"{path} was changed or damaged since it was written (wrong checksum). {AGAIN}")
    for name, tensor in tensors.items() if WEIGHTS not in metadata else ():  # of an earlier version
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise CheckpointError(f"{path} is damaged ({name} is not finite). {AGAIN}")
    return tensors, metadata


def _checksum(tensors: dict[str, Tensor]) -> str:
    """Return a checksum of the names, types, shapes and values of tensors."""
    in_order = sorted(tensors.items())
    shapes = [[name, str(tensor.dtype), list(tensor.shape)] for name, tensor in in_order]
    return checksum(json.dumps(shapes).encode(), *(_bytes(tensor) for _, tensor in in_order))


def _differences(saved: dict[str, Tensor], wanted: dict[str, Tensor]) -> list[str]:
    """List the differences between two sets of tensors, one phrase per tensor, sorted by name."""
    problems = []
    for name in sorted(saved.keys() | wanted.keys()):
        if name not in saved:
            problems.append(f"{name} is missing in the file")
        elif name not in wanted:
            problems.append(f"{name} is not part of the encoder")
        elif saved[name].shape != wanted[name].shape:
            shapes = f"{tuple(saved[name].shape)} in the file, {tuple(wanted[name].shape)} in the encoder"
            problems.append(f"{name} is {shapes}")
        elif saved[name].is_floating_point() != wanted[name].is_floating_point():
            problems.append(f"{name} is {saved[name].dtype} in the file, {wanted[name].dtype} in the encoder")
    return problems


def _fingerprint(encoder: Encoder, tensors: dict[str, Tensor]) -> str:
    parts = [[type(part).__name__, part.traits] for part in (encoder.base, encoder.embedder)]
    return _hash(parts, tensors)


def _hash(traits: list[Any], tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256(json.dumps(traits, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        if not name.endswith("num_batches_tracked"):  # a count of updates, which changes no output
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(_bytes(_to_cpu(tensor)))
    return digest.hexdigest()[:16]


def _bytes(tensor: Tensor) -> memoryview:
    """Return the bytes of a contiguous tensor on the CPU, without a copy."""
    return tensor.reshape(-1).view(torch.uint8).numpy().data


def _to_cpu(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous()


def _to_half(name: str, tensor: Tensor) -> Tensor:
    """Convert a kernel or matrix to 16 bits; vectors, scalars and counts stay as they are."""
    if tensor.ndim < 2 or not tensor.is_floating_point():
        return _to_cpu(tensor)
    rounded = _to_cpu(tensor.to(torch.float16))
    if not rounded.isfinite().all():
        largest = float(tensor.abs().max())
        raise CheckpointError(f"{name} reaches {largest:g}, but 16 bits hold at most 65504")
    return rounded
