from pathlib import Path

import numpy as np
import pytest

from coded_clips import read_number
from cycleback.data.lerobot import is_lerobot, read_lerobot
from cycleback.errors import DataError
from lerobot_folders import CAMERA, FPS, state_of, write_lerobot

pytest.importorskip("pyarrow")
LENGTHS = (7, 12, 9)


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
def test_every_episode_has_its_own_frames_and_states(tmp_path: Path, version: str) -> None:
    dataset = read_lerobot(write_lerobot(tmp_path / "set", LENGTHS, version=version, tasks=("a", "b")))
    assert is_lerobot(dataset.root) and not is_lerobot(tmp_path)
    assert (dataset.version, dataset.fps, dataset.robot) == (version, FPS, "kinova")
    assert dataset.cameras == (CAMERA,) and dataset.columns["observation.state"] == 2
    assert [e.num_frames for e in dataset.episodes] == list(LENGTHS)
    assert [e.first_index for e in dataset.episodes] == [0, 7, 19]
    assert [e.tasks for e in dataset.episodes] == [("a",), ("b",), ("a",)] and dataset.tasks == ("a", "b")
    assert [e.split for e in dataset.episodes] == ["train", "train", "val"]
    packed = version == "v3.0"
    assert [e.videos[CAMERA].is_whole for e in dataset.episodes] == [not packed, not packed, True]
    for episode in dataset.episodes:
        chunks = list(dataset.iter_frames(episode))
        shown = [read_number(frame) for chunk in chunks for frame in chunk.frames]
        assert shown == [100 * episode.index + f for f in range(episode.num_frames)]
        np.testing.assert_allclose(chunks[0].times, np.arange(episode.num_frames) / FPS)
        expected = [state_of(episode.index, f) for f in range(episode.num_frames)]
        np.testing.assert_array_equal(dataset.read_column(episode), expected)


def test_packed_videos_with_rounded_time_stamps_are_cut_at_the_right_frame(tmp_path: Path) -> None:
    """Version 3 sums up durations as floats: a start may be off by a little."""
    import pyarrow as pa
    from pyarrow import parquet

    root = write_lerobot(tmp_path / "set", LENGTHS, version="v3.0")
    table = root / "meta/episodes/chunk-000/file-000.parquet"
    rows = parquet.read_table(table).to_pylist()
    rows[1][f"videos/{CAMERA}/from_timestamp"] += 0.031
    parquet.write_table(pa.Table.from_pylist(rows), table)
    dataset = read_lerobot(root)
    assert dataset.frame_numbers(dataset.episode(1)).tolist() == list(range(7, 19))
    rows[1][f"videos/{CAMERA}/from_timestamp"] += 0.9
    parquet.write_table(pa.Table.from_pylist(rows), table)
    moved = read_lerobot(root)
    with pytest.raises(DataError, match=r"no frame at 2\.\d+ s for frame \d+ of episode_000001"):
        moved.frame_numbers(moved.episode(1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"v2.1"', '"v9.0"', r"format version 'v9.0' is not known, expected v2.0, v2.1 or v3.0"),
        ("data/chunk", "../../chunk", "leads out of"),
        ("{episode_index:06d}.mp4", "{nothing}.mp4", r"no value for '\{nothing\}'"),
        ('"fps": 10', '"fps": 0', "expected a number above 0, got 0"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    info = write_lerobot(tmp_path / "set", (4, 4)) / "meta" / "info.json"
    info.write_text(info.read_text().replace(old, new))
    with pytest.raises(DataError, match=message):
        read_lerobot(tmp_path / "set")


def test_missing_and_cut_tables_are_named(tmp_path: Path) -> None:
    dataset = read_lerobot(write_lerobot(tmp_path / "set", (4, 4)))
    first, second = dataset.episodes
    first.table.unlink()
    with pytest.raises(DataError, match=r"episode_000000.parquet is missing"):
        dataset.read_column(first)
    second.table.write_bytes(second.table.read_bytes()[:200])
    with pytest.raises(DataError, match=r"cannot read .*episode_000001.parquet as Parquet"):
        dataset.read_column(second)
    with pytest.raises(DataError, match=r"no column of numbers 'observation.stat'. Did you mean"):
        dataset.read_column(second, "observation.stat")
    with pytest.raises(DataError, match=r"no LeRobot data set at"):
        read_lerobot(tmp_path)
