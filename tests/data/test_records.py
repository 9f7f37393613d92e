from pathlib import Path

import pytest

from cycleback.data import Dataset, VideoRecord
from cycleback.data.records import NameIndex, natural_key, remove_suffix
from cycleback.errors import DataError

RECORDS = tuple(
    VideoRecord(name, Path(name), action=action, split=split)
    for name, action, split in [("a", "pour", "train"), ("b", "lift", "val"), ("c", "pour", None)]
)
DATASET = Dataset(Path("root"), RECORDS)


def test_a_data_set_is_a_collection_of_records() -> None:
    assert len(DATASET) == 3 and list(DATASET) == list(RECORDS)
    assert DATASET["b"].action == "lift" and DATASET.actions == ("lift", "pour")
    with pytest.raises(KeyError, match="d"):
        DATASET["d"]


def test_subsets_keep_the_order_and_refuse_unknown_names() -> None:
    assert DATASET.subset(["c", "a"]).names == ("a", "c")
    with pytest.raises(KeyError, match="no video 'x' in root"):
        DATASET.subset(["a", "x"])


def test_a_split_that_is_empty_says_which_there_are() -> None:
    assert DATASET.split("val").names == ("b",)
    with pytest.raises(DataError, match=r"no video in split 'test' \(splits: train, val; 3 videos\)"):
        DATASET.split("test")


NAMES = ("train/cup/a", "train/cup/b", "val/cup/b", "K87g_254.0_259.0", "top")


def test_numbers_sort_by_value() -> None:
    names = ["clip10", "clip2", "clip1", "10", "9", "b1/x", "clip2b"]
    assert sorted(names, key=natural_key) == ["9", "10", "b1/x", "clip1", "clip2", "clip2b", "clip10"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.mp4", "a"), ("a.MOV", "a"), ("x_259.0", "x_259.0"), ("p.npz", "p"), ("n.txt", "n.txt")],
)
def test_only_suffixes_of_videos_are_taken_off(name: str, expected: str) -> None:
    assert remove_suffix(name) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("train/cup/a", "train/cup/a"),
        ("a.mp4", "train/cup/a"),
        ("cup/a", "train/cup/a"),
        (r"train\cup\a.mov", "train/cup/a"),
        ("./top.MP4", "top"),
        ("K87g_254.0_259.0.mp4", "K87g_254.0_259.0"),
        ("K87g_254.0_259.0", "K87g_254.0_259.0"),
        ("b", None),
        ("c", None),
        ("", None),
    ],
)
def test_a_written_name_finds_its_video(written: str, expected: str | None) -> None:
    assert NameIndex(NAMES).match(written) == expected


def test_a_full_name_wins_over_the_end_of_another() -> None:
    assert NameIndex(["a", "x/a"]).match("a.mp4") == "a"


def test_the_closest_name_is_offered_when_one_is_close() -> None:
    index = NameIndex(["pouring_001", "pouring_020"])
    assert index.suggest("pouring_021.mp4", otherwise="Add it.") == "Did you mean 'pouring_020'?"
    assert index.suggest("zzz", otherwise="Add it.") == "Add it."
