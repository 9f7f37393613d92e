from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from cycleback.errors import CheckpointError
from cycleback.models.tensor_file import read_tensors, require_shapes

TENSORS = {"a.weight": torch.tensor([1.0, 2.5]).half(), "b": torch.ones(2, 3)}


def write(path: Path, tensors: dict[str, Tensor]) -> Path:
    if path.suffix == ".npz":
        np.savez(path, **{name: tensor.numpy() for name, tensor in tensors.items()})
    elif path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".pth", ".pt"])
def test_the_tensors_asked_for_are_read(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"weights{suffix}", TENSORS)
    found = read_tensors(path, ["a.weight", "nothing"])
    assert found.keys() == {"a.weight"}
    assert found["a.weight"].dtype == torch.float16 and torch.equal(found["a.weight"], TENSORS["a.weight"])


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".pth"])
def test_a_damaged_file_is_named(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"weights{suffix}", TENSORS)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(CheckpointError, match=rf"weights\{suffix} cannot be read \(.+\)\. Copy it again\.$"):
        read_tensors(path, ["b"])


def test_a_file_that_would_run_code_is_refused(tmp_path: Path) -> None:
    torch.save({"b": Path("x")}, tmp_path / "weights.pth")
    with pytest.raises(CheckpointError, match=r"weights\.pth cannot be read"):
        read_tensors(tmp_path / "weights.pth", ["b"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("weights.h5", r"weights\.h5 is no file of weights: expected \.npz, \.safetensors, \.pth, \.pt\."),
        ("weights.npz", r"there is no file of weights .*weights\.npz\."),
    ],
)
def test_a_path_that_cannot_be_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        read_tensors(tmp_path / name, ["b"])


def test_missing_tensors_and_other_shapes_are_named() -> None:
    wanted = {name: torch.zeros(2, 3) for name in "bcdef"}
    with pytest.raises(CheckpointError, match=r"x\.npz is not a net: it has no c, d, e and 1 more\."):
        require_shapes(Path("x.npz"), TENSORS, wanted, what="a net")
    with pytest.raises(CheckpointError, match=r"b is \(2, 3\), expected \(3, 2\)\."):
        require_shapes(Path("x.npz"), TENSORS, {"b": torch.zeros(3, 2)}, what="a net")
