import numpy as np
import pytest

from cycleback.synth import ANOMALIES, EVENTS, plan_take


@pytest.mark.parametrize("kind", ANOMALIES)
def test_a_mishap_lies_inside_the_video(kind: str) -> None:
    for seed in range(20):
        take = plan_take(seed, level="hard", anomaly=kind)
        start, end = take.anomaly_range
        assert 0 <= start < end < take.num_frames


def test_a_missed_glass_does_not_fill() -> None:
    for seed in range(20):
        take = plan_take(seed, anomaly="missed glass")
        start, end = take.anomaly_range
        assert np.ptp(take.motion.fill[start : end + 1]) == 0
        assert take.motion.puddle[-1] > 0.2 and (take.motion.astray[start : end + 1] == 1).all()


def test_a_spill_fills_the_glass_less_than_a_clean_pour() -> None:
    for seed in range(20):
        clean, spilt = plan_take(seed), plan_take(seed, anomaly="spill")
        assert spilt.motion.fill[0] < spilt.motion.fill[-1] < clean.motion.fill[-1]
        assert spilt.motion.puddle[-1] > 0.1


def test_a_hand_that_withdraws_is_out_of_the_picture_meanwhile() -> None:
    for seed in range(20):
        take = plan_take(seed, anomaly="hand withdraws")
        start, end = take.anomaly_range
        assert take.motion.reach[start : end + 1].min() == 0
        assert (take.motion.base_y[start : end + 1] == 0).all()


def test_events_that_never_happen_are_left_out() -> None:
    takes = [plan_take(seed, anomaly="hand withdraws") for seed in range(20)]
    returned = {take.mishap.end < take.num_frames for take in takes}
    assert returned == {True, False}
    for take in takes:
        happens = take.mishap.end < take.num_frames
        assert tuple(take.events) == (EVENTS if happens else EVENTS[:1])
        assert (take.motion.flow.max() > 0) == happens


def test_a_mishap_leaves_the_scene_and_the_frames_before_it_alone() -> None:
    clean, wrong = plan_take(4), plan_take(4, anomaly="hand withdraws")
    before = wrong.events["hand touches bottle"] - 3
    assert clean.scene == wrong.scene
    np.testing.assert_array_equal(clean.motion.reach[:before], wrong.motion.reach[:before])
