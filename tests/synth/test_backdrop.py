from dataclasses import replace

import numpy as np
import pytest

from cycleback.synth import plan_take
from cycleback.synth.backdrop import (
    TABLE_FIELDS,
    WALL_FIELDS,
    Pattern,
    draw_backdrop,
    smooth_noise,
    world_grid,
)
from cycleback.synth.drawing import project, view_matrix
from cycleback.synth.scene import TABLE_PATTERNS, WALL_PATTERNS

SCENE = plan_take(2).scene


def test_the_world_grid_is_the_inverse_of_the_view() -> None:
    view = view_matrix(plan_take(3, level="hard").scene.camera, 40)
    x, y = world_grid(view, 40)
    pixels = project(view, np.stack([x, y], axis=-1).reshape(-1, 2).astype(np.float64))
    columns, rows = np.meshgrid(np.arange(40) + 0.5, np.arange(40) + 0.5)
    np.testing.assert_allclose(pixels, np.stack([columns, rows], axis=-1).reshape(-1, 2), atol=1e-3)


@pytest.mark.parametrize("pattern", ["plain", "bricks", "window"])
def test_the_wall_is_above_the_table(pattern: str) -> None:
    around = replace(SCENE.surroundings, wall=(0, 0, 200), wall_second=(0, 0, 240), table=(200, 0, 0))
    scene = replace(SCENE, surroundings=replace(around, table_second=(240, 0, 0), wall_pattern=pattern))
    picture = np.asarray(draw_backdrop(scene, view_matrix(scene.camera, 64), pixels=64)).astype(int)
    assert (picture[:20, :, 2] > picture[:20, :, 0] + 50).all()
    assert (picture[-16:, :, 0] > picture[-16:, :, 2]).all()


def test_a_backdrop_is_always_the_same() -> None:
    view = view_matrix(SCENE.camera, 64)
    pictures = [np.asarray(draw_backdrop(SCENE, view, pixels=64)) for _ in range(2)]
    np.testing.assert_array_equal(*pictures)


ALL = WALL_FIELDS | TABLE_FIELDS
X, Y = np.meshgrid(np.linspace(-0.5, 0.5, 90, dtype=np.float32), np.linspace(-0.2, 0.8, 80, dtype=np.float32))


@pytest.mark.parametrize("pattern", ALL.values(), ids=list(ALL))
def test_a_pattern_is_a_field_between_0_and_1(pattern: Pattern) -> None:
    field = pattern(X, Y, np.random.default_rng(0))
    assert field.shape == X.shape
    assert field.min() >= -1e-6 and field.max() <= 1 + 1e-6
    assert field.std() > 0.01


def test_every_pattern_that_can_be_drawn_by_lot_exists() -> None:
    assert set(WALL_PATTERNS) | {"plain"} == set(WALL_FIELDS)
    assert set(TABLE_PATTERNS) | {"plain"} == set(TABLE_FIELDS)


def test_smooth_noise_goes_through_its_grid_without_leaving_its_range() -> None:
    fine = smooth_noise(np.zeros((61, 41), np.float32), np.random.default_rng(1), cells=(4, 3))
    coarse = np.random.default_rng(1).random((4, 3), dtype=np.float32)
    np.testing.assert_allclose(fine[::20, ::20], coarse, atol=1e-6)
    assert coarse.min() <= fine.min() and fine.max() <= coarse.max()
