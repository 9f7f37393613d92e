import csv
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from cycleback.data import read_dataset
from cycleback.errors import ConfigError, DataError
from cycleback.prepare import prepare
from cycleback.prepare.golfdb import EVENTS
from cycleback.video import write_video


@pytest.fixture
def write_clip(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(folder: str, name: str) -> Path:
        (tmp_path / "golf" / folder).mkdir(parents=True, exist_ok=True)
        frames = [np.full((16, 16, 3), 8 * index, np.uint8) for index in range(20)]
        return write_video(tmp_path / "golf" / folder / f"{name}.mp4", frames, fps=30)

    return write


def write_table(root: Path, rows: list[list[object]]) -> None:
    with (root / "labels.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["id", "role", "num_frames", *EVENTS, "player"], *rows])


def write_mat(root: Path, swings: list[tuple[int, int, list[int], int]]) -> None:
    """golfDB.mat as distributed: a 1 x n struct of ten fields."""
    names = ["id", "youtube_id", "player", "sex", "club", "view", "slow", "events", "bbox", "split"]
    table = np.empty((1, len(swings)), dtype=[(name, object) for name in names])
    for index, (swing, slow, events, split) in enumerate(swings):
        frames = np.array([events], dtype=np.uint16)
        table[0, index] = (
            swing,
            "f1BWA5F87Jc",
            "A B",
            "f",
            "driver",
            "face-on",
            slow,
            frames,
            np.ones((1, 4)),
            split,
        )
    savemat(root / "golfDB.mat", {"golfDB": table})


def test_table_is_read_back(write_clip: Callable[[str, str], Path], tmp_path: Path) -> None:
    root = write_clip("videos", "0001").parents[1]
    write_clip("videos", "0002")
    write_table(
        root, [["0001", "train", 20, *range(2, 10), "A B"], ["0002", "val_slow", 20, *range(3, 11), "C D"]]
    )
    report = prepare("golfdb", root, tmp_path / "out")
    dataset = read_dataset(tmp_path / "out")
    assert dataset.event_names == EVENTS and list(dataset["0002"].events.values()) == list(range(3, 11))
    assert report.videos == {"": {"train": 1, "val_slow": 1}} and report.missing == ()
    assert dataset.persons == {"0001": "A B", "0002": "C D"}
    assert os.path.samefile(tmp_path / "out" / "0001.mp4", root / "videos" / "0001.mp4")


def test_the_authors_annotations_are_read_back(
    write_clip: Callable[[str, str], Path], tmp_path: Path
) -> None:
    root = write_clip("videos_160", "0").parents[1]
    for name in ("1", "2"):
        write_clip("videos_160", name)
    events = [100, *range(103, 111), 119]
    write_mat(root, [(0, 0, events, 1), (1, 0, events, 2), (2, 1, events, 2)])
    prepare("golfdb", root, tmp_path / "out", options={"fold": 2, "link": False})
    dataset = read_dataset(tmp_path / "out")
    assert {record.name: record.split for record in dataset} == {"0": "train", "1": "val", "2": "val_slow"}
    assert list(dataset["0"].events.values()) == list(range(3, 11))


def test_absent_videos_are_listed(write_clip: Callable[[str, str], Path], tmp_path: Path) -> None:
    root = write_clip("videos", "0001").parents[1]
    write_table(root, [[name, "train", 20, *range(8), "x"] for name in ("0001", "0002", "0003")])
    report = prepare("golfdb", root, tmp_path / "out")
    assert report.total == 1 and len(report.missing) == 1
    assert "2 of 3 videos in" in report.missing[0] and "(first: 0002.mp4)" in report.missing[0]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (20, r"line 2: finish is at frame 20, but 0001\.mp4 ends at frame 19"),
        ("-1", "finish is '-1', expected a 0-based frame"),
    ],
)
def test_a_label_outside_the_video_is_refused(
    write_clip: Callable[[str, str], Path], tmp_path: Path, frame: object, message: str
) -> None:
    root = write_clip("videos", "0001").parents[1]
    write_table(root, [["0001", "train", 20, *range(7), frame, "x"]])
    with pytest.raises(DataError, match=message):
        prepare("golfdb", root, tmp_path / "out")


def test_a_name_that_leaves_the_folder_is_refused(
    write_clip: Callable[[str, str], Path], tmp_path: Path
) -> None:
    root = write_clip("videos", "0001").parents[1]
    write_table(root, [["../videos/0001", "train", 20, *range(8), "x"]])
    with pytest.raises(DataError, match=r"'\.\./videos/0001' cannot be the name of a video"):
        prepare("golfdb", root, tmp_path / "out")


def test_no_video_at_all_is_an_error(tmp_path: Path) -> None:
    write_table(tmp_path, [["0001", "train", 20, *range(8), "x"]])
    with pytest.raises(DataError, match="no folder 'videos' in"):
        prepare("golfdb", tmp_path, tmp_path / "out")
    (tmp_path / "videos").mkdir()
    with pytest.raises(DataError, match=r"no video of golfdb in .* could be used.*1 of 1 videos.*0001\.mp4"):
        prepare("golfdb", tmp_path, tmp_path / "out")


@pytest.mark.parametrize(
    ("content", "message"), [({"x": 1}, "golfDB"), ({"golfDB": np.ones(3)}, "row 0: expected 10 fields")]
)
def test_another_mat_file_is_refused(tmp_path: Path, content: dict[str, object], message: str) -> None:
    (tmp_path / "videos_160").mkdir()
    savemat(tmp_path / "golfDB.mat", content)
    with pytest.raises(DataError, match=message):
        prepare("golfdb", tmp_path, tmp_path / "out")


def test_folder_without_annotations_and_bad_fold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no GolfDB in .*: expected labels\.csv with videos/"):
        prepare("golfdb", tmp_path, tmp_path / "out")
    with pytest.raises(ConfigError, match="fold must be 1, 2, 3 or 4, got 5"):
        prepare("golfdb", tmp_path, tmp_path / "out", options={"fold": 5})


def test_real_swings_are_read_back(shared_data: Path, tmp_path: Path) -> None:
    lines = (shared_data / "golf" / "labels.csv").read_text().splitlines()
    (tmp_path / "golf").mkdir()
    (tmp_path / "golf" / "labels.csv").write_text("\n".join(lines[:5]) + "\n")
    (tmp_path / "golf" / "videos").symlink_to(shared_data / "golf" / "videos")
    report = prepare("golfdb", tmp_path / "golf", tmp_path / "out", options={"link": False})
    dataset = read_dataset(tmp_path / "out")
    assert report.total == 4 and report.labelled == 4
    row = lines[1].split(",")
    assert [int(frame) for frame in dataset[row[0]].events.values()] == [int(cell) for cell in row[3:11]]
