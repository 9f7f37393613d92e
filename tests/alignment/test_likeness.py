import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.spatial.distance import cdist

from cycleback.alignment import measure_likeness
from cycleback.alignment.likeness import measure_gain, trust_gain


def loop_gain(distances):
    """Dynamic time warping written from its definition, with the mean of the cells on the path."""
    total = np.full((distances.shape[0] + 1, distances.shape[1] + 1), np.inf)
    cells = np.zeros(total.shape, dtype=int)
    total[0, 0] = 0
    for i in range(1, total.shape[0]):
        for j in range(1, total.shape[1]):
            before = min(((i - 1, j - 1), (i - 1, j), (i, j - 1)), key=lambda cell: total[cell])
            total[i, j] = total[before] + distances[i - 1, j - 1]
            cells[i, j] = cells[before] + 1
    return 1 - total[-1, -1] / cells[-1, -1] / distances.mean()


def draw_course(rng):
    """Draw a smooth course (60, 40) through 20 random places."""
    return CubicSpline(np.linspace(0, 1, 20), rng.normal(size=(20, 40)))(np.linspace(0, 1, 60))


def test_likeness_equals_the_loop(rng):
    a, b, turned = rng.normal(size=(9, 3)), rng.normal(size=(12, 3)), rng.normal(size=(12, 3))
    distances = cdist(a, b, "sqeuclidean")
    chance = [
        loop_gain(np.roll(way, cut, axis=1)) for way in (distances, distances[:, ::-1]) for cut in (3, 6, 9)
    ]
    found = measure_likeness(a, b, backwards=turned)
    assert found.gain == pytest.approx(loop_gain(distances))
    assert found.chance == pytest.approx(np.mean(chance))
    assert found.backward == pytest.approx(loop_gain(cdist(a, turned, "sqeuclidean")))


def test_the_same_course_is_the_same_action_and_its_reverse_runs_backwards(rng):
    walk = draw_course(rng)
    slower = np.repeat(walk, 2, axis=0) + 0.1 * rng.normal(size=(120, 40))
    forwards, backwards = measure_likeness(walk, slower), measure_likeness(walk, slower[::-1])
    assert forwards.same > 0.9 and not forwards.is_different and not forwards.is_backward
    assert backwards.is_backward and not backwards.is_different and backwards.same < 0.5


def test_unrelated_courses_are_different_actions(rng):
    walk = draw_course(rng)
    assert all(measure_likeness(walk, draw_course(rng)).is_different for _ in range(8))


def test_videos_in_which_nothing_changes_have_no_gain():
    still = np.ones((20, 4))
    assert measure_likeness(still, still).gain == 0 and measure_gain(np.zeros((4, 5))) == 0


def test_gains_are_trusted_by_degrees():
    assert [trust_gain(gain) for gain in (-0.2, 0.08, 0.18, 0.28, 0.9)] == pytest.approx([0, 0, 0.5, 1, 1])
