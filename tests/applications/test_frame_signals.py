"""Frame signals, read by an own reader that checks what LeRobot's contract demands."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycleback.applications import measure_progress
from cycleback.applications.frame_signals import write_frame_signals
from cycleback.data import read_dataset
from cycleback.data.episodes import EpisodePlace, read_places
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import DataError
from cycleback.prepare import prepare
from cycleback.video import probe
from lerobot_folders import CAMERA, write_lerobot

LENGTHS = (12, 9, 15)
pytest.importorskip("pyarrow")


def read_signals(path: Path) -> tuple[Any, Mapping[str, Any]]:
    """Read a table and its metadata; every rule of the format is checked."""
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.read_table(path)
    prefix = "lerobot.reward_scoring."
    texts = {key.decode(): text.decode() for key, text in table.schema.metadata.items()}
    metadata = {key.removeprefix(prefix): text for key, text in texts.items() if key.startswith(prefix)}
    assert metadata["format"] == "lerobot.frame_signals" and metadata["schema_version"] == "1"
    facts = {key: json.loads(metadata[key]) for key in ("descriptors", "provenance", "episode_indices")}
    fixed = ["index", "episode_index", "frame_index"]
    assert table.column_names[:3] == fixed and set(table.column_names[3:]) == set(facts["descriptors"])
    for name in table.column_names:
        assert table[name].null_count == 0
        assert table[name].type == (pa.int64() if name in fixed else pa.float64())
    index, episode, frame = (table[name].to_numpy() for name in fixed)
    assert (np.diff(index) > 0).all() and (np.diff(episode) >= 0).all()
    assert sorted(set(episode.tolist())) == facts["episode_indices"]
    for number in facts["episode_indices"]:
        own = episode == number
        assert frame[own].tolist() == list(range(own.sum())) and len(set(index[own] - frame[own])) == 1
    for name, told in facts["descriptors"].items():
        keys = {"description", "direction", "bounds", "unit", "comparison_scope", "allow_nan"}
        assert set(told) == keys and told["description"] and told["direction"] in ("higher", "lower", "none")
        assert told["comparison_scope"] in ("episode", "task", "dataset", "global")
        values = table[name].to_numpy()
        assert np.isfinite(values).all() and told["allow_nan"] is False
        if told["bounds"] is not None:
            assert told["bounds"][0] <= values.min() and values.max() <= told["bounds"][1]
    return table, facts


@pytest.fixture
def report():
    moments = np.random.default_rng(0).normal(size=(15, 5))
    arrays = {f"episode_{e:06d}": moments[:n] for e, n in reversed(list(enumerate(LENGTHS)))}
    videos = EmbeddingSet.from_arrays(arrays, fps=10, encoder="abc")
    return measure_progress(videos, "episode_000002", goal=videos.subset(["episode_000002"]))


def test_rows_are_those_of_the_data_set_and_tell_their_meaning(report, tmp_path: Path) -> None:
    places = read_places(write_lerobot(tmp_path / "set", LENGTHS))
    table, facts = read_signals(write_frame_signals(tmp_path / "x.parquet", report, places))
    assert table["index"].to_pylist() == list(range(sum(LENGTHS)))
    assert facts["provenance"]["reference"] == "episode_000002"
    rows = table.to_pylist()
    last = [row for row in rows if row["episode_index"] == 2]
    wanted = np.arange(15) / 14
    assert [row["progress_sparse"] for row in last] == pytest.approx(wanted, abs=0.02)
    assert all(row["progress_sparse"] == row["progress_dense"] for row in rows)
    assert [row["time_only"] for row in last] == pytest.approx(wanted)
    assert [row["reward"] for row in last] == pytest.approx(report.rewards["episode_000002"])
    stopped = [row for row in rows if row["episode_index"] == 1]  # the clock says all is done, the action not
    assert stopped[-1]["time_only"] == 1.0 and stopped[-1]["progress_sparse"] == pytest.approx(
        8 / 14, abs=0.02
    )


def test_frames_without_a_place_are_refused_and_nothing_is_written(report, tmp_path: Path) -> None:
    places = read_places(write_lerobot(tmp_path / "set", LENGTHS))
    few = {name: place for name, place in places.items() if name != "episode_000001"}
    with pytest.raises(DataError, match="episode_000001 is no episode of the data set"):
        write_frame_signals(tmp_path / "x.parquet", report, few)
    wrong = {**places, "episode_000001": EpisodePlace(1, 12, 8)}
    with pytest.raises(DataError, match="episode_000001 has 9 frames, the data set 8"):
        write_frame_signals(tmp_path / "x.parquet", report, wrong)
    assert not (tmp_path / "x.parquet").exists()
    with pytest.raises(DataError, match=r"neither meta/info\.json nor episodes\.csv"):
        read_places(tmp_path)


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
def test_episodes_are_unpacked_with_their_places(tmp_path: Path, version: str) -> None:
    root = write_lerobot(tmp_path / "set", LENGTHS, version=version)
    prepare("lerobot", root, tmp_path / "plain")
    dataset = read_dataset(tmp_path / "plain")
    assert dataset.names == ("episode_000000", "episode_000001", "episode_000002")
    assert [probe(record.path).num_frames for record in dataset] == list(LENGTHS)
    assert [record.split for record in dataset] == ["train", "train", "val"]
    assert read_places(tmp_path / "plain") == read_places(root)
    prepare("lerobot", root, tmp_path / "states", options={"states": "true"})
    states = [record.kind for record in read_dataset(tmp_path / "states")]
    assert states == ["sequence"] * 3


def test_a_data_set_with_a_file_per_episode_is_a_folder_of_videos(tmp_path: Path) -> None:
    root = write_lerobot(tmp_path / "set", LENGTHS, tasks=("pick up", "put down"))
    dataset = read_dataset(root)
    assert dataset.names == ("episode_000000", "episode_000001", "episode_000002")
    assert [record.action for record in dataset] == ["pick up", "put down", "pick up"]
    assert [record.split for record in dataset] == ["train", "train", "val"]
    assert CAMERA in str(dataset.records[0].path)
    packed = write_lerobot(tmp_path / "packed", LENGTHS, version="v3.0")
    with pytest.raises(
        DataError, match=r"packs several episodes into one video\. Unpack it first: cycleback data"
    ):
        read_dataset(packed)


def test_a_table_of_places_with_wrong_numbers_is_refused(tmp_path: Path) -> None:
    for row, message in (
        ("a,1,x,3", "expected three whole numbers"),
        ("a,1,2,3\na,2,5,3", "'a' is listed twice"),
    ):
        (tmp_path / "episodes.csv").write_text(f"video,episode_index,first_index,frames\n{row}\n")
        with pytest.raises(DataError, match=message):
            read_places(tmp_path)
