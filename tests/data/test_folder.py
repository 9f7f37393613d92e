import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycleback.data import VideoRecord, read_dataset, split_dataset
from cycleback.data.folder import name_files, pick_videos, read_splits, select_records
from cycleback.errors import DataError

Touch = Callable[..., Path]
Write = Callable[..., Path]


def test_a_flat_folder_is_one_action_in_natural_order(tmp_path: Path, touch_all: Touch) -> None:
    touch_all(tmp_path, "clip10.mp4", "clip2.MOV", "clip1.webm", "x_25.0_30.5.mkv")
    dataset = read_dataset(tmp_path)
    assert dataset.names == ("clip1", "clip2", "clip10", "x_25.0_30.5")
    assert dataset.actions == ("",) and {record.kind for record in dataset} == {"video"}
    assert dataset["clip2"].path == tmp_path / "clip2.MOV"


def test_what_is_not_a_video_is_ignored(tmp_path: Path, touch_all: Touch) -> None:
    touch_all(
        tmp_path, "a.mp4", ".hidden.mp4", "._a.mp4", ".git/b.mp4", "notes.txt", "truth.json", "anomalies.csv"
    )
    touch_all(tmp_path, "thumb1.jpg", "thumb2.jpg", "docs/page.html", "one/0001.png", "posters/front.jpg")
    touch_all(tmp_path, "pour/1.jpg", "pour/2.jpg", "pour/takes/b.mp4")
    assert read_dataset(tmp_path).names == ("a", "pour/takes/b")


def test_a_sub_folder_is_an_action_at_any_depth(tmp_path: Path, touch_all: Touch) -> None:
    touch_all(tmp_path, "top.mp4", "pour/a.mp4", "pour/b.mp4", "swing/golf/a.mp4")
    dataset = read_dataset(tmp_path)
    assert {record.name: record.action for record in dataset} == {
        "top": "",
        "pour/a": "pour",
        "pour/b": "pour",
        "swing/golf/a": "swing/golf",
    }


def test_folders_of_images_and_sequences_are_videos(
    tmp_path: Path, touch_all: Touch, write_images: Write
) -> None:
    write_images(tmp_path / "pour/take2.1", ["1.png", "2.png"])
    write_images(tmp_path / "pour/take10", ["f_01.jpg", "f_02.JPG", "cover.png"])
    touch_all(tmp_path, "pour/walk.npz", "pour/take10/fps.txt")
    found = [(record.name, record.kind, record.action) for record in read_dataset(tmp_path)]
    kinds = {"pour/take2.1": "frames", "pour/take10": "frames", "pour/walk": "sequence"}
    assert found == [(name, kind, "pour") for name, kind in kinds.items()]


@pytest.mark.parametrize("action", ["", "pour/"])
def test_train_and_val_folders_are_the_split(tmp_path: Path, touch_all: Touch, action: str) -> None:
    touch_all(tmp_path, f"train/{action}a.mp4", f"valid/{action}b.mp4", f"test/{action}c.mp4", "docs/x.txt")
    dataset = read_dataset(tmp_path)
    assert {record.name: record.split for record in dataset} == {
        f"test/{action}c": "test",
        f"train/{action}a": "train",
        f"valid/{action}b": "val",
    }
    assert dataset.actions == (action.rstrip("/"),)
    assert dict(dataset.given_split)[f"valid/{action}b"] == "val"


def test_a_video_beside_the_split_folders_is_an_error(tmp_path: Path, touch_all: Touch) -> None:
    touch_all(tmp_path, "train/a.mp4", "val/b.mp4", "more/c.mp4")
    with pytest.raises(DataError, match=r"more/c\.mp4 is outside the split folders"):
        read_dataset(tmp_path)


def test_a_folder_called_test_alone_is_an_action(tmp_path: Path, touch_all: Touch) -> None:
    assert read_dataset(touch_all(tmp_path, "test/a.mp4", "val/b.mp4")).actions == ("test", "val")


