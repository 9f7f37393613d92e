import io
import re
import xml.etree.ElementTree as ET

import matplotlib
import numpy as np
import pytest
from PIL import Image

from cycleback.alignment import dtw_path, squared_distances
from cycleback.applications.anomalies import AnomalyScores
from cycleback.applications.plots import (
    draw_evolution,
    draw_map,
    draw_progress,
    draw_similarity,
)
from cycleback.applications.plots.curves import choose_frames, draw_anomaly
from cycleback.applications.plots.maps import open_thumbnails, project, spread_points
from cycleback.applications.progress import ProgressReport, ProgressSignal
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import DataError, UserError

LOG = [{"step": step, "loss": 5 / step, "cycle_rate": 0.5} for step in range(1, 30)]


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def words(svg: bytes) -> str:
    """All text of an SVG that is still text."""
    return " ".join(
        "".join(node.itertext()) for node in ET.fromstring(svg).iter() if node.tag.endswith("text")
    )


@pytest.fixture
def videos() -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    line = np.linspace(0, 1, 30)[:, None]
    return [np.hstack([line, line**2]) + 0.01 * generator.normal(size=(30, 2)) for _ in range(3)]


def test_a_similarity_picture_has_a_panel_each_and_shows_the_events(videos: list[np.ndarray]) -> None:
    one = pixels(draw_similarity({"a": (videos[0], videos[1])}))
    two = pixels(draw_similarity({"a": (videos[0], videos[1]), "b": (videos[1], videos[2])}))
    ringed = pixels(draw_similarity({"a": (videos[0], videos[1])}, events=([5, 20], [6, 21])))
    assert two.shape[1] == 2 * one.shape[1]
    assert (ringed[..., 0] - ringed[..., 1] > 100).sum() > 100 > (one[..., 0] - one[..., 1] > 100).sum()


def test_a_path_is_drawn_instead_of_dtw_s(videos: list[np.ndarray]) -> None:
    pair = {"": (videos[0], videos[1])}
    straight = np.repeat(np.arange(30)[:, None], 2, axis=1)
    assert draw_similarity(pair) == draw_similarity(pair, path=dtw_path(squared_distances(*pair[""])))
    drawn, part, dots = (
        draw_similarity(pair, path=path) for path in (straight, straight[:9], straight[::-1])
    )
    assert (pixels(drawn) != pixels(part)).any()
    assert (pixels(drawn) != pixels(dots)).any()


def test_collapsed_embeddings_can_be_drawn() -> None:
    same = np.ones((6, 2), np.float32)
    assert draw_similarity({"": (same, same)})
    assert draw_map({"a": same, "b": same})


def test_a_map_is_the_same_twice(videos: list[np.ndarray]) -> None:
    named = dict(zip("abc", videos, strict=True))
    phases = {name: np.repeat([0, 1], 15) for name in named}
    first, second = (draw_map(named, phases=phases, phase_names=["before", "after"]) for _ in range(2))
    assert np.array_equal(pixels(first), pixels(second))
    assert (pixels(first) != 255).any()


def test_letters_stay_letters_and_files_stay_the_same(videos: list[np.ndarray]) -> None:
    first, second = (
        draw_similarity({"title": (videos[0], videos[1])}, names=("left", "right"), format="svg")
        for _ in range(2)
    )
    assert first == second
    assert "title" in words(first) and "frame of left" in words(first) and "frame of right" in words(first)


def test_a_pdf_is_a_pdf_and_other_formats_are_refused(videos: list[np.ndarray]) -> None:
    matrices = {"": (videos[0], videos[1])}
    assert draw_similarity(matrices, format="pdf").startswith(b"%PDF")
    with pytest.raises(UserError, match=r"no picture format 'bmp': expected png, svg or pdf"):
        draw_similarity(matrices, format="bmp")


def test_the_size_is_in_inches(videos: list[np.ndarray]) -> None:
    assert pixels(draw_similarity({"": (videos[0], videos[1])}, size=(4, 3))).shape == (450, 600, 3)


def test_matplotlib_s_own_settings_stay_as_they_were(videos: list[np.ndarray]) -> None:
    before = dict(matplotlib.rcParams)
    draw_similarity({"": (videos[0], videos[1])})
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("by", ["tsne", "pca"])
def test_a_map_without_labels_is_coloured_by_time(videos: list[np.ndarray], by: str) -> None:
    named = dict(zip("abc", videos, strict=True))
    svg = draw_map(named, by=by, format="svg")
    assert "first frame" in words(svg) and "last frame" in words(svg)


