"""Tests of the benchmark of small folders: which folders it draws, and what it scores."""

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.evaluation import event_error

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("small_folders")


def test_folders_are_the_same_for_every_row_and_never_hold_a_video_twice(benchmark: ModuleType) -> None:
    folders = benchmark.draw_videos(40, "6", 8)
    assert folders == benchmark.draw_videos(40, "6", 8)
    assert len({tuple(folder) for folder in folders}) == 8
    assert all(len(set(folder)) == 6 and max(folder) < 40 for folder in folders)
    assert benchmark.draw_videos(40, "60", 3) == []
    assert benchmark.draw_videos(40, "all", 3) == [list(range(40))]


def test_all_pairs_score_as_the_whole_folder(benchmark: ModuleType) -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=(length, 3)) for name, length in (("a", 20), ("b", 31), ("c", 25))}
    events = {"a": {"top": 4, "end": 17}, "b": {"top": 9, "end": 28}, "c": {"top": 6}}
    videos = EmbeddingSet.from_arrays(arrays, events=events, fps={"a": 25.0, "b": 30.0, "c": 10.0})
    scores = benchmark.score_events(videos, 10)
    blocks, labels = [videos[name] for name in videos], [videos.events(name) for name in videos]
    clocks = [videos.times(name) for name in videos]
    for suffix, method in (("", "nearest"), ("_dtw", "dtw")):
        whole = event_error(blocks, labels, times=clocks, method=method)
        assert scores[f"event_error_frames{suffix}"] == whole.median_frames
        assert scores[f"event_error_ms{suffix}"] == pytest.approx(whole.median_ms, abs=0.06)
        assert scores[f"pce3{suffix}"] == pytest.approx(whole.within[3], abs=1e-4)


def test_a_folder_in_which_nothing_is_seen_has_no_scores(benchmark: ModuleType) -> None:
    videos = EmbeddingSet.from_arrays({"a": np.zeros((5, 2)), "b": np.zeros((6, 2))})
    assert benchmark.score_events(videos, 10) is None


def test_joints_of_penn_action_take_the_places_of_the_pose_stream(benchmark: ModuleType) -> None:
    places = np.arange(26, dtype=np.float64).reshape(1, 13, 2)  # x, y
    body = benchmark._body(places, np.ones((1, 13), dtype=np.uint8))
    assert body.shape == (1, 17, 3)
    assert body[0, 5].tolist() == [3, 2, 1]  # left shoulder, the second joint: y, x, score
    assert body[0, 16].tolist() == [25, 24, 1]  # right ankle, the last


@pytest.mark.parametrize("row", ["trained", "resnet50"])
def test_trained_rows_hold_no_video_out(benchmark: ModuleType, row: str) -> None:
    assert benchmark.row_recipe(row, []).data.held_out == 0


def test_folders_in_which_nothing_is_seen_keep_their_place_and_do_not_count(benchmark: ModuleType) -> None:
    scores = [{"event_error_frames": 4.0, "pce3": 0.5}, None, {"event_error_frames": 1.0, "pce3": 1.0}]
    cell = benchmark.make_cell(scores, 2, 0.0, None)
    assert (cell["folders"], cell["seen"]) == (3, 2)
    assert (cell["event_error_frames"], cell["pce3"]) == (2.5, 0.75)
    assert cell["by_folder"]["pce3"] == [0.5, None, 1.0]


def test_the_tables_of_the_page_are_those_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS.parent / "scripts"))
    page = importlib.import_module("small_folders_page")
    text = page.PAGE.read_text("utf-8")
    assert page.fill_places(text, page.tables()) == text
    assert all(table in text for table in page.tables().values())
