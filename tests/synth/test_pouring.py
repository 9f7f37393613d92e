import json

import numpy as np
import pytest

from cycleback.synth import ANOMALIES, EVENTS, RenderedVideo, plan_take, render_video


@pytest.mark.parametrize("level", ["easy", "hard"])
def test_rendering_twice_gives_identical_arrays(level: str) -> None:
    first, second = (render_video(1, level=level, size=48) for _ in range(2))
    np.testing.assert_array_equal(first.frames, second.frames)
    np.testing.assert_array_equal(first.audio.samples, second.audio.samples)


def test_arrays_have_one_entry_a_frame(video: RenderedVideo) -> None:
    count = len(video.frames)
    assert video.frames.shape == (count, 64, 64, 3) and video.frames.dtype == np.uint8
    assert video.fill.shape == video.pitch.shape == (count,)
    assert tuple(video.events) == EVENTS and max(video.events.values()) < count


def test_other_seeds_and_levels_give_other_videos() -> None:
    takes = [plan_take(0), plan_take(1), plan_take(0, level="hard")]
    assert len({take.num_frames for take in takes}) == 3
    assert len({str(take.scene) for take in takes}) == 3


def test_every_frame_but_the_idle_ones_changes(video: RenderedVideo) -> None:
    touch, back = video.events["hand touches bottle"], video.events["bottle back on table"]
    changes = np.abs(np.diff(video.frames[touch - 3 : back].astype(int), axis=0)).mean(axis=(1, 2, 3))
    assert np.median(changes) > 0.3


@pytest.mark.parametrize("kind", ANOMALIES)
def test_an_anomaly_is_seen_inside_its_range(kind: str) -> None:
    clean, wrong = (render_video(4, size=48, anomaly=anomaly) for anomaly in (None, kind))
    start, end = wrong.anomaly_range
    frames = range(start, min(end + 1, len(clean.frames)))
    seen = [np.abs(wrong.frames[i].astype(int) - clean.frames[i]).max() > 40 for i in frames]
    assert np.mean(seen) > 0.7
    same = min(wrong.events[EVENTS[0]] - 3, start - 10)
    np.testing.assert_array_equal(wrong.frames[:same], clean.frames[:same])


def test_the_truth_is_json_and_complete(video: RenderedVideo) -> None:
    truth = json.loads(json.dumps(video.take.truth(), allow_nan=False))
    assert truth["events"] == video.events and truth["clicks"] == video.clicks
    np.testing.assert_allclose(truth["fill"], video.fill, atol=1e-4)
    first = next(i for i, hertz in enumerate(truth["pitch"]) if hertz)
    by_formula = eval(truth["pitch_formula"], truth["pipe_metres"] | {"fill": truth["fill"][first]})
    assert truth["pitch"][first] == pytest.approx(by_formula, rel=1e-3)
    silent = [hertz is None for hertz in truth["pitch"]]
    np.testing.assert_array_equal(silent, np.isnan(video.pitch))
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
