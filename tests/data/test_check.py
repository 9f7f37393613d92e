"""Each problem is made on purpose in a sound data set, and must be the only one found."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from cycleback.data import DatasetReport, check_dataset, read_dataset
from cycleback.video import write_video

Write = Callable[..., Path]


def write_clip(path: Path, *, frames: int = 24, fps: float = 25, seed: int | None = None) -> Path:
    chance = np.random.default_rng(7 if seed is None else seed)
    return write_video(path, chance.integers(0, 255, (frames, 16, 24, 3), dtype=np.uint8), fps=fps)


@pytest.fixture(scope="module")
def sound_videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    for number, name in enumerate("abcd"):
        write_clip(folder / f"clip_{name}.mp4", seed=number)
    return folder


@pytest.fixture
def folder(sound_videos: Path, tmp_path: Path) -> Path:
    """Four videos of 24 frames with two labels each."""
    shutil.copytree(sound_videos, tmp_path / "clips")
    rows = [
        f"clip_{name},{event},{frame}" for name in "abcd" for event, frame in (("touch", 5), ("pour", 12))
    ]
    (tmp_path / "clips" / "labels.csv").write_text("\n".join(["video,event,frame", *rows, ""]))
    return tmp_path / "clips"


def add_labels(folder: Path, *rows: str) -> None:
    with (folder / "labels.csv").open("a") as stream:
        stream.writelines(f"{row}\n" for row in rows)


def found(folder: Path, *, frames_per_video: int = 20) -> list[str]:
    report = check_dataset(read_dataset(folder), frames_per_video=frames_per_video)
    return [str(problem) for problem in report.problems]


def test_a_sound_data_set_has_no_problem(folder: Path) -> None:
    calls: list[tuple[int, int]] = []
    report = check_dataset(
        read_dataset(folder), frames_per_video=20, progress=lambda done, total: calls.append((done, total))
    )
    assert report.ok and report.problems == () and calls == [(1, 4), (2, 4), (3, 4), (4, 4)]
    row = report.rows[0]
    assert (row.name, row.action, row.kind, row.num_frames, row.labels) == ("clip_a", "", "video", 24, 2)
    assert row.size == (16, 24) and row.fps == pytest.approx(25) and row.duration_s == pytest.approx(0.96)
    assert json.loads(json.dumps(asdict(report)))["rows"][0]["split"] in ("train", "val")


def test_an_unreadable_video_is_an_error(folder: Path) -> None:
    (folder / "clip_b.mp4").write_bytes(b"this is no video at all")
    report = check_dataset(read_dataset(folder), frames_per_video=20)
    assert not report.ok and report.rows[1].num_frames == 0 and report.rows[1].size == ()
    (problem,) = report.problems
    assert problem.video == "clip_b" and problem.message.startswith("cannot be read: ")


def test_a_damaged_video_is_a_warning_that_says_how_much_is_lost(folder: Path) -> None:
    path = write_clip(folder / "clip_b.mp4.mp4", frames=60)
    os.truncate(path, path.stat().st_size // 2)
    os.replace(path, folder / "clip_b.mp4")
    (problem,) = found(folder, frames_per_video=2)
    assert problem.startswith("warning: clip_b: ") and "of 60 frames" in problem


def test_a_video_of_one_frame_is_an_error_and_a_short_one_a_warning(folder: Path) -> None:
    write_clip(folder / "clip_b.mp4.mp4", frames=15)
    os.replace(folder / "clip_b.mp4.mp4", folder / "clip_b.mp4")
    (problem,) = found(folder)
    assert problem.startswith("warning: 1 of ") and "fewer than 20 frames (the shortest 15)" in problem
    assert found(folder, frames_per_video=15) == []
    write_clip(folder / "clip_b.mp4.mp4", frames=1)
    os.replace(folder / "clip_b.mp4.mp4", folder / "clip_b.mp4")
    assert "error: clip_b: has 1 frame, and training leaves it out. Remove the video." in found(folder)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (
            "clip_a,end,24",
            r"error: clip_a: 'end' is at frame 24 (LABELS, line 10), but the video ends at frame 23.",
        ),
        ("clip_a,end,-1", r"error: clip_a: 'end' is at frame -1 (LABELS, line 10), before the start."),
        (
            "clip_x,pour,3",
            r"error: clip_x: LABELS, line 10 labels a video that does not exist. Did you mean 'clip_",
        ),
        (
            "walking,pour,3",
            r"error: walking: LABELS, line 10 labels a video that does not exist. Remove its rows",
        ),
        (
            "clip_a,pour,13",
            r"error: clip_a: 'pour' is at 12 and again at 13 (LABELS, line 10). The first row is used",
        ),
        ("clip_a,pour,12", r"warning: clip_a: 'pour' is at 12 and again at 12 (LABELS, line 10)."),
    ],
)
def test_a_wrong_label_is_found(folder: Path, row: str, problem: str) -> None:
    add_labels(folder, row)
    problems = [each for each in found(folder) if "has no label for" not in each]
    assert len(problems) == 1
    assert problems[0].startswith(problem.replace("LABELS", str(folder / "labels.csv")))


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (["clip_a,3,clip_b,4", "clip_b.mp4,9,clip_a,8"], None),
        (
            ["clip_a,3,clip_b,4", "clip_b,2,clip_a,8"],
            "error: pins.csv: pins 3:4 and 8:2 of clip_a and clip_b cross",
        ),
        (
            ["clip_b,24,clip_a,3"],
            "error: pins.csv: pin 3:24 names frame 24 of clip_b, which has frames 0 to 23",
        ),
        (
            ["clip_a,3,clip_x,4"],
            "warning: clip_x: pins.csv names a video that does not exist. Did you mean 'clip_",
        ),
        (["clip_a,3,clip_b,x"], "error: PINS, line 2, frame_b: expected a number"),
        (["clip_a,3,clip_a.mp4,4"], "error: a pin joins clip_a with itself"),
    ],
)
def test_a_wrong_pin_is_found(folder: Path, rows: list[str], problem: str | None) -> None:
    path = folder / "pins.csv"
    path.write_text("\n".join(["video_a,frame_a,video_b,frame_b", *rows]))
    problems = found(folder)
    assert len(problems) == (problem is not None)
    assert all(each.startswith(str(problem).replace("PINS", str(path))) for each in problems)


def test_labels_in_seconds_past_the_end_are_found(folder: Path) -> None:
    (folder / "labels.csv").write_text(
        "video,event,seconds\nclip_a,x,0.9\nclip_b,x,1.5\nclip_c,x,0\nclip_d,x,0.95\n"
    )
    (problem,) = found(folder)
    assert problem.startswith("error: clip_b: 'x' is at seconds 1.5") and "ends at 0.920 s" in problem


def test_events_in_another_order_than_usual_are_a_warning(folder: Path) -> None:
    text = (folder / "labels.csv").read_text()
    (folder / "labels.csv").write_text(text.replace("clip_c,touch,5", "clip_c,touch,15"))
    assert found(folder) == [
        "warning: clip_c: 'pour' (12) comes before 'touch' (15), but after it in 3 of 4 videos. "
        "Check both labels."
    ]


def test_missing_events_are_a_warning(folder: Path) -> None:
    lines = (folder / "labels.csv").read_text().splitlines()
    kept = [line for line in lines if "clip_b,pour" not in line and "clip_d" not in line]
    (folder / "labels.csv").write_text("\n".join(kept))
    first, second = found(folder)
    assert first.startswith("warning: clip_b: has no label for 'pour' (in 2 of 3 videos).")
    assert second.startswith("warning: clip_d: has no labels, but 3 of 4 videos do.")


def test_an_action_of_one_video_is_an_error(folder: Path) -> None:
    (folder / "labels.csv").unlink()
    for name, action in (("clip_a", "pour"), ("clip_b", "pour"), ("clip_c", "pour"), ("clip_d", "lift")):
        (folder / action).mkdir(exist_ok=True)
        os.replace(folder / f"{name}.mp4", folder / action / f"{name}.mp4")
    assert found(folder) == [
        "error: action 'lift' has only one video, lift/clip_d, and nothing to align it with. "
        "Add another video, or remove this one."
    ]


def test_a_split_that_leaves_too_few_to_train_on_is_an_error(folder: Path) -> None:
    rows = ["clip_a,train", "clip_b,val", "clip_c,val", "clip_d,val"]
    (folder / "splits.csv").write_text("\n".join(["video,split", *rows]))
    assert found(folder) == [
        "error: the data set has 4 videos but 1 to train on. Move at least 2 to the split 'train'."
    ]


def test_names_missing_from_the_split_or_from_the_folder_are_found(folder: Path) -> None:
    rows = ["clip_a,train", "clip_b,train", "clip_c,val", "clip_dd,val"]
    (folder / "splits.csv").write_text("\n".join(["video,split", *rows]))
    assert found(folder) == [
        "error: clip_dd: splits.csv lists a video that does not exist. Did you mean 'clip_d'?",
        "warning: clip_d: is in no split and not used. Add it to splits.csv.",
    ]


@pytest.mark.parametrize(("split", "level"), [("train", "warning"), ("val", "error")])
def test_a_copy_is_found_and_worse_when_it_is_held_out(folder: Path, split: str, level: str) -> None:
    shutil.copy(folder / "clip_a.mp4", folder / "clip_b.mp4")
    rows = ["clip_a,train", f"clip_b,{split}", "clip_c,train", "clip_d,val"]
    (folder / "splits.csv").write_text("\n".join(["video,split", *rows]))
    (problem,) = found(folder)
    assert problem.startswith(f"{level}: clip_b: is the same file as clip_a")
    assert ("one in train, one in val" in problem) is (split == "val")


def test_a_very_different_frame_rate_is_a_warning(folder: Path) -> None:
    write_clip(folder / "clip_b.mp4.mp4", fps=50)
    os.replace(folder / "clip_b.mp4.mp4", folder / "clip_b.mp4")
    (problem,) = found(folder)
    assert problem.startswith("warning: clip_b: has 50 frames per second, but 25 is usual here")


def test_videos_beside_folders_of_actions_are_a_warning(folder: Path) -> None:
    (folder / "labels.csv").unlink()
    (folder / "pour").mkdir()
    for name in "ab":
        os.replace(folder / f"clip_{name}.mp4", folder / "pour" / f"{name}.mp4")
    (problem,) = found(folder)
    assert problem.startswith("warning: 2 videos are outside the action folders")


def sequences(folder: Path, **features: np.ndarray) -> DatasetReport:
    folder.mkdir(exist_ok=True)
    for name, array in features.items():
        np.savez(folder / f"{name}.npz", features=array, fps=20)
    return check_dataset(read_dataset(folder), frames_per_video=10)


def test_sequences_are_measured(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    report = sequences(tmp_path / "s", **{name: chance.random((30, 7)) for name in "abc"})
    row = report.rows[1]
    assert report.problems == () and (row.kind, row.num_frames, row.size) == ("sequence", 30, (7,))
    assert row.fps == pytest.approx(20) and row.duration_s == pytest.approx(1.5)


def test_nan_and_other_sizes_in_sequences_are_errors(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    broken, narrow = chance.random((30, 7)), chance.random((30, 6))
    broken[4, 2], broken[9] = np.nan, np.inf
    report = sequences(tmp_path / "s", a=chance.random((30, 7)), b=broken, c=narrow)
    assert [str(problem) for problem in report.problems] == [
        "error: b: 2 of 30 frames contain NaN or infinity (first: 4). Fill in or remove these frames.",
        "error: c: has 6 features per frame; 2 of 3 sequences have 7. Recreate or remove it.",
    ]


def test_sequences_among_videos_are_an_error(folder: Path) -> None:
    np.savez(folder / "clip_e.npz", features=np.ones((30, 3)))
    problems = [problem for problem in found(folder) if "no labels" not in problem]
    assert len(problems) == 1
    assert problems[0].startswith("error: 1 of 5 are .npz sequences (clip_e, …), the rest videos.")


def test_folders_of_images_are_measured_and_their_damage_found(tmp_path: Path, write_images: Write) -> None:
    for name in "ab":
        write_images(tmp_path / name, [f"{number}.png" for number in range(1, 26)])
    (tmp_path / "a" / "fps.txt").write_text("25")
    report = check_dataset(read_dataset(tmp_path))
    assert report.ok and report.rows[0].size == (4, 6) and report.rows[0].duration_s == pytest.approx(1)
    (tmp_path / "b" / "7.png").write_bytes(b"no image")
    (problem,) = found(tmp_path)
    assert problem.startswith("error: b: cannot be read: cannot read the image") and "7.png" in problem


def test_errors_come_before_warnings(folder: Path) -> None:
    shutil.copy(folder / "clip_a.mp4", folder / "clip_b.mp4")
    add_labels(folder, "clip_z,pour,1", "clip_c,pour,99")
    report = check_dataset(read_dataset(folder, held_out=0), frames_per_video=20)
    assert [problem.level for problem in report.problems] == ["error", "error", "error", "warning"]


def test_a_clip_with_cuts_is_told(folder: Path) -> None:
    from long_recordings import draw, wander

    rng = np.random.default_rng(0)
    shots = [
        draw(wander(4 * count, rng)[:count], scene=scene) for scene, count in ((0, 30), (1, 40), (6, 25))
    ]
    (folder / "clip_a.mp4").unlink()
    write_video(folder / "clip_a.mp4", np.concatenate(shots), fps=25)
    assert found(folder) == [
        "warning: clip_a: has 2 shot changes, at 1.20 s, 2.80 s. Cut it into shots: cycleback data shots "
        f"{folder / 'clip_a.mp4'} --clips FOLDER"
    ]
