import base64
import io
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cycleback.applications.plots import PHASE_COLOURS
from cycleback.comparison.figures import (
    Thumbnails,
    choose_videos,
    draw_curves,
    draw_errors,
    draw_few_shot,
    draw_map,
    find_example,
    line_style,
)
from cycleback.data import FrameCache, read_dataset
from cycleback.embeddings import EmbeddingSet


def row(title: str, **report: object):
    return {"title": title, "report": report}


ROWS = {
    "tcc": row(
        "TCC",
        event_errors=[0, 2, 40],
        few_shot={"1": {"mean": 0.5, "spread": 0.1}, "10": {"mean": 0.8, "spread": 0}},
    ),
    "time-only": row("time-only", event_errors=[5, 6], few_shot={"1": {"mean": 0.4, "spread": 0.1}}),
}


def test_charts_are_svg_that_can_be_read() -> None:
    curves = {"tcc": [{"step": step, "loss": 1 / step, "cycle_rate": 0.5} for step in range(1, 50)]}
    for picture in (draw_few_shot(ROWS), draw_errors(ROWS), draw_curves(curves, ROWS)):
        assert ElementTree.fromstring(picture).tag.endswith("svg")


def test_there_is_no_chart_of_nothing() -> None:
    rows = {"tcc": row("TCC", event_errors=[], few_shot={})}
    assert draw_few_shot(rows) is None
    assert draw_errors(rows) is None
    assert draw_curves({"tcc": []}, rows) is None


def test_a_row_keeps_its_style_and_baselines_are_dashed() -> None:
    rows = {"tcc": {}, "tcn": {}, "time-only": {}}
    assert line_style("tcn", rows)["color"] == PHASE_COLOURS[1]
    assert line_style("tcn", rows)["marker"] != line_style("tcc", rows)["marker"]
    assert line_style("time-only", rows)["linestyle"] == ":"


def size(picture: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(picture)).size


def test_a_map_is_drawn_with_and_without_labels() -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=(12, 3)) for name in "ab"}
    bare = EmbeddingSet.from_arrays(arrays)
    labelled = EmbeddingSet.from_arrays(arrays, events={name: {"top": 5} for name in "ab"})
    for videos in (bare, labelled):
        width, height = size(draw_map({"x": videos, "y": videos}, ["a", "b"], None))
        assert width > height


@pytest.fixture
def thumbs(tmp_path: Path) -> Thumbnails:
    """One video of two pictures, twice as wide as high; the second is white."""
    folder = tmp_path / "data" / "clip"
    folder.mkdir(parents=True)
    for number, grey in enumerate((0, 255)):
        Image.fromarray(np.full((20, 40, 3), grey, np.uint8)).save(folder / f"{number}.png")
    return Thumbnails(read_dataset(tmp_path / "data"), FrameCache(tmp_path / "cache", size=(24, 24)))


def test_a_thumbnail_has_the_proportions_of_the_video(thumbs: Thumbnails) -> None:
    picture = thumbs.picture("clip", 1, height=30)
    assert picture.shape == (30, 60, 3)
    assert picture.min() == 255


def test_a_data_url_holds_the_frame(thumbs: Thumbnails) -> None:
    kind, content = thumbs.data_url("clip", 0).split(",")
    assert kind == "data:image/jpeg;base64"
    assert np.asarray(Image.open(io.BytesIO(base64.b64decode(content)))).max() == 0


def ramps(lengths: dict[str, int], **facts: object) -> EmbeddingSet:
    arrays = {name: np.linspace(0, 1, length)[:, None] for name, length in lengths.items()}
    return EmbeddingSet.from_arrays(arrays, **facts)


def test_key_events_are_matched_and_held_against_the_truth() -> None:
    videos = ramps({"a": 11, "b": 21}, events={"a": {"top": 5}, "b": {"top": 12}})
    example = find_example({"tcc": videos}, ["a", "b"])
    assert dict(example.moments) == {"top": 5}
    (match,) = example.matches["tcc"]["b"]
    assert (match.frame, match.late) == (10, -2)


def test_without_events_moments_are_spread_over_the_video() -> None:
    example = find_example({"tcc": ramps({"a": 101, "b": 51})}, ["a", "b"])
    assert list(example.moments.values()) == [10, 26, 42, 58, 74, 90]
    assert [match.frame for match in example.matches["tcc"]["b"]] == [5, 13, 21, 29, 37, 45]
    assert all(match.late is None for match in example.matches["tcc"]["b"])


def test_videos_to_show_are_of_one_action_and_the_best_labelled_come_first() -> None:
    lengths = dict.fromkeys(["lone", "cup1", "cup2", "cup3"], 9)
    actions = {name: name[:3] for name in lengths}
    videos = ramps(lengths, actions=actions, events={"lone": {"x": 1}, "cup2": {"y": 1}})
    assert choose_videos(videos) == ["cup2", "cup1", "cup3"]
