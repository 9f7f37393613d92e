import numpy as np
import pytest

from cycleback.synth.staging import TABLE_PATTERNS, WALL_PATTERNS
from cycleback.synth.textures import TABLE_FIELDS, WALL_FIELDS, Pattern, smooth_noise

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
    fine = smooth_noise((61, 41), np.random.default_rng(1), cells=(4, 3))
    coarse = np.random.default_rng(1).random((4, 3), dtype=np.float32)
    np.testing.assert_allclose(fine[::20, ::20], coarse, atol=1e-6)
    assert coarse.min() <= fine.min() and fine.max() <= coarse.max()
