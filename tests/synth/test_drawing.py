import numpy as np
import pytest
from PIL import Image

from cycleback.synth.drawing import Canvas


@pytest.fixture
def canvas() -> Canvas:
    """A black picture of 200 x 200 pixels whose world is its pixels."""
    return Canvas(Image.new("RGB", (200, 200)), np.eye(3))


def covered(canvas: Canvas) -> float:
    return float(np.asarray(canvas.image)[..., 0].astype(float).sum() / 255)


def test_an_ellipse_covers_pi_a_b(canvas: Canvas) -> None:
    canvas.ellipse((100, 100), (80, 40), (255, 255, 255), count=60)
    assert covered(canvas) == pytest.approx(np.pi * 80 * 40, rel=0.03)


def test_a_capsule_covers_its_stroke_and_two_half_discs(canvas: Canvas) -> None:
    canvas.capsule((60, 60), (140, 120), (20, 20), (255, 255, 255), count=20)
    assert covered(canvas) == pytest.approx(100 * 40 + np.pi * 400, rel=0.03)


def test_colours_blend_by_their_alpha(canvas: Canvas) -> None:
    canvas.polygon(np.array([[0.0, 0.0], [199, 0], [199, 199], [0, 199]]), (200, 100, 0, 128))
    assert np.abs(np.asarray(canvas.image)[100, 100].astype(int) - (100, 50, 0)).max() <= 1


def test_a_soft_ellipse_fades_towards_its_edge(canvas: Canvas) -> None:
    canvas.soft_ellipse((100, 100), (60, 60), (255, 255, 255), alpha=0.8)
    row = np.asarray(canvas.image)[100, 100:190, 0].astype(int)
    assert (np.diff(row) <= 0).all() and row[0] > 100 and row[-1] == 0
    assert len(np.unique(row)) >= 6


def test_a_ribbon_is_as_wide_as_asked(canvas: Canvas) -> None:
    canvas.ribbon(np.array([[100.0, 20], [100, 180]]), np.array([20.0, 40]), (255, 255, 255))
    widths = (np.asarray(canvas.image)[..., 0] > 0).sum(axis=1)
    assert widths[30] == pytest.approx(21, abs=2) and widths[170] == pytest.approx(39, abs=2)


def test_fewer_than_three_points_draw_nothing(canvas: Canvas) -> None:
    canvas.polygon(np.empty((0, 2)), (255, 255, 255))
    assert covered(canvas) == 0
