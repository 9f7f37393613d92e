from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from cycleback.synth import plan_take
from cycleback.synth.drawing import CENTRE, Canvas, project, shake_matrices, view_matrix

CAMERA = plan_take(1, level="hard").scene.camera
STILL = replace(
    CAMERA, mirrored=False, zoom=1.0, pan=(0.0, 0.0), roll=0.0, shear=0.0, keystone=(0.0, 0.0), shake=0.0
)
POINTS = np.array([CENTRE, (CENTRE[0] + 0.5, CENTRE[1]), (CENTRE[0], CENTRE[1] + 0.25)])


def test_a_plain_camera_shows_one_world_width_with_y_up() -> None:
    np.testing.assert_allclose(project(view_matrix(STILL, 100), POINTS), [[50, 50], [100, 50], [50, 25]])


def test_a_mirrored_camera_swaps_left_and_right_only() -> None:
    plain = project(view_matrix(STILL, 100), POINTS)
    mirrored = project(view_matrix(replace(STILL, mirrored=True), 100), POINTS)
    np.testing.assert_allclose(mirrored, np.stack([100 - plain[:, 0], plain[:, 1]], axis=1))


def test_the_picture_scales_with_its_pixels() -> None:
    small, large = (project(view_matrix(CAMERA, pixels), POINTS) for pixels in (112, 448))
    np.testing.assert_allclose(large, small * 4)


def test_straight_lines_stay_straight() -> None:
    line = np.linspace((-0.3, 0.0), (0.3, 0.5), 5)
    start, *middle, end = project(view_matrix(CAMERA, 100), line)
    for point in middle:
        assert abs(np.linalg.det([end - start, point - start])) < 1e-6


def test_shake_moves_the_picture_as_a_whole_and_stays_in_the_margin() -> None:
    shake = shake_matrices(CAMERA, num_frames=200, fps=30, pixels=100)
    corners = np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 100.0], [0.0, 100.0]])
    moved = np.stack([project(matrix, corners) for matrix in shake])
    sides = np.linalg.norm(moved - np.roll(moved, 1, axis=1), axis=-1)
    np.testing.assert_allclose(sides, sides[:, :1] * np.ones(4))
    assert 0.1 < np.abs(moved - corners).max() < 6


def test_no_shake_is_exactly_still() -> None:
    shake = shake_matrices(STILL, num_frames=3, fps=30, pixels=100)
    np.testing.assert_array_equal(shake, np.stack([np.eye(3)] * 3))


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
