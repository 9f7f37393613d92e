import io

import numpy as np
import pytest
from PIL import Image

from cycleback.applications.anomalies import AnomalyScores
from cycleback.applications.curve_pictures import anomaly_picture, progress_picture, shown_frames


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


@pytest.fixture
def found() -> AnomalyScores:
    scores = np.zeros(60)
    scores[37:45] = [1, 2, 3, 6, 3, 2, 1, 1]
    matches = np.zeros((60, 2), dtype=np.int64)
    return AnomalyScores(scores, np.linspace(0, 1, 60), matches, ((37, 44),), 0.5, 0.9, "something differs")


def test_the_peak_is_among_the_frames_shown(found: AnomalyScores) -> None:
    assert shown_frames(found) == [0, 15, 30, 40, 59]


def test_the_span_is_shaded_and_the_frames_are_drawn(found: AnomalyScores) -> None:
    shown = shown_frames(found)
    green, yellow = np.zeros((8, 8, 3), np.uint8), np.zeros((8, 8, 3), np.uint8)
    green[..., 1], yellow[..., :2] = 255, 255
    picture = pixels(
        anomaly_picture(
            found, np.arange(60) / 10, shown=shown, take=[green] * 5, typical=[yellow] * 5, title="a"
        )
    )
    for colour in ([0, 255, 0], [255, 255, 0]):
        assert (picture == colour).all(axis=-1).sum() > 5000
    pink = (picture[..., 0] - picture[..., 1] > 20) & (picture[..., 0] > 240)
    assert (pink & (picture[..., 2] > 180)).sum() > 1000


def test_rewards_add_a_panel() -> None:
    times = np.arange(30) / 10
    curves = {name: (times, np.linspace(0, 1, 30)) for name in ("a", "b")}
    one = pixels(progress_picture(curves))
    two = pixels(progress_picture(curves, rewards={name: -np.ones(30) for name in curves}))
    assert two.shape[0] > 1.8 * one.shape[0]