def test_a_splits_file_is_the_split(tmp_path: Path, touch_all: Touch) -> None:
    touch_all(tmp_path, "train/a.mp4", "train/b.mp4", "val/c.mp4")
    (tmp_path / "splits.csv").write_text("video,split\na.mp4,val\nc,train\nmissing,val\n")
    dataset = read_dataset(tmp_path)
    assert [record.split for record in dataset] == ["val", None, "train"]
    assert dataset.given_split == {"train/a": "val", "val/c": "train", "missing": "val"}
    assert dataset.actions == ("",)


def test_without_a_given_split_it_is_drawn_by_the_seed(tmp_path: Path, touch_all: Touch) -> None:
    touch_all(tmp_path, *(f"{number}.mp4" for number in range(20)))
    one, two = (read_dataset(tmp_path, seed=seed, held_out=0.5) for seed in (1, 2))
    assert not one.given_split and one.split("val").names != two.split("val").names
    assert sorted(one.split("val").names + one.split("train").names) == sorted(one.names)


def test_labels_reach_their_videos(
    tmp_path: Path, touch_all: Touch, caplog: pytest.LogCaptureFixture
) -> None:
    touch_all(tmp_path, "a.mp4", "b.mp4")
    (tmp_path / "labels.csv").write_text("video,event,frame\nb.mp4,end,9\nb,start,2\na,start,4\nc,start,1\n")
    with caplog.at_level(logging.WARNING):
        dataset = read_dataset(tmp_path)
    assert [dict(record.events) for record in dataset] == [{"start": 4}, {"start": 2, "end": 9}]
    assert dataset.event_names == ("start", "end")
    assert [label.video for label in dataset.labels] == ["b", "b", "a", "c"]
    assert "no video 'c'" in caplog.text


def test_each_sub_folder_may_have_its_own_labels(tmp_path: Path, touch_all: Touch) -> None:
    touch_all(tmp_path, "train/p_000.mp4", "val/p_000.mp4")
    (tmp_path / "train/labels.csv").write_text("video,event,frame\np_000,go,3\n")
    (tmp_path / "val/labels.csv").write_text("video,event,seconds\np_000.mp4,go,0.5\n")
    dataset = read_dataset(tmp_path)
    assert [(record.events["go"], record.unit) for record in dataset] == [(3, "frame"), (0.5, "seconds")]


def test_labels_may_lie_elsewhere(tmp_path: Path, touch_all: Touch) -> None:
    touch_all(tmp_path / "videos", "a.mp4")
    (tmp_path / "mine.csv").write_text("video,event,frame\na,go,3\n")
    assert read_dataset(tmp_path / "videos", labels=tmp_path / "mine.csv")["a"].events == {"go": 3}
    with pytest.raises(DataError, match=r"cannot read .*no\.csv"):
        read_dataset(tmp_path / "videos", labels=tmp_path / "no.csv")


@pytest.mark.parametrize(
    ("first", "second"), [("a.mp4", "a.mov"), ("a.mp4", "a.npz"), ("x/b.mp4", "x/b.mkv")]
)
def test_two_files_of_one_name_are_an_error(
    tmp_path: Path, touch_all: Touch, first: str, second: str
) -> None:
    touch_all(tmp_path, first, second)
    with pytest.raises(DataError, match="have the same name") as caught:
        read_dataset(tmp_path)
    assert first in str(caught.value) and second in str(caught.value)


def test_a_video_and_its_extracted_frames_are_an_error(
    tmp_path: Path, touch_all: Touch, write_images: Write
) -> None:
    write_images(touch_all(tmp_path, "a.mp4") / "a", ["1.png", "2.png"])
    with pytest.raises(DataError, match=r"a\.mp4 and a have the same name, 'a'"):
        read_dataset(tmp_path)


def test_an_empty_folder_says_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("nothing")
    with pytest.raises(DataError, match=r"no videos in .*\.mp4.*numbered images \.jpeg \.jpg \.png.*\.npz"):
        read_dataset(tmp_path)


