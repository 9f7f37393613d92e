from collections.abc import Callable
from pathlib import Path

import pytest

from cycleback.data import phases_from_events, read_dataset
from cycleback.errors import DataError
from cycleback.prepare import prepare
from prepare.formats import example_bytes, jpeg, record_bytes

LABELS = [0, 0, 1, 1, 2, 2, 3, 4]


@pytest.fixture
def records(write_shard: Callable[..., Path]) -> Path:
    write_shard("pouring_train-0-of-2", ("wine", LABELS), ("milk", [0, 1, 2, 3, 4]))
    write_shard("pouring_train-1-of-2", ("tea", [1, 1, 2, 4]))
    return write_shard("pouring_val-0-of-1", ("water", LABELS)).parent


def test_clips_events_and_splits_are_read_back(records: Path, tmp_path: Path) -> None:
    report = prepare("pouring", records, tmp_path / "out")
    dataset = read_dataset(tmp_path / "out")
    assert {record.name: record.split for record in dataset} == {
        "milk": "train", "tea": "train", "water": "val", "wine": "train",
    }  # fmt: skip
    assert all(record.kind == "frames" and record.action == "" for record in dataset)
    assert dataset.event_names == (
        "hand touches bottle", "liquid starts exiting", "pouring complete", "bottle back on table",
    )  # fmt: skip
    assert report.videos == {"": {"train": 3, "val": 1}} and report.labelled == 4 and report.total == 4


@pytest.mark.parametrize(
    ("name", "labels"), [("wine", LABELS), ("milk", [0, 1, 2, 3, 4]), ("tea", [1, 1, 2, 4])]
)
def test_phases_are_the_frame_labels(records: Path, tmp_path: Path, name: str, labels: list[int]) -> None:
    prepare("pouring", records, tmp_path / "out")
    events = read_dataset(tmp_path / "out")[name].events.values()
    assert phases_from_events(list(events), len(labels)).tolist() == labels


def test_images_are_the_bytes_of_the_record(records: Path, tmp_path: Path) -> None:
    prepare("pouring", records, tmp_path / "out")
    images = sorted((tmp_path / "out" / "tea").iterdir())
    assert [image.name for image in images] == [f"{index:06d}.jpg" for index in range(4)]
    assert [image.read_bytes() for image in images] == [jpeg(20 * index) for index in range(4)]


def test_what_the_paper_has_more_is_listed(records: Path, tmp_path: Path) -> None:
    (records / "pouring_train-0-of-2.tfrecord").unlink()
    report = prepare("pouring", records.parent, tmp_path / "out")  # the folder above is good too
    assert report.missing == (
        "file pouring_train-0-of-2.tfrecord",
        "train: 1 of the paper's 70 videos",
        "val: 1 of the paper's 14 videos",
    )


def test_progress_counts_clips(records: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    prepare("pouring", records, tmp_path / "out", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_clips_of_one_name_are_told_apart(write_shard: Callable[..., Path], tmp_path: Path) -> None:
    write_shard("pouring_train-0-of-1", ("a/b", LABELS))
    folder = write_shard("pouring_val-0-of-1", ("a_b", None)).parent
    report = prepare("pouring", folder, tmp_path / "out")
    assert read_dataset(tmp_path / "out").names == ("a_b", "a_b-2")
    assert any("renamed" in line and "2 (first: 'a/b' to 'a_b')" in line for line in report.warnings)
    assert "videos without frame labels: 1 (a_b-2)" in report.warnings


def test_labels_are_stretched_to_the_frames(write_shard: Callable[..., Path], tmp_path: Path) -> None:
    path = write_shard("pouring_val-0-of-1", ("wine", [0, 1, 2, 3]), frames=8)
    report = prepare("pouring", path.parent, tmp_path / "out")
    assert list(read_dataset(tmp_path / "out")["wine"].events.values()) == [2, 4, 6]
    assert any("wine: 4 labels, 8 frames" in line for line in report.warnings)


def test_a_cut_off_shard_leaves_nothing_behind(records: Path, tmp_path: Path) -> None:
    shard = records / "pouring_val-0-of-1.tfrecord"
    shard.write_bytes(shard.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"pouring_val-0-of-1\.tfrecord: cut off"):
        prepare("pouring", records, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pouring_tfrecords"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x0a\x7f", "record 0: not a clip of Pouring: 127 bytes"),
        (example_bytes("x", [jpeg(0)], None), "found label, len, name, video"),
        (
            example_bytes("x", [b"\xff\xd8\xff", b"GIF89a.."], None),
            "frame 1 of x is neither JPEG nor PNG.*GIF89a",
        ),
    ],
)
def test_records_of_something_else_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "pouring_val-0-of-1.tfrecord").write_bytes(record_bytes(data))
    with pytest.raises(DataError, match=message):
        prepare("pouring", tmp_path / "in", tmp_path / "out")


def test_a_folder_without_shards_says_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(
        DataError, match=r"no Pouring records in .*in: expected files such as pouring_train-0-of-2"
    ):
        prepare("pouring", tmp_path / "in", tmp_path / "out")
