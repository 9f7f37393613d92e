import json
from dataclasses import replace

import numpy as np
import pytest

from cycleback.synth import ANOMALIES, EVENTS, RenderedVideo, Take, plan_take, render_video
from cycleback.synth.drawing import project, view_matrix
from cycleback.synth.motion import Motion
from cycleback.synth.pouring import Renderer, light_gain


@pytest.mark.parametrize("level", ["easy", "hard"])
def test_rendering_twice_gives_identical_arrays(level: str) -> None:
    first, second = (render_video(1, level=level, size=48) for _ in range(2))
    np.testing.assert_array_equal(first.frames, second.frames)
    np.testing.assert_array_equal(first.audio.samples, second.audio.samples)


def test_arrays_have_one_entry_a_frame(video: RenderedVideo) -> None:
    count = len(video.frames)
    assert video.frames.shape == (count, 64, 64, 3) and video.frames.dtype == np.uint8
    assert video.take.motion.fill.shape == video.take.pitch.shape == (count,)
    assert tuple(video.take.events) == EVENTS and max(video.take.events.values()) < count


def test_other_seeds_and_levels_give_other_videos() -> None:
    takes = [plan_take(0), plan_take(1), plan_take(0, level="hard")]
    assert len({take.num_frames for take in takes}) == 3
    assert len({str(take.scene) for take in takes}) == 3


def test_every_frame_but_the_idle_ones_changes(video: RenderedVideo) -> None:
    touch, back = video.take.events["hand touches bottle"], video.take.events["bottle back on table"]
    changes = np.abs(np.diff(video.frames[touch - 3 : back].astype(int), axis=0)).mean(axis=(1, 2, 3))
    assert np.median(changes) > 0.3


@pytest.mark.parametrize("kind", ANOMALIES)
def test_an_anomaly_is_seen_inside_its_range(kind: str) -> None:
    clean, wrong = (render_video(4, size=48, anomaly=anomaly) for anomaly in (None, kind))
    start, end = wrong.take.anomaly_range
    frames = range(start, min(end + 1, len(clean.frames)))
    seen = [np.abs(wrong.frames[i].astype(int) - clean.frames[i]).max() > 40 for i in frames]
    assert np.mean(seen) > 0.7
    same = min(wrong.take.events[EVENTS[0]] - 3, start - 10)
    np.testing.assert_array_equal(wrong.frames[:same], clean.frames[:same])


def test_the_truth_is_json_and_complete(video: RenderedVideo) -> None:
    truth = json.loads(json.dumps(video.take.truth(), allow_nan=False))
    assert truth["events"] == video.take.events and truth["clicks"] == video.take.clicks
    np.testing.assert_allclose(truth["fill"], video.take.motion.fill, atol=1e-4)
    first = next(i for i, hertz in enumerate(truth["pitch"]) if hertz)
    by_formula = eval(truth["pitch_formula"], truth["pipe_metres"] | {"fill": truth["fill"][first]})
    assert truth["pitch"][first] == pytest.approx(by_formula, rel=1e-3)
    silent = [hertz is None for hertz in truth["pitch"]]
    np.testing.assert_array_equal(silent, np.isnan(video.take.pitch))
    assert truth["scene"]["bottle"]["kind"] == video.take.scene.bottle.kind


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": "medium"}, "level must be one of easy, hard, got 'medium'"),
        ({"size": 46}, "size must be an even number of pixels from 48 on, got 46"),
        ({"size": 113}, "size must be an even number of pixels from 48 on, got 113"),
        ({"fps": 5.0}, r"fps must be 10 or more, got 5\.0"),
        ({"fps": float("nan")}, "fps must be 10 or more, got nan"),
        ({"anomaly": "fire"}, "anomaly must be one of spill, missed glass, hand withdraws, got 'fire'"),
        ({"seed": -1}, "seed must be 0 or more, got -1"),
    ],
)
def test_bad_arguments_are_refused_with_their_values(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        render_video(**{"seed": 0} | settings)


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
    in_order = [renderer.frame(index) for index in range(take.num_frames)]
    np.testing.assert_array_equal(renderer.frame(17), in_order[17])
    assert in_order[0].shape == (64, 64, 3)


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