def test_a_wrong_path_says_why(tmp_path: Path, touch_all: Touch, write_images: Write) -> None:
    touch_all(tmp_path, "a.mp4")
    with pytest.raises(DataError, match=r"no data set at .*a\.mp4: it is a file; pass the folder"):
        read_dataset(tmp_path / "a.mp4")
    with pytest.raises(DataError, match=r"no data set at .*none: it does not exist"):
        read_dataset(tmp_path / "none")
    with pytest.raises(DataError, match=r"frames is a folder of images"):
        read_dataset(write_images(tmp_path / "frames", ["1.png", "2.png"]))


def test_a_link_that_leads_back_is_followed_once(tmp_path: Path, touch_all: Touch) -> None:
    touch_all(tmp_path, "pour/a.mp4")
    os.symlink(tmp_path, tmp_path / "pour" / "loop")
    assert read_dataset(tmp_path).names == ("pour/a",)


def test_real_folders_are_read(shared_data: Path) -> None:
    assert len(read_dataset(shared_data / "golf" / "videos")) == 620
    with pytest.raises(DataError, match=r"labels\.csv: no column 'video' in its first line 'id,role"):
        read_dataset(shared_data / "golf" / "videos", labels=shared_data / "golf" / "labels.csv")


def test_people_are_read_from_their_table(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.mp4").touch()
    (tmp_path / "people.csv").write_text("video,person\na.mp4,Ann\nb,Ben\n")
    dataset = read_dataset(tmp_path)
    assert dataset.persons == {"a": "Ann", "b": "Ben"}


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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.mp4", "b.mp4", "c.mp4"):
        (tmp_path / name).write_bytes(b"x")
    return tmp_path


def test_files_are_named_by_their_stem_and_by_their_path_where_stems_clash() -> None:
    assert name_files([Path("x/a.mp4"), Path("b.mp4")]) == ["a", "b"]
    assert name_files([Path("x/a.mp4"), Path("y/a.mp4")]) == ["x/a.mp4", "y/a.mp4"]


def test_the_same_file_twice_is_one_video(folder: Path) -> None:
    records, events = select_records([folder / "a.mp4", folder / "a.mp4"])
    assert [record.name for record in records] == ["a"]
    assert list(events) == []


def test_a_folder_stands_for_its_videos(folder: Path) -> None:
    assert [record.name for record in select_records(folder)[0]] == ["a", "b", "c"]
    assert pick_videos([str(folder)], max_videos=2) == [folder / "a.mp4", folder / "b.mp4"]


def test_the_reference_comes_first(folder: Path) -> None:
    shown = pick_videos([str(folder)], reference="c", max_videos=2)
    assert shown == [folder / "c.mp4", folder / "a.mp4"]


def test_a_folder_among_files_is_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="is a folder; give video files, or this folder alone"):
        select_records([folder, folder / "a.mp4"])


def test_a_missing_file_is_refused_by_name(folder: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.mp4 does not exist; check the spelling"):
        select_records([folder / "a.mp4", folder / "gone.mp4"])


def test_a_folder_of_two_actions_is_not_shown_together(folder: Path) -> None:
    for name in ("golf", "tennis"):
        (folder / name).mkdir()
        (folder / f"{name[0]}.mp4").touch()
        (folder / name / "d.mp4").write_bytes(b"x")
    for name in "abcgt":
        (folder / f"{name}.mp4").unlink()
    with pytest.raises(DataError, match="holds golf, tennis: name the folder of one action"):
        pick_videos([str(folder)])


def test_what_is_skipped_or_not_understood_is_said(tmp_path: Path) -> None:
    for name in ("a.mp4", "b.gif", "c.gif"):
        (tmp_path / name).touch()
    with pytest.warns(UserWarning, match=r"b\.gif is not read \(2 such in its folder\): convert"):
        assert read_dataset(tmp_path).names == ("a",)
    (tmp_path / "b.gif").unlink()
    (tmp_path / "c.gif").unlink()
    (tmp_path / "labels.csv").write_text("clip;start;stop\na;1;2\n")
    with pytest.raises(DataError, match=r"no column 'video' .* converted by: cycleback data prepare"):
        read_dataset(tmp_path)
