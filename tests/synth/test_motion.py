import numpy as np
import pytest

from cycleback.synth import Take, plan_take
from cycleback.synth.containers import rotate


def first(condition: np.ndarray) -> int:
    return int(np.flatnonzero(condition)[0])


def test_the_touch_is_the_first_frame_with_the_hand_at_the_bottle(takes: list[Take]) -> None:
    for take in takes:
        assert first(take.motion.reach == 1) == take.events["hand touches bottle"]
        assert take.motion.reach[0] == 0 and take.motion.reach[-1] == 0


def test_liquid_is_in_the_air_from_start_to_completion(takes: list[Take]) -> None:
    for take in takes:
        flowing = np.flatnonzero(take.motion.flow > 0)
        assert flowing[0] == take.events["liquid starts exiting"]
        assert flowing[-1] == take.events["pouring complete"] - 1
        assert len(flowing) == flowing[-1] - flowing[0] + 1


def test_the_bottle_is_off_the_table_only_between_grip_and_return(takes: list[Take]) -> None:
    for take in takes:
        touch, back = take.events["hand touches bottle"], take.events["bottle back on table"]
        assert (take.motion.base_y[: touch + 1] == 0).all()
        assert (take.motion.base_y[back:] == 0).all() and take.motion.base_y[back - 1] > 0


def test_the_glass_fills_only_while_liquid_flows(takes: list[Take]) -> None:
    for take in takes:
        fill, liquid = take.motion.fill, take.scene.liquid
        assert (np.diff(fill) >= 0).all()
        assert (fill[: take.events["liquid starts exiting"] + 1] == liquid.glass_start).all()
        np.testing.assert_allclose(fill[take.events["pouring complete"] :], liquid.glass_final)


def test_the_lip_is_over_the_glass_while_pouring(takes: list[Take]) -> None:
    for take in takes:
        scene, motion = take.scene, take.motion
        for frame in np.flatnonzero(motion.flow > 0):
            lip = rotate(np.array([scene.bottle.lip]), motion.tilt[frame])[0]
            x, y = lip[0] + motion.base_x[frame], lip[1] + motion.base_y[frame]
            assert abs(x - scene.glass_x) < scene.glass.radius
            assert y > scene.glass.height


def test_what_leaves_the_bottle_is_gone_from_it(takes: list[Take]) -> None:
    for take in takes:
        assert (np.diff(take.motion.bottle) <= 1e-12).all()
        assert take.motion.bottle[-1] == pytest.approx(take.scene.liquid.bottle_end)
        assert take.motion.bottle[0] - take.motion.bottle[-1] > 0.05


def test_nothing_jumps(takes: list[Take]) -> None:
    for take in takes:
        for values, largest in (
            (take.motion.base_x, 0.15),
            (take.motion.base_y, 0.2),
            (take.motion.tilt, 0.7),
        ):
            assert np.abs(np.diff(values)).max() < largest


def test_a_take_goes_on_at_any_frame_rate() -> None:
    slow, fast = plan_take(3, fps=15), plan_take(3, fps=60)
    assert fast.num_frames == pytest.approx(4 * slow.num_frames, abs=16)
    assert fast.motion.fill[-1] == slow.motion.fill[-1]


def test_nothing_is_spilt_without_a_mishap() -> None:
    for seed in range(300):  # rounding once left a drop of 1e-17 on the table in one of 250
        assert not plan_take(seed, level="hard").motion.puddle.any()
