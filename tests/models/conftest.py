"""Small encoders and pictures for the tests of the networks."""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cycleback.models import Base, ConvEmbedder, Encoder, SmallBase

SMALL_BASES: dict[str, dict[str, Any]] = {  # "transformers" gets its model from the fixture `tiny_dino`
    "efficientnet_lite0": {"block": 2, "pretrained": False},
    "resnet50": {"weights": None, "layer": "layer1[0]"},
    "small": {"width": 4},
    "timm": {"model": "test_efficientnet", "weights": None},
    "transformers": {},
    "vector": {"in_features": 6},
    "vggm": {},
}


def build_encoder(
    *, context_frames: int = 2, context_stride: int = 3, seed: int = 0, **options: object
) -> Encoder:
    """A tiny encoder whose BatchNorm statistics are not the trivial first ones."""
    torch.manual_seed(seed)
    base = SmallBase(width=4)
    embedder = ConvEmbedder(
        base.channels,
        conv_channels=(8, 6),
        fc_channels=(10,),
        embedding_size=5,
        context_frames=context_frames,
        context_stride=context_stride,
        **options,  # type: ignore[arg-type]
    )
    encoder = Encoder(base, embedder).train()
    with torch.no_grad():
        encoder(torch.rand(2, 3, context_frames, 3, 32, 32))
    return encoder.eval()


@pytest.fixture
def make_encoder() -> Callable[..., Encoder]:
    return build_encoder


@pytest.fixture
def encoder() -> Encoder:
    return build_encoder()


@pytest.fixture
def picture() -> Tensor:
    """A smooth picture (1, 3, 64, 64) in [0, 1], the same on every machine."""
    row, column = torch.linspace(0, 1, 64)[:, None], torch.linspace(0, 1, 64)[None]
    return torch.stack([0.5 + 0.5 * torch.sin(9 * row + 4 * column * channel) for channel in (1, 2, 3)])[None]


@pytest.fixture(scope="session")
def tiny_dino(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny DINOv2 of random weights, 14 pixels a patch."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    options = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "mlp_ratio": 2}
    folder = tmp_path_factory.mktemp("dino")
    torch.manual_seed(0)
    transformers.utils.logging.disable_progress_bar()
    transformers.Dinov2Model(transformers.Dinov2Config(**options, image_size=56)).save_pretrained(folder)
    pixels = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.25, 0.5], "rescale_factor": 1 / 255}
    (folder / "preprocessor_config.json").write_text(json.dumps(pixels))
    return folder


@pytest.fixture(scope="session")
def timm() -> Any:
    """The timm library, which cannot be imported beside a torchvision for another torch."""
    try:
        return import_module("timm")
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"timm cannot be imported: {error}")


@pytest.fixture
def small_options(request: pytest.FixtureRequest) -> Callable[[str], dict[str, Any]]:
    """Options that make each registered base small, with random weights."""

    def options(name: str) -> dict[str, Any]:
        if name == "timm":
            request.getfixturevalue("timm")
        if name == "transformers":
            return {"model": str(request.getfixturevalue("tiny_dino"))}
        return SMALL_BASES[name]

    return options


@pytest.fixture
def frames_for() -> Callable[..., Tensor]:
    """Random frames (..., 3, 32, 32) or (..., V) for a base."""

    def frames(base: Base, *shape: int) -> Tensor:
        if base.input_kind == "vectors":
            return torch.randn(*shape, base.in_channels)
        return torch.rand(*shape, base.in_channels, 32, 32)

    return frames


@pytest.fixture
def resnet50_file(shared_data: Path) -> Path:
    """The real ImageNet weights, which are never part of the repository."""
    path = shared_data.parent / "weights" / "resnet50_imagenet.npz"
    if not path.is_file():
        pytest.skip(f"the weights of ResNet-50 are not here ({path})")
    return path


@pytest.fixture
def no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without any weights, on a machine without torchvision."""
    for name in ("CYCLEBACK_WEIGHTS", "CYCLEBACK_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.setitem(sys.modules, "torchvision.models", None)
    return tmp_path
