import numpy as np
import pytest

from cycleback.synth.containers import BOTTLE_SHAPES, GLASS_SHAPES, Container, below, outline, rotate, strip

BOTTLES = [Container(kind=kind, height=0.4, radius=0.07) for kind in BOTTLE_SHAPES]


def area(points: np.ndarray) -> float:
    """Shoelace formula."""
    x, y = points.T
    return 0.5 * abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))


@pytest.mark.parametrize("bottle", BOTTLES, ids=lambda bottle: bottle.kind)
def test_the_pouring_tilt_brings_the_liquid_to_the_lip(bottle: Container) -> None:
    for volume in (0.15, 0.5, 0.85):
        tilt = bottle.pour_tilt(volume)
        lip = rotate(np.array([bottle.lip]), tilt)[0]
        assert bottle.level(tilt, volume) == pytest.approx(lip[1], abs=0.01)


@pytest.mark.parametrize("bottle", BOTTLES, ids=lambda bottle: bottle.kind)
def test_an_emptier_bottle_has_to_be_tilted_further(bottle: Container) -> None:
    tilts = [bottle.pour_tilt(volume) for volume in (0.9, 0.6, 0.3, 0.1)]
    assert tilts == sorted(tilts) and tilts[0] > 0


def test_the_level_of_an_upright_cylinder_is_its_volume() -> None:
    mug = Container(kind="mug", height=1.0, radius=0.5)
    assert mug.level(0.0, 0.5) == pytest.approx(0.5, abs=0.04)


def test_tilting_is_clockwise() -> None:
    up = np.array([[0.0, 1.0]])
    np.testing.assert_allclose(rotate(up, np.pi / 2), [[1.0, 0.0]], atol=1e-12)


def test_the_part_below_a_level_has_the_right_area() -> None:
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert area(below(square, 0.3)) == pytest.approx(0.3)
    assert area(below(square, 2.0)) == pytest.approx(1.0)
    assert len(below(square, -0.1)) == 0


def test_the_part_below_a_level_of_a_turned_square_is_a_triangle() -> None:
    square = rotate(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), -np.pi / 4)
    assert area(below(square, 0.5)) == pytest.approx(0.25)


@pytest.mark.parametrize("kind", GLASS_SHAPES)
def test_a_fuller_glass_stands_higher_and_stays_below_the_rim(kind: str) -> None:
    glass = Container(kind=kind, height=0.2, radius=0.07)
    levels = [glass.surface(fill) for fill in (0.0, 0.5, 1.0)]
    assert levels == sorted(levels)
    assert glass.floor == levels[0] and levels[-1] < glass.height


def test_an_outline_goes_once_around() -> None:
    profile = np.array([[0.0, 0.5], [2.0, 0.5]])
    caps = np.pi * 0.5 * 0.1  # two halves of the ellipse 0.5 by 0.1
    assert area(outline(profile, flatness=0.2)) == pytest.approx(2.0 + caps, rel=0.03)
    assert area(strip(profile, -1, 0)) == pytest.approx(1.0)


def test_capacity_is_the_volume_over_pi() -> None:
    mug = Container(kind="mug", height=1.0, radius=0.5)
    assert mug.capacity == pytest.approx((0.45**2) * (0.96 - 0.07), rel=0.02)