def test_a_map_with_labels_is_coloured_by_phase(videos: list[np.ndarray]) -> None:
    named = dict(zip("abc", videos, strict=True))
    phases = {name: np.repeat([0, 1], 15) for name in named}
    svg = draw_map(named, phases=phases, phase_names=["before top", "after top"], format="svg")
    assert "before top" in words(svg) and "after top" in words(svg) and "first frame" not in words(svg)


def test_frames_stand_around_the_map(videos: list[np.ndarray]) -> None:
    asked: list[tuple[str, int]] = []

    def thumbnail(name: str, frame: int) -> np.ndarray:
        asked.append((name, frame))
        return np.full((40, 60, 3), (255, 0, 0), np.uint8)

    picture = pixels(draw_map(dict(zip("abc", videos, strict=True)), by="pca", thumbnail=thumbnail))
    red = (picture[..., 0] > 200) & (picture[..., 1] < 40)
    assert len(set(asked)) == 16
    assert red[: len(red) // 5].any() and red[-len(red) // 5 :].any() and not red[300:-300, 500:-500].any()


def test_pca_keeps_the_largest_direction() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 4)) * [9, 3, 1, 0.1]
    points = project(rows, by="pca")
    assert abs(np.corrcoef(points[:, 0], rows[:, 0])[0, 1]) > 0.97
    assert project(rows[:1], by="tsne").tolist() == [[0, 0]]


def test_points_are_spread_out() -> None:
    assert sorted(spread_points(np.arange(9.0)[:, None] * [1, 0], 3)) == [0, 4, 8]
    assert spread_points(np.zeros((5, 2))) == [0]


def test_without_its_video_there_is_no_thumbnail(tmp_path) -> None:
    assert open_thumbnails({"a": tmp_path / "gone.mp4"}) is None


def progress_report(count: int, *, rewards: bool = False) -> ProgressReport:
    """Takes of 9 frames that end one second after another, with one key event in the first two."""
    line = np.linspace(0, 1, 9)
    names = [f"take {k}" for k in range(count)]
    videos = EmbeddingSet.from_arrays(
        {name: line[:, None] for name in names},
        times={name: line * (k + 1) for k, name in enumerate(names)},
        events={"take 0": {"impact": 4}, "take 1": {"impact": 5}},
    )
    signals = {name: ProgressSignal(line, line, np.arange(9)) for name in names}
    return ProgressReport(videos, "take 0", signals, dict.fromkeys(names, -line) if rewards else {})


@pytest.mark.parametrize("count", [2, 12])
def test_progress_names_few_videos_and_the_events(count: int) -> None:
    text = words(draw_progress(progress_report(count), format="svg"))
    assert "impact" in text and ("take 1" in text) == (count == 2)


def test_evolution_draws_loss_and_cycles_of_every_run() -> None:
    logs = {"short": LOG[:3], "long": [*LOG, {"step": 30, "held_out_cycle_rate": 0.6}]}
    text = words(draw_evolution(logs, format="svg"))
    assert all(word in text for word in ("Loss", "Frames that cycle back", "short", "long, held-out videos"))
    assert draw_evolution({"one": LOG[:1]})


def test_a_run_without_a_log_says_so() -> None:
    with pytest.raises(DataError, match=re.escape("the log of new has no loss yet")):
        draw_evolution({"new": []})


@pytest.fixture
def found() -> AnomalyScores:
    scores = np.zeros(60)
    scores[37:45] = [1, 2, 3, 6, 3, 2, 1, 1]
    matches = np.zeros((60, 2), dtype=np.int64)
    return AnomalyScores(scores, np.linspace(0, 1, 60), matches, ((37, 44),), 0.5, 0.9, "something differs")


def test_the_peak_is_among_the_frames_shown(found: AnomalyScores) -> None:
    assert choose_frames(found) == [0, 15, 30, 40, 59]


def test_the_span_is_shaded_and_the_frames_are_drawn(found: AnomalyScores) -> None:
    frames = choose_frames(found)
    green, yellow = np.zeros((8, 8, 3), np.uint8), np.zeros((8, 8, 3), np.uint8)
    green[..., 1], yellow[..., :2] = 255, 255
    picture = pixels(
        draw_anomaly(found, np.arange(60) / 10, frames=frames, take=[green] * 5, normal=[yellow] * 5)
    )
    for colour in ([0, 255, 0], [255, 255, 0]):
        assert (picture == colour).all(axis=-1).sum() > 5000
    pink = (picture[..., 0] - picture[..., 1] > 20) & (picture[..., 0] > 240)
    assert (pink & (picture[..., 2] > 180)).sum() > 1000


def test_rewards_add_a_panel() -> None:
    one, two = (pixels(draw_progress(progress_report(2, rewards=rewards))) for rewards in (False, True))
    assert two.shape[0] > 1.5 * one.shape[0]
    assert "reward" in words(draw_progress(progress_report(2, rewards=True), format="svg"))
