from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
import torch

from cycleback.config import load_config
from cycleback.errors import ConfigError
from cycleback.recipe import (
    LOSSES,
    SAMPLERS,
    DataSection,
    EncoderSection,
    LossSection,
    Recipe,
    build_encoder,
    build_loss,
    build_optimizer,
    load_recipe,
    recipe_toml,
)

SMALL = EncoderSection(base="small", train_base="all", conv_channels=(8,), fc_channels=(8,), embedding_size=4)
RECIPES = sorted(
    path.name for path in files("cycleback").joinpath("recipes").iterdir() if path.name.endswith(".toml")
)


def test_a_recipe_survives_its_own_file(tmp_path: Path) -> None:
    recipe = replace(Recipe(), encoder=SMALL, loss=LossSection(weights={"tcc": 0.25}))
    (tmp_path / "recipe.toml").write_text(recipe_toml(recipe))
    assert load_config(Recipe, tmp_path / "recipe.toml") == recipe


@pytest.mark.parametrize("name", RECIPES)
def test_every_shipped_recipe_builds(name: str) -> None:
    recipe = load_recipe(Path(str(files("cycleback").joinpath("recipes", name))))
    build_loss(recipe)
    assert sum(parameter.requires_grad for parameter in build_encoder(recipe).parameters()) > 0


@pytest.mark.parametrize("base", ["efficientnet_lite0", "vggm", "small"])
@pytest.mark.parametrize("embedder", ["conv", "pooled"])
def test_every_base_and_embedder_runs(base: str, embedder: str) -> None:
    section = replace(SMALL, base=base, embedder=embedder, train_base="frozen")
    encoder = build_encoder(Recipe(encoder=section, data=DataSection(frame_size=64))).eval()
    images = torch.rand(2, 3, encoder.context_frames, 3, 64, 64)
    with torch.inference_mode():
        embeddings = encoder(images)
    assert embeddings.shape == (2, 3, encoder.embedding_size)
    assert encoder.frame_size == (64, 64)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_every_loss_runs(name: str) -> None:
    loss = build_loss(Recipe(loss=LossSection(weights={name: 1.0})))
    embeddings = torch.rand(3, 6, 4, requires_grad=True)
    times = torch.linspace(0, 0.9, 6).expand(3, 6)
    parts = loss.parts(embeddings, times=times, positives=torch.rand(3, 6, 4))
    parts.total.backward()
    assert torch.isfinite(embeddings.grad).all()
    assert set(parts.parts) == {name}


@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_every_sampler_draws_sorted_frames(name: str) -> None:
    sample = SAMPLERS[name](DataSection(frames_per_video=5, stride=3))
    indices = sample(40, generator=torch.Generator().manual_seed(0))
    assert indices.shape == (5,)
    assert (indices.diff() > 0).all()


def test_only_what_trains_is_optimised() -> None:
    recipe = Recipe(encoder=replace(SMALL, train_base="frozen"))
    encoder = build_encoder(recipe)
    optimised = {id(p) for group in build_optimizer(recipe, encoder).param_groups for p in group["params"]}
    assert optimised == {id(p) for p in encoder.embedder.parameters()}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("loss.weights.tccc=1", "loss.weights has no loss 'tccc'; known: tcc, tcn"),
        ("loss.weights={tcc=0}", "loss.weights must have a positive weight, got {'tcc': 0.0}"),
        ("optimizer.batch_size=1", "optimizer.batch_size must be at least 2 (cycles need two videos), got 1"),
        ("encoder.base=resnet9", "encoder.base must be one of"),
        ("optimizer.lerning_rate=1", "Did you mean 'optimizer.learning_rate'?"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_recipe(None, [override])
    assert message in str(error.value)
