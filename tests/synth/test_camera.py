from dataclasses import replace

import numpy as np

from cycleback.synth import plan_take
from cycleback.synth.camera import CENTRE, project, shake_matrices, view_matrix

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
