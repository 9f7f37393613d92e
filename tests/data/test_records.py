from pathlib import Path

import pytest

from cycleback.data import Dataset, VideoRecord
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
