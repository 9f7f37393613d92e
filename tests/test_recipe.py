import dataclasses
import inspect
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
import torch

from cycleback.config import build, to_toml
from cycleback.errors import ConfigError
from cycleback.models import BASES, EMBEDDERS, STREAMS
from cycleback.recipe import (
    Recipe,
    build_batches,
    build_encoder,
    build_loss,
    build_optimizer,
    load_recipe,
    recipe_names,
    recipe_toml,
    require_used,
)
from cycleback.recipe.build import LOSSES, SAMPLERS
from cycleback.recipe.files import METHODS, load_saved_recipe
from cycleback.recipe.sections import (
    ConvSettings,
    DataSettings,
    EncoderSettings,
    LossSettings,
    ResNet50Settings,
    TCNSettings,
)

SMALL = EncoderSettings(
    streams=("appearance",),
    base="small",
    embedder="conv",
    train_base="all",
    conv=ConvSettings(conv_channels=(8,), fc_channels=(8,), embedding_size=4),
)


def test_a_recipe_survives_its_own_file(tmp_path: Path) -> None:
    recipe = replace(Recipe(), encoder=SMALL, loss=LossSettings(weights={"tcc": 0.25}))
    (tmp_path / "recipe.toml").write_text(recipe_toml(recipe))
    assert load_recipe(tmp_path / "recipe.toml") == recipe


@pytest.mark.parametrize("name", recipe_names())
def test_every_shipped_recipe_builds(name: str) -> None:
    shared = ["encoder.resnet50.weights=''", "encoder.vector.in_features=6"]  # weights are tested elsewhere
    recipe = load_recipe(name, shared=shared)
    assert build_loss(recipe, num_phases=5).weights
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
    assert (encoder.base, encoder.resnet50.layer, encoder.conv.embedding_size) == (
        "resnet50",
        "layer3[2]",
        128,
    )
    conv = encoder.conv
    assert (conv.conv_channels, conv.fc_channels, conv.reduce_channels) == ((512, 512), (512, 512), 0)
    assert (conv.context_frames, conv.context_stride) == (2, 9)
    assert (tcc.variance_weight, tcc.variance_term, tcc.scaling, tcc.temperature) == (
        1e-3,
        "log_sigma",
        "none",
        1.0,
    )
    assert load_recipe("penn-action-finetuned-tcc").encoder.conv.context_stride == 15


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
    conv = SMALL.conv if embedder == "conv" else ConvSettings()
    section = EncoderSettings(streams=("appearance",), base=base, embedder=embedder, conv=conv)
    encoder = build_encoder(Recipe(encoder=section, data=DataSettings(frame_size=64))).eval()
    images = torch.rand(2, 3, encoder.context_frames, 3, 64, 64)
    with torch.inference_mode():
        embeddings = encoder(images)
    assert embeddings.shape == (2, 3, encoder.embedding_size)
    assert encoder.frame_size == (64, 64)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_every_loss_runs(name: str) -> None:
    loss = build_loss(Recipe(loss=LossSettings(weights={name: 1.0})), embedding_size=4, num_phases=3)
    embeddings = torch.rand(3, 6, 4, requires_grad=True)
    times = torch.linspace(0, 0.9, 6).expand(3, 6)
    phases = torch.arange(6).expand(3, 6) // 2
    frames = torch.arange(6).expand(3, 6)
    matches = frames.float().expand(3, 3, 6)
    inputs = {"times": times, "positives": torch.rand(3, 6, 4), "phases": phases}
    inputs |= {"positive_frames": frames + 2, "targets": torch.rand(3, 6, 4)}
    parts = loss.parts(embeddings, frames=frames, matches=matches, **inputs)
    parts.total.backward()
    assert torch.isfinite(embeddings.grad).all()
    assert set(parts.parts) == {name}


