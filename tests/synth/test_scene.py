from dataclasses import asdict

import numpy as np
import pytest

from cycleback.synth import LEVELS, Take, plan_take
from cycleback.synth.palette import contrast
from cycleback.synth.scene import sample_scene


def test_the_same_generator_state_draws_the_same_scene() -> None:
    scenes = [sample_scene(np.random.default_rng(3), LEVELS["hard"]) for _ in range(2)]
    assert scenes[0] == scenes[1]


def test_every_drawn_number_is_within_its_range(takes: list[Take]) -> None:
    for take in takes:
        level, scene = LEVELS[take.level], take.scene
        for value, (low, high) in (
            (scene.bottle.height, level.bottle_height),
            (scene.glass.height, level.glass_height),
            (scene.liquid.glass_final, level.glass_final),
            (scene.camera.zoom, level.zoom),
            (scene.light.brightness, level.brightness),
            (len(scene.surroundings.props), level.distractors),
        ):
            assert low <= value <= high


def test_hard_scenes_use_both_sides_and_many_kinds() -> None:
    scenes = [plan_take(seed, level="hard").scene for seed in range(60)]
    assert {scene.camera.mirrored for scene in scenes} == {True, False}
    assert len({scene.bottle.kind for scene in scenes}) == 6
    assert len({scene.glass.kind for scene in scenes}) == 6
    assert len({scene.liquid.name for scene in scenes}) == 10
    assert len({scene.surroundings.wall_pattern for scene in scenes}) >= 7
    assert {scene.surroundings.mover is None for scene in scenes} == {True, False}


def test_easy_scenes_are_calm() -> None:
    easy, hard = ([plan_take(seed, level=level).scene for seed in range(30)] for level in ("easy", "hard"))
    assert max(scene.camera.shake for scene in easy) <= min(scene.camera.shake for scene in hard)
    assert all(scene.surroundings.mover is None for scene in easy)


def test_hand_and_liquid_mostly_stand_out_from_the_wall(takes: list[Take]) -> None:
    distances = [
        contrast(take.scene.surroundings.wall, colour)
        for take in takes
        for colour in (take.scene.hand.colour, take.scene.liquid.colour)
    ]
    assert np.mean(np.array(distances) > 60) > 0.9


def test_parameters_are_plain_numbers_and_names() -> None:
    def leaves(value: object) -> list[object]:
        parts = value.values() if isinstance(value, dict) else value
        return (
            [value]
            if not isinstance(value, dict | tuple)
            else [leaf for part in parts for leaf in leaves(part)]
        )

    kinds = {type(leaf) for leaf in leaves(asdict(plan_take(0, level="hard").scene))}
    assert kinds <= {int, float, str, bool, type(None)}


@pytest.mark.parametrize("level", LEVELS)
def test_a_pour_never_empties_the_bottle(level: str) -> None:
    for seed in range(60):
        liquid = plan_take(seed, level=level).scene.liquid
        assert 0.1 < liquid.bottle_end < liquid.bottle_start < 1
        assert liquid.glass_final - liquid.glass_start > 0.3
