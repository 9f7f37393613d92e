import itertools
import math

import pytest

from cycleback.comparison.methods import PARTS, method_recipe, parse_method, parse_methods
from cycleback.errors import ConfigError
from cycleback.recipe.build import LOSSES


def recipe_of(name: str, *overrides: str):
    (method, *_) = parse_methods([name])
    return method_recipe(method, recipe="fast", overrides=overrides, seed=3)


def test_the_baselines_are_there_without_being_asked_for() -> None:
    rows = ["tcc", "time-only", "untrained", "frozen", "streams"]
    assert [method.name for method in parse_methods(["tcc"])] == rows
    assert [method.name for method in parse_methods(["time-only", " tcc", "tcc", ""])] == rows


def test_every_loss_of_the_recipes_is_part_of_a_method() -> None:
    assert {part.loss for part in PARTS.values()} == set(LOSSES)


def legal_methods() -> list[str]:
    """Sums of different losses: of a kind of TCC or none, with none, one, two or all of the others."""
    single = [name for name, part in PARTS.items() if part.loss != "tcc"]
    sums = [rest for size in (0, 1, 2, len(single)) for rest in itertools.combinations(single, size)]
    kinds = [(), *((name,) for name, part in PARTS.items() if part.loss == "tcc")]
    return ["+".join((*kind, *rest)) for kind in kinds for rest in sums if kind or rest]


def test_every_legal_combination_of_losses_is_parsed_and_titled() -> None:
    names = legal_methods()
    others = len(PARTS) - 3
    assert len(names) == 4 * (1 + others + math.comb(others, 2) + 1) - 1
    titles = [parse_method(name).title for name in names]
    assert len(set(titles)) == len(names)
    assert all(parse_method(name).is_trained for name in names)
    for name in ("tcc+order", "tcc-mse+tcc-stochastic+tcn+order+sal+supervised"):
        assert dict(recipe_of(name).loss.weights) == dict(parse_method(name).weights)


def test_every_loss_has_its_weight() -> None:
    recipe = recipe_of("tcc+sal+order", "optimizer.num_updates=7")
    assert dict(recipe.loss.weights) == {"tcc": 1.0, "sal": 1.0, "order": 0.3}
    assert recipe.run.seed == 3
    assert recipe.optimizer.num_updates == 7
    assert dict(recipe_of("tcc-stochastic").loss.weights) == {"stochastic_tcc": 1.0}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("time", "time-only"),
        ("random", "untrained"),
        ("imagenet", "frozen"),
        ("stochastic_tcc", "tcc-stochastic"),
    ],
)
def test_old_names_are_refused_with_the_new_one(old: str, new: str) -> None:
    with pytest.raises(ConfigError, match=f"^method '{old}' is called '{new}'$"):
        parse_methods(["tcc", old])


@pytest.mark.parametrize(("name", "kind"), [("tcc-mse", "mse"), ("tcc-classification+tcn", "classification")])
def test_variants_of_the_cycle_loss_set_its_kind(name: str, kind: str) -> None:
    assert recipe_of(name).loss.tcc.kind == kind
    assert recipe_of(name).loss.weights["tcc"] == 1.0


def test_an_unknown_method_is_refused_with_a_guess() -> None:
    with pytest.raises(ConfigError, match=r"no method 'superviced'\. Did you mean 'supervised'\?"):
        parse_methods(["tcc+superviced"])
    known = "match, tcc, tcc-classification, tcc-mse"
    with pytest.raises(ConfigError, match=rf"no method 'xyz'\. Known: {known}"):
        parse_methods(["xyz"])


def test_one_loss_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'tcc\+tcc-mse' names one loss twice"):
        parse_methods(["tcc+tcc-mse"])


@pytest.mark.parametrize(("override", "way"), [("loss.weights.tcn=0", "--methods"), ("run.seed=1", "--seed")])
def test_what_the_rows_set_themselves_cannot_be_overridden(override: str, way: str) -> None:
    with pytest.raises(ConfigError, match=f"is set by {way}"):
        recipe_of("tcc", override)
