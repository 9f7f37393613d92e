"""Runs with random weights, exported once for all tests."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from torch import nn

from cycleback.export import export_onnx
from cycleback.files import write_text
from cycleback.models import Encoder, save_encoder
from cycleback.recipe import Recipe, build_encoder, load_recipe, recipe_toml
from moving_clips import make_clips

MakeRun = Callable[..., Path]


def scatter(encoder: Encoder) -> None:
    """Give every BatchNorm statistics that folding must not lose."""
    torch.manual_seed(3)
    for module in encoder.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d) and module.affine:
            for tensor, low in ((module.running_var, 0.5), (module.running_mean, -0.2)):
                assert tensor is not None
                nn.init.uniform_(tensor, low, low + 1)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.2, 0.2)


@pytest.fixture(scope="session")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> MakeRun:
    """Make a run folder of a recipe's overrides, with weights that nobody trained."""

    def make(*overrides: str) -> Path:
        folder = tmp_path_factory.mktemp("runs") / "run"
        recipe: Recipe = load_recipe("appearance", overrides)
        folder.mkdir()
        write_text(folder / "recipe.toml", recipe_toml(recipe))
        encoder = build_encoder(recipe).eval()
        scatter(encoder)
        save_encoder(folder, encoder, asdict(recipe.encoder))
        return folder

    return make


@pytest.fixture(scope="session")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_clips(tmp_path_factory.mktemp("clips"))


@pytest.fixture(scope="session")
def conv_run(make_run: MakeRun) -> Path:
    """A base that is trained, and the paper's embedder over three context frames."""
    return make_run(
        "data.frame_size=48",
        "encoder.base=small",
        "encoder.train_base=all",
        "encoder.embedder=conv",
        "encoder.conv.conv_channels=[8,8]",
        "encoder.conv.fc_channels=[16]",
        "encoder.conv.reduce_channels=12",
        "encoder.conv.context_frames=3",
        "encoder.conv.context_stride=5",
    )


@pytest.fixture(scope="session")
def conv_model(conv_run: Path, clips: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "conv.onnx"
    export_onnx(conv_run, folder, videos=clips)
    return folder
