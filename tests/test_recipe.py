from dataclasses import replace
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
    build_batches,
    build_encoder,
    build_loss,
    build_optimizer,
    load_recipe,
    recipe_names,
    recipe_toml,
)

SMALL = EncoderSection(base="small", train_base="all", conv_channels=(8,), fc_channels=(8,), embedding_size=4)


def test_a_recipe_survives_its_own_file(tmp_path: Path) -> None:
    recipe = replace(Recipe(), encoder=SMALL, loss=LossSection(weights={"tcc": 0.25}))
    (tmp_path / "recipe.toml").write_text(recipe_toml(recipe))
    assert load_config(Recipe, tmp_path / "recipe.toml") == recipe


@pytest.mark.parametrize("name", recipe_names())
def test_every_shipped_recipe_builds(name: str) -> None:
    recipe = load_recipe(
        name, ["encoder.weights=''", "encoder.in_features=6"]
    )  # weights are tested elsewhere
    assert build_loss(recipe, num_phases=5).needs
    assert sum(parameter.requires_grad for parameter in build_encoder(recipe).parameters()) > 0


def test_every_row_of_the_paper_s_tables_has_a_recipe() -> None:
    rows = {"scratch": ("supervised", "sal", "tcn", "tcc")}
    rows["finetuned"] = (*rows["scratch"], "tcc-sal", "tcc-tcn")
    wanted = {
        f"{data}-{how}-{row}" for data in ("pouring", "penn-action") for how in rows for row in rows[how]
    }
    wanted |= {f"pouring-ablation-{kind}" for kind in ("mse", "classification", "regression")}
    assert wanted <= set(recipe_names())


def test_the_paper_s_hyperparameters_are_exact() -> None:
    recipe = load_recipe("pouring-finetuned-tcc")
    optimizer, encoder, tcc = recipe.optimizer, recipe.encoder, recipe.loss.tcc
    assert (optimizer.name, optimizer.batch_size, optimizer.learning_rate) == ("adam", 4, 1e-4)
    assert (optimizer.weight_decay, optimizer.schedule) == (1e-5, "constant")
    assert (recipe.data.frame_size, recipe.data.frames_per_video) == (224, 20)
    assert (encoder.base, encoder.layer, encoder.embedding_size) == ("resnet50", "layer3[2]", 128)
    assert (encoder.conv_channels, encoder.fc_channels, encoder.reduce_channels) == (
        (512, 512),
        (512, 512),
        0,
    )
    assert (encoder.context_frames, encoder.context_stride) == (2, 9)
    assert (tcc.variance_weight, tcc.variance_term, tcc.scaling, tcc.temperature) == (
        1e-3,
        "log_sigma",
        "none",
        1.0,
    )
    assert load_recipe("penn-action-finetuned-tcc").encoder.context_stride == 15


def test_a_recipe_that_extends_another_replaces_its_loss(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('extends = "paper"\n[loss]\nweights = { sal = 1.0 }\n')
    recipe = load_recipe(tmp_path / "mine.toml")
    assert recipe.loss.weights == {"sal": 1.0}
    assert recipe.data.frame_size == 224


def test_recipes_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('extends = "b.toml"\n')
    (tmp_path / "b.toml").write_text('extends = "a.toml"\n')
    with pytest.raises(ConfigError, match=r"extends itself: a\.toml -> b\.toml -> a\.toml"):
        load_recipe(tmp_path / "a.toml")


def test_an_unknown_recipe_gets_a_guess() -> None:
    with pytest.raises(ConfigError, match=r"no recipe 'pouring-tcc'\. Did you mean .*pouring-"):
        load_recipe("pouring-tcc")


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
    loss = build_loss(Recipe(loss=LossSection(weights={name: 1.0})), embedding_size=4, num_phases=3)
    embeddings = torch.rand(3, 6, 4, requires_grad=True)
    times = torch.linspace(0, 0.9, 6).expand(3, 6)
    phases = torch.arange(6).expand(3, 6) // 2
    parts = loss.parts(embeddings, times=times, positives=torch.rand(3, 6, 4), phases=phases)
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
        (
            "loss.weights.tccc=1",
            "loss.weights has no loss 'tccc'; known: tcc, stochastic_tcc, tcn, order, sal, supervised",
        ),
        ("loss.weights.order=-1", "loss.weights.order must not be negative, got -1"),
        ("loss.weights={tcc=0}", "loss.weights must have a positive weight, got {'tcc': 0.0}"),
        ("optimizer.batch_size=1", "optimizer.batch_size must be at least 2 (cycles need two videos), got 1"),
        ("optimizer.accumulate=0", "optimizer.accumulate must be at least 1, got 0"),
        ("run.ema_decay=1.0", "run.ema_decay must be at least 0 and below 1, got 1.0"),
        ("run.patience=3", "run.patience=3 counts looks: set run.select_every as well"),
        ("encoder.base=resnet9", "encoder.base must be one of"),
        ("optimizer.lerning_rate=1", "Did you mean 'optimizer.learning_rate'?"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_recipe(None, [override])
    assert message in str(error.value)


@pytest.mark.parametrize("source", [None, "fast"])
def test_one_weight_changes_alone_and_weights_given_whole_replace_all(source: str | None) -> None:
    assert load_recipe(source, ["loss.weights.tcn=0"]).loss.weights == {"tcc": 1.0, "tcn": 0.0}
    assert load_recipe(source, ["loss.weights={ sal = 1.0 }"]).loss.weights == {"sal": 1.0}
    assert set(build_loss(load_recipe(source, ["loss.weights={ tcn = 1 }"])).weights) == {"tcn"}


def test_short_videos_are_drawn_from_with_repeats_and_one_warning() -> None:
    recipe = replace(Recipe(), encoder=SMALL, data=DataSection(frames_per_video=12))
    videos = [torch.zeros(length, 8, 2, 2) for length in (30, 9, 7, 20)]
    with pytest.warns(UserWarning, match=r"2 of 4 videos have fewer than .*=12 frames \(the shortest 7\)"):
        batches = build_batches(recipe, videos, [""] * 4, encoder=build_encoder(recipe))
    assert batches(0).times.shape == (4, 12)


def test_the_base_may_have_a_learning_rate_of_its_own() -> None:
    recipe = load_recipe("fast-scratch", ["optimizer.base_factor=0.1", "optimizer.learning_rate=1e-2"])
    encoder = build_encoder(recipe)
    quick, slow = build_optimizer(recipe, encoder, build_loss(recipe)).param_groups
    assert (quick["lr"], slow["lr"]) == pytest.approx((1e-2, 1e-3))
    assert {id(p) for p in slow["params"]} == {id(p) for p in encoder.base.parameters()}


def test_a_base_that_must_not_move_is_frozen_not_slowed_to_nothing() -> None:
    with pytest.raises(ConfigError, match=r"base_factor must be above 0, got 0; .*train_base='frozen'"):
        load_recipe("fast", ["optimizer.base_factor=0"])