@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_every_sampler_draws_sorted_frames(name: str) -> None:
    sample = SAMPLERS[name](DataSettings(frames_per_video=5, stride=3))
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
            "loss.weights has no loss 'tccc'; known: match, tcc, stochastic_tcc, tcn, order, sal, supervised",
        ),
        ("loss.weights.order=-1", "loss.weights must be a table, each value a number from 0 to 1_000"),
        ("loss.weights={tcc=0}", "loss.weights must have a positive weight, got {'tcc': 0.0}"),
        ("optimizer.batch_size=1", "optimizer.batch_size must be a whole number from 2 to 10_000, got 1"),
        ("optimizer.accumulate=0", "optimizer.accumulate must be a whole number from 1 to 10_000, got 0"),
        ("run.ema_decay=1.0", "run.ema_decay must be a number from 0, below 1, got 1.0"),
        ("run.patience=3", "run.patience=3 counts held-out evaluations: set run.select_every as well"),
        ("encoder.streams=[]", "encoder.streams must name some of appearance, motion, pose, each once, got"),
        ('encoder.streams=["pose", "pose"]', "each once, got ['pose', 'pose']"),
        (
            'encoder.streams=["sound"]',
            "each one of 'appearance', 'motion'",
        ),
        ("encoder.embedder=conv", "needs feature maps: use 'mlp', or set encoder.streams"),
        ("encoder.base=resnet9", "encoder.base must be 'efficientnet_lite0', 'resnet50'"),
        ("optimizer.lerning_rate=1", "Did you mean 'optimizer.learning_rate'?"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_recipe(None, [override])
    assert message in str(error.value)


@pytest.mark.parametrize("source", [None, "fast"])
def test_one_weight_changes_alone_and_weights_given_whole_replace_all(source: str | None) -> None:
    known = load_recipe(source).loss.weights
    assert load_recipe(source, ["loss.weights.tcn=0"]).loss.weights == {**known, "tcn": 0.0}
    assert load_recipe(source, ["loss.weights={ sal = 1.0 }"]).loss.weights == {"sal": 1.0}
    assert set(build_loss(load_recipe(source, ["loss.weights={ tcn = 1 }"])).weights) == {"tcn"}


def test_short_videos_are_drawn_from_with_repeats_and_one_warning() -> None:
    recipe = replace(Recipe(), encoder=SMALL, data=DataSettings(frames_per_video=12))
    recipe = replace(recipe, loss=LossSettings(weights={"tcc": 1.0}))
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
    with pytest.raises(ConfigError, match=r"base_factor must be a number above 0, at most 1_000, got 0"):
        load_recipe("fast-scratch", ["optimizer.base_factor=0"])


@pytest.mark.parametrize(
    ("recipe", "override", "message"),
    [
        (
            "fast-gpu-scratch",
            "encoder.resnet50.layer=layer2",
            "encoder.resnet50.layer does nothing with encoder.base = 'vggm'. "
            "Remove it, or set encoder.base='resnet50'.",
        ),
        ("fast", "encoder.gru.hidden_size=4", "with encoder.embedder = 'conv'. Remove it, or set"),
        ("fast", "encoder.train_from=blocks.3", "with encoder.train_base = 'frozen'"),
        ("fast", "optimizer.base_factor=0.5", "or set encoder.train_base='all'"),
        (
            "fast",
            'encoder.streams=["motion"]',
            "use 'mlp', or set encoder.streams=[\"appearance\"], got ['motion']",
        ),
        ("poses", 'encoder.streams=["motion"]', "encoder.streams does nothing with encoder.base = 'vector'"),
        ("fast", "augment.flip=0", "augment.flip does nothing with encoder.train_base = 'frozen'"),
        ("poses", "augment.enabled=false", "augment.enabled does nothing with encoder.base = 'vector'"),
        (
            "poses",
            "data.frame_size=64",
            "does nothing with encoder.base = 'vector'. Remove it.",
        ),
        ("fast", "optimizer.momentum=0.5", "or set optimizer.name='sgd'"),
        ("fast", "optimizer.step_factor=0.5", "or set optimizer.schedule='step'"),
        ("fast", "data.stride=4", "or set data.sampler='strided'"),
        ("fast", "loss.tcc.huber_delta=1", "or set loss.tcc.kind='huber'"),
        (
            "pouring-finetuned-tcc",
            "loss.tcn.temperature=2",
            "with loss.weights = {'tcc': 1.0}. Remove it",
        ),
        ("pouring-finetuned-tcc", "loss.tcn={ l2_weight = 1 }", "loss.tcn.l2_weight does nothing"),
        ("fast", "encoder.block=4", "encoder.block is now encoder.efficientnet_lite0.block"),
        ("poses", "encoder.context_frames=4", "encoder.context_frames is now encoder.mlp.context_frames"),
        ("fast", "run.record=false", "run.record is now run.cuda_graph"),
    ],
)
def test_a_setting_without_effect_is_refused(recipe: str, override: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_recipe(recipe, [override])
    assert message in str(error.value)


def test_a_setting_without_effect_in_the_user_s_file_is_refused_and_an_inherited_one_dropped(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('extends = "paper"\n[encoder]\nbase = "vggm"\n')
    assert load_recipe(path).encoder.resnet50 == ResNet50Settings()
    path.write_text('extends = "paper"\n[encoder]\nbase = "vggm"\n[encoder.resnet50]\nlayer = "layer2"\n')
    with pytest.raises(ConfigError, match=r"encoder\.resnet50\.layer does nothing with .*= 'vggm'"):
        load_recipe(path)
    assert load_recipe(path, ["encoder.base=resnet50"]).encoder.resnet50.layer == "layer2"


def test_an_override_may_disable_settings_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(recipe_toml(load_recipe("fast")))
    recipe = load_recipe(tmp_path / "recipe.toml", ["loss.weights={ sal = 1.0 }"])
    assert recipe.loss.tcn == TCNSettings()


def test_python_refuses_settings_without_effect_as_well() -> None:
    with pytest.raises(ValueError, match=r"loss\.tcn\.temperature does nothing with loss\.weights"):
        Recipe(loss=LossSettings(weights={"tcc": 1.0}, tcn=TCNSettings(temperature=2.0)))


def test_a_shared_override_must_have_an_effect_in_one_recipe() -> None:
    shared = ["loss.sal.shuffled_fraction=0.5"]
    recipes = [load_recipe(f"reference-{row}", shared=shared) for row in ("tcc", "sal")]
    assert recipes[1].loss.sal.shuffled_fraction == 0.5
    require_used(shared, recipes)
    with pytest.raises(ConfigError, match=r"loss\.sal\.shuffled_fraction does nothing"):
        require_used(shared, recipes[:1])


@pytest.mark.parametrize("name", [*BASES, *EMBEDDERS])
def test_a_section_of_the_encoder_has_the_keywords_of_its_class(name: str) -> None:
    internal = {"in_channels", "pretrained", "blueprint", "mean", "std", "width", "feature_map_size"}
    keywords = set(inspect.signature({**BASES, **EMBEDDERS}[name]).parameters) - internal
    assert set(EncoderSettings().options(name)) == keywords


def test_derived_recipes_hold_what_the_paper_says() -> None:
    classification = load_recipe("pouring-ablation-classification")
    assert (classification.loss.tcc.kind, classification.encoder.conv.context_stride) == ("classification", 9)
    scratch = load_recipe("penn-action-scratch-sal")
    assert (scratch.encoder.base, scratch.loss.weights) == ("vggm", {"sal": 1.0})
    assert load_recipe("pouring-finetuned-tcc-tcn-25").loss.weights == {"tcc": 0.25, "tcn": 0.75}
    reference = load_recipe("reference-tcc-sal-tcn")
    assert reference.loss.weights == {"tcc": 0.33, "sal": 0.33, "tcn": 0.34}
    assert (reference.encoder.train_base, reference.optimizer.batch_size) == ("bn", 2)
    assert len(recipe_names()) == 54 + len(METHODS)


def test_all_old_keys_of_a_file_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "old.toml"
    path.write_text('[encoder]\nembedder = "conv"\nblock = 10\ndropout = 0.1\n[run]\nrecord = true\n')
    with pytest.raises(ConfigError) as error:
        load_recipe(path)
    assert str(error.value) == (
        f"{path}: encoder.block is now encoder.efficientnet_lite0.block, "
        "encoder.dropout is now encoder.conv.dropout, run.record is now run.cuda_graph"
    )


def test_settings_of_the_base_do_nothing_without_appearance() -> None:
    streams = 'encoder.streams=["pose", "motion"]'
    recipe = load_recipe(None, [streams])
    assert recipe.encoder.streams == ("motion", "pose")
    assert "base" not in tomllib.loads(recipe_toml(recipe))["encoder"]
    message = r"encoder\.base does nothing with encoder\.streams = \['pose', 'motion'\]\. Remove it, or add"
    with pytest.raises(ConfigError, match=message):
        load_recipe(None, [streams, "encoder.base=resnet50"])


def test_named_recipes_see_appearance_alone_and_the_default_sees_all_streams() -> None:
    assert Recipe().encoder.streams == STREAMS
    for name in set(recipe_names()) - set(METHODS):
        encoder = load_recipe(name).encoder
        expected = {"poses": "mlp", "neighbours": "mlp", "demo": "transformer"}.get(name, "conv")
        assert encoder.embedder == expected
        assert encoder.embedder != "conv" or encoder.streams == ("appearance",)


def test_a_saved_recipe_without_streams_is_of_a_version_that_saw_appearance_alone(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text('[encoder]\nbase = "small"\n[encoder.conv]\ncontext_stride = 9\n')
    older = load_saved_recipe(path).encoder
    assert (older.streams, older.embedder, older.conv.context_stride) == (("appearance",), "conv", 9)
    path.write_text('[encoder]\nembedder = "mlp"\n')
    assert load_saved_recipe(path).encoder.embedder == "mlp"
    for recipe in (Recipe(), load_recipe("poses"), load_recipe("fast-gpu")):
        path.write_text(recipe_toml(recipe))
        assert load_saved_recipe(path) == recipe


def settings_with_hints(cls: type = Recipe, section: str = "") -> Iterator[tuple[str, Any]]:
    for name, hint in get_type_hints(cls, include_extras=True).items():
        if dataclasses.is_dataclass(hint):
            yield from settings_with_hints(hint, f"{section}{name}.")
        else:
            yield section + name, hint


def wrong_values(hint: Any) -> list[Any]:
    """Values that a setting of this type must refuse: out of range, not a number, huge, of another type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        low, high = arguments[1].low, arguments[1].high
        ends = [low] * (not arguments[1].has_low) + [high] * (not arguments[1].has_high)
        outside = [low - 1, high + 1, math.nextafter(low, -math.inf), math.nextafter(high, math.inf), *ends]
        kind = arguments[0]
        return [*(kind(value) if value == int(value) else value for value in outside), *wrong_values(kind)]
    if origin is tuple:
        return [[value] * 2 for value in wrong_values(arguments[0])] + [[1] * 1000, 1, "x", True, {}]
    if origin in (dict, Mapping):
        return [{"tcc": value} for value in wrong_values(arguments[1])] + [[], "x", 3, {}]
    numbers = [math.nan, math.inf, -math.inf, 10**400, -(10**400)]
    if hint is str:
        return [1, 0.5, True, [], {}, "two\nlines", "\udcff", "\0"]
    if hint is bool:
        return [1, 0, "true", [], {}, *numbers]
    return [*numbers, True, "x", [], {}, [1]]


@pytest.mark.parametrize(("key", "hint"), list(settings_with_hints()))
def test_every_setting_refuses_what_is_out_of_its_range(key: str, hint: Any) -> None:
    *sections, name = key.split(".")
    for wrong in wrong_values(hint):
        values: Any = {name: wrong}
        for section in reversed(sections):
            values = {section: values}
        with pytest.raises(ConfigError) as caught:
            build(Recipe, values, source="mine")
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 300
        assert key in str(caught.value) or get_origin(hint) in (dict, Mapping)


@pytest.mark.parametrize("name", recipe_names())
def test_every_number_has_a_range_and_recipes_keep_to_it(name: str) -> None:
    recipe = load_recipe(name)
    assert build(Recipe, tomllib.loads(to_toml(recipe)), source=name) == recipe
    for key, hint in settings_with_hints():
        bare = [each for each in (hint, *get_args(hint)) if each in (int, float)]
        assert get_origin(hint) is Annotated or not bare, f"{key} has no range"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "encoder.transformer.dropout=2",
            "encoder.transformer.dropout must be a number from 0, below 1, got 2",
        ),
        ("run.save_every=0", "run.save_every must be a whole number from 1 to 1_000_000_000, got 0"),
        ("data.held_out=2", "data.held_out must be a number from 0, below 1, got 2"),
        ("loss.tcc.temperature=nan", "loss.tcc.temperature must be a number above 0, at most 1_000, got nan"),
        ("encoder.transformer.fc_channels=[-3]", "each a whole number from 1 to 65_536, got [-3]"),
        ("run.seed=" + "9" * 5000, "run.seed must be a whole number from 0 to 9_223_372_036_854_775_807"),
        ("data.frame_size=" + "[" * 9000, "data.frame_size must be a whole number"),
    ],
)
def test_a_value_out_of_range_names_setting_range_and_value(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_recipe(None, [override])
    assert message in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["extends = 5", "loss = 3", "encoder = 3", "extends = 'fast'\nloss = 3"])
def test_a_file_of_the_wrong_shape_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ConfigError):
        load_recipe(tmp_path / "mine.toml")
    with pytest.raises(ConfigError):
        load_saved_recipe(tmp_path / "mine.toml")
