import dataclasses
from pathlib import Path

import pytest

from cycleback.comparison import Comparison
from cycleback.comparison.snapshots import load_snapshots, snapshot_steps, with_saves
from cycleback.models import fingerprint
from cycleback.recipe import Recipe
from cycleback.runs import Watcher, load_encoder, train
from cycleback.runs.folder import saved_recipe


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
    assert with_saves(recipe).run.save_every == 100
    short = dataclasses.replace(recipe, optimizer=dataclasses.replace(recipe.optimizer, num_updates=50))
    assert with_saves(short).run.save_every == 5
    assert dataclasses.replace(with_saves(short), run=short.run) == short


def test_a_snapshot_is_the_encoder_after_that_many_updates(
    made: Comparison, videos: Path, frame_cache: Path, tmp_path: Path
) -> None:
    kept = load_snapshots(made.output / "snapshots" / "tcc")
    assert list(kept) == [1, 2]
    seen: list[str] = []

    class Stop(Exception):
        pass

    def stop(report) -> None:
        if report.step == 3:
            seen.append(fingerprint(load_encoder(tmp_path / "run")))
            raise Stop

    recipe = saved_recipe(made.output / "runs" / "tcc")
    with pytest.raises(Stop):
        train(videos, tmp_path / "run", recipe=recipe, cache=frame_cache, watcher=Watcher(on_step=stop))
    assert seen == [fingerprint(kept[2])]
