import numpy as np

from cycleback.video.index import FrameIndex


def index_of(times, duration_s):
    numbers = np.arange(len(times))
    return FrameIndex(numbers, times, duration_s, key_numbers=numbers[:1], can_seek=True)


def test_steps_rounded_to_milliseconds_are_a_constant_rate():
    times = np.round(np.arange(1000) / 29.97, 3)
    index = index_of(times, times[-1] + 1 / 29.97)
    assert not index.is_variable_rate
    assert index.average_rate(30000 / 1001) == 30000 / 1001


def test_rate_of_one_frame_is_one_over_its_length():
    assert index_of(np.zeros(1), 0.5).average_rate(30.0) == 2.0
    assert index_of(np.zeros(1), 0.0).average_rate(30.0) == 30.0
    assert not index_of(np.zeros(1), 0.5).is_variable_rate
