import pytest

from cycleback.comparison.methods import method_recipe, parse_methods
from cycleback.errors import ConfigError


def recipe_of(name: str, *overrides: str):
    (method, *_) = parse_methods([name])
    return method_recipe(method, recipe="fast", overrides=overrides, seed=3)


def test_the_baselines_are_there_without_being_asked_for() -> None:
    assert [method.name for method in parse_methods(["tcc"])] == ["tcc", "imagenet", "random", "time"]
    assert [method.name for method in parse_methods(["time", "tcc", "tcc"])] == [
        *("tcc", "imagenet", "random", "time")
    ]


def test_every_loss_of_a_sum_has_weight_one() -> None:
    recipe = recipe_of("tcc+sal", "optimizer.num_updates=7")
    assert dict(recipe.loss.weights) == {"tcc": 1.0, "sal": 1.0}
    assert recipe.run.seed == 3
    assert recipe.optimizer.num_updates == 7


@pytest.mark.parametrize(("name", "kind"), [("tcc-mse", "mse"), ("tcc-classification+tcn", "classification")])
def test_variants_of_the_cycle_loss_set_its_kind(name: str, kind: str) -> None:
    assert recipe_of(name).loss.tcc.kind == kind
    assert recipe_of(name).loss.weights["tcc"] == 1.0


def test_an_unknown_method_is_refused_with_a_guess() -> None:
    with pytest.raises(ConfigError, match=r"no method 'superviced'\. Did you mean 'supervised'\?"):
        parse_methods(["tcc+superviced"])
    with pytest.raises(ConfigError, match=r"no method 'xyz'\. Known: tcc, stochastic_tcc, tcn"):
        parse_methods(["xyz"])


def test_one_loss_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'tcc\+tcc-mse' names one loss twice"):
        parse_methods(["tcc+tcc-mse"])


@pytest.mark.parametrize(("override", "way"), [("loss.weights.tcn=0", "--methods"), ("run.seed=1", "--seed")])
def test_what_the_rows_set_themselves_cannot_be_overridden(override: str, way: str) -> None:
    with pytest.raises(ConfigError, match=f"is set by {way}"):
        recipe_of("tcc", override)
