from dataclasses import replace

import numpy as np
import pytest

from cycleback.synth import EVENTS, Take, plan_take
from cycleback.synth.camera import project, view_matrix
from cycleback.synth.motion import Motion
from cycleback.synth.render import Renderer, light_gain

TAKES = [plan_take(seed, level=level) for level in ("easy", "hard") for seed in (5, 6)]


def picture(take: Take, index: int, **changes: float) -> np.ndarray:
    """Frame `index` (H, W, 3), with some of its numbers changed."""
    arrays = {name: np.full(take.num_frames, value) for name, value in changes.items()}
    motion: Motion = replace(take.motion, **arrays)
    return Renderer(take.scene, motion, size=112, fps=take.fps, noise_seed=0).frame(index).astype(int)


def differs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.abs(first - second).max(axis=-1) > 12


@pytest.mark.parametrize("take", TAKES, ids=lambda take: f"{take.level}-{take.seed}")
def test_the_hand_is_on_the_bottle_at_the_touch(take: Take) -> None:
    touch = take.events[EVENTS[0]]
    hand = differs(picture(take, touch), picture(take, touch, reach=0.0))
    grip = np.array([[take.scene.bottle_x, take.scene.hand.grip_height * take.scene.bottle.height]])
    column, row = project(view_matrix(take.scene.camera, 112), grip)[0].round().astype(int)
    assert hand[row - 8 : row + 9, column - 8 : column + 9].sum() > 60
    assert not differs(picture(take, 0), picture(take, 0, reach=0.0)).any()


@pytest.mark.parametrize("take", TAKES, ids=lambda take: f"{take.level}-{take.seed}")
def test_liquid_in_the_glass_grows_while_it_is_poured(take: Take) -> None:
    start, complete = take.events[EVENTS[1]], take.events[EVENTS[2]]
    shown = [
        differs(picture(take, frame, flow=0.0), picture(take, frame, flow=0.0, fill=0.0)).sum()
        for frame in (start, (start + complete) // 2, complete)
    ]
    assert shown[0] < shown[1] < shown[2] and shown[2] > 60


@pytest.mark.parametrize("take", TAKES, ids=lambda take: f"{take.level}-{take.seed}")
def test_the_stream_is_seen_only_during_the_pour(take: Take) -> None:
    start, complete = take.events[EVENTS[1]], take.events[EVENTS[2]]
    stream = {
        frame: differs(picture(take, frame), picture(take, frame, flow=0.0)).sum()
        for frame in (start - 1, start + 1, (start + complete) // 2, complete)
    }
    assert stream[start - 1] == 0 and stream[complete] == 0
    assert stream[start + 1] > 4 and stream[(start + complete) // 2] > 8


def test_a_frame_does_not_depend_on_the_frames_before_it() -> None:
    take = TAKES[3]
    renderer = Renderer(take.scene, take.motion, size=64, fps=30, noise_seed=1)
    in_order = list(renderer.frames())
    np.testing.assert_array_equal(renderer.frame(17), in_order[17])
    assert len(in_order) == take.num_frames and in_order[0].shape == (64, 64, 3)


def test_the_same_scene_looks_alike_at_any_size() -> None:
    take = TAKES[0]
    small, large = (
        Renderer(
            replace(take.scene, light=replace(take.scene.light, noise=0.0)),
            take.motion,
            size=s,
            fps=30,
            noise_seed=0,
        )
        .frame(40)
        .astype(float)
        for s in (64, 320)
    )
    shrunk = large.reshape(64, 5, 64, 5, 3).mean(axis=(1, 3))
    assert np.abs(shrunk - small).mean() < 4


def test_light_falls_off_away_from_its_direction() -> None:
    light = replace(TAKES[0].scene.light, direction=0.0, slope=0.4, brightness=1.0, tint=(1.0, 1.0, 1.0))
    gain = light_gain(light, 32)
    assert gain.shape == (32, 32, 3)
    assert (np.diff(gain[16, :, 0]) > 0).mean() > 0.9
