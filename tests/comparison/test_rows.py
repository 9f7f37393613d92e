import dataclasses

import pytest

from cycleback.comparison.rows import save_often, snapshot_steps
from cycleback.recipe import Recipe


@pytest.mark.parametrize(
    ("num_updates", "save_every", "steps"),
    [(1000, 100, (100, 300)), (300, 30, (30, 90)), (8, 1, (1, 2)), (1000, 64, (128, 320)), (1, 1, ())],
)
def test_snapshots_are_saves_at_or_after_a_tenth_and_three_tenths(
    num_updates: int, save_every: int, steps: tuple[int, ...]
) -> None:
    assert snapshot_steps(num_updates, save_every) == steps


def test_a_recipe_saves_at_least_ten_times_and_never_less_than_it_said() -> None:
    recipe = Recipe()
    assert save_often(recipe).run.save_every == 100
    short = dataclasses.replace(recipe, optimizer=dataclasses.replace(recipe.optimizer, num_updates=50))
    assert save_often(short).run.save_every == 5
    assert dataclasses.replace(save_often(short), run=short.run) == short
