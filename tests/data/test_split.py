from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycleback.data import VideoRecord, read_splits, split_dataset
from cycleback.errors import DataError


def videos(count: int, action: str = "", start: int = 0) -> list[VideoRecord]:
    names = [f"{action}/clip{number}" for number in range(start, start + count)]
    return [VideoRecord(name, Path(name), action=action) for name in names]


def splits(records: list[VideoRecord], **settings: float) -> dict[str, str | None]:
    return {record.name: record.split for record in split_dataset(records, **settings)}


def test_adding_videos_moves_no_other() -> None:
    few, many = splits(videos(60)), splits(videos(200) + videos(50, "other"))
    assert {name: many[name] for name in few} == few


def test_removing_other_actions_or_reordering_changes_nothing() -> None:
    one, two = videos(40, "one"), videos(40, "two")
    both = splits(two[::-1] + one)
    assert splits(one).items() <= both.items()


def test_the_share_held_out_is_met_on_average() -> None:
    counts = [list(splits(videos(500), held_out=0.3, seed=seed).values()).count("val") for seed in range(20)]
    assert 0.28 < sum(counts) / (20 * 500) < 0.32  # standard error 0.0046


def test_another_seed_holds_out_other_videos_and_the_same_seed_the_same() -> None:
    assert splits(videos(50), seed=1) == splits(videos(50), seed=1) != splits(videos(50), seed=2)


@given(st.integers(1, 12), st.integers(0, 1000), st.floats(0.01, 0.95))
def test_every_action_keeps_two_to_train_on_and_holds_some_out(
    count: int, seed: int, held_out: float
) -> None:
    values = list(splits(videos(count, "a"), held_out=held_out, seed=seed).values())
    assert values.count("train") >= min(2, count)
    assert values.count("val") >= (0 if count < 3 else 1 if count < 6 else 2)


def test_holding_nothing_out_holds_nothing_out() -> None:
    assert set(splits(videos(30), held_out=0).values()) == {"train"}
    with pytest.raises(ValueError, match=r"held_out must be in \[0, 1\), got 1"):
        splits(videos(3), held_out=1)


def test_the_split_is_the_same_on_every_machine() -> None:
    held = [name for name, split in splits(videos(12)).items() if split == "val"]
    assert held == ["/clip2", "/clip10"]


def test_a_splits_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "splits.csv").write_text("video,split\na.mp4,Train\nb,validation\nc,holdout\na.mp4,train\n")
    assert read_splits(tmp_path / "splits.csv") == {"a.mp4": "train", "b": "val", "c": "holdout"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [("a,train\na,val\n", "line 3: a is in 'train' and in 'val'"), ("a,\n", "line 2: .* must not be empty")],
)
def test_a_splits_file_that_contradicts_itself_is_an_error(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "splits.csv").write_text("video,split\n" + rows)
    with pytest.raises(DataError, match=message):
        read_splits(tmp_path / "splits.csv")


def test_a_person_is_on_one_side_only() -> None:
    people = [f"person {number % 7}" for number in range(40)]
    records = [VideoRecord(f"clip_{i}", Path(f"clip_{i}.mp4"), person=who) for i, who in enumerate(people)]
    for seed in range(5):
        split = split_dataset(records, 0.3, seed)
        sides = {
            part: {record.person for record in split if record.split == part} for part in ("train", "val")
        }
        assert sides["train"] and sides["val"] and not sides["train"] & sides["val"]
