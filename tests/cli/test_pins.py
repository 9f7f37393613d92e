"""Pins on the command line and in pins.csv, for every command that uses them."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cycleback.data import Pin, read_pins, write_pins
from cycleback.embeddings import EmbeddingSet
from cycleback.video import Audio, write_video

FRAMES = {"a": 30, "b": 40, "c": 35}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three takes of one walk at 10 frames per second, in the folder of one action."""
    tone = Audio(np.sin(np.arange(48000) * 0.3).astype(np.float32)[None] * 0.5, 16000)
    for name, count in FRAMES.items():
        frames = (np.full((32, 48, 3), 20 + 4 * i, np.uint8) for i in range(count))
        write_video(tmp_path / "takes" / "walk" / f"{name}.mp4", frames, fps=10, audio=tone)
    return tmp_path / "takes"


@pytest.fixture
def saved(folder: Path, tmp_path: Path) -> Path:
    """Their embeddings, as a data set names them."""
    walk = np.cumsum(np.random.default_rng(0).normal(size=(200, 8)), axis=0)
    arrays = {f"walk/{name}": walk[np.linspace(0, 199, count).astype(int)] for name, count in FRAMES.items()}
    paths = {name: folder / f"{name}.mp4" for name in arrays}
    return EmbeddingSet.from_arrays(arrays, paths=paths, fps=10).save(tmp_path / "set")


def match(command, *words: object) -> tuple[list[int], str]:
    result = command("align", *words, "--json")
    assert result.code == 0, result.err
    return [row["frame_b"] for row in json.loads(result.out)["frames"]], result.err


def test_a_pin_is_given_in_frames_or_in_seconds(command, saved: Path) -> None:
    words = ("walk/a", "walk/b", "--embeddings", saved)
    frames, told = match(command, *words, "--pin", "12:30", "--pin", "2.0s:3.52s")
    assert (frames[12], frames[20]) == (30, 35)
    assert told == "pins that hold the alignment: 2 (2 by --pin)\n"
    assert match(command, *words)[1] == ""


def test_the_pins_of_the_folder_are_used_unless_they_are_not_wanted(
    command, saved: Path, folder: Path
) -> None:
    write_pins(folder, [Pin("b.mp4", 30, "walk/a", 12), Pin("walk/a", 3, "walk/c", 4)])
    words = ("walk/a", "walk/b", "--embeddings", saved)
    frames, told = match(command, *words, "--pin", "20:35")
    assert (frames[12], frames[20]) == (30, 35)
    assert told == f"pins that hold the alignment: 2 (1 by --pin, 1 of {folder / 'pins.csv'})\n"
    free, told = match(command, *words, "--no-pins")
    assert abs(free[12] - 30) > 5 and told == ""
    write_pins(folder, [Pin("a", 3, "c", 4)])
    assert match(command, *words)[1] == f"no pin of {folder / 'pins.csv'} is between these videos\n"


def test_pins_are_kept_for_the_next_time(command, saved: Path, folder: Path) -> None:
    write_pins(folder, [Pin("walk/c", 3, "walk/a", 4)])
    words = ("align", "walk/a", "walk/b", "--embeddings", saved, "--json", "--save-pins")
    assert command(*words, "--pin", "12:30").code == 0
    assert read_pins(folder) == [Pin("walk/c", 3, "walk/a", 4), Pin("walk/a", 12, "walk/b", 30)]
    refused = command(*words, "--pin", "20:25", "--no-pins")
    assert refused.code == 2 and "pins 12:30 and 20:25 of walk/a and walk/b cross" in refused.err
    assert len(read_pins(folder)) == 2


def test_pinned_frames_share_a_tick(command, saved: Path, folder: Path) -> None:
    write_pins(folder, [Pin("a", 12, "b", 30), Pin("b", 10, "c", 12)])
    rows = json.loads(command("align", *(f"walk/{n}" for n in "abc"), "--embeddings", saved, "--json").out)[
        "frames"
    ]
    shown = [tuple(row[f"walk/{name} frame"] for name in "abc") for row in rows]
    assert any((a, b) == (12, 30) for a, b, _ in shown) and any((b, c) == (10, 12) for _, b, c in shown)


def test_sync_shows_pinned_frames_together(command, saved: Path, folder: Path, tmp_path: Path) -> None:
    edits = tmp_path / "edits.csv"
    words = ("sync", "walk/a", "walk/b", "--embeddings", saved, "--edits", edits, "--overwrite")
    for more in (("--pin", "12:30"), ("--pin", "12:30", "--reference", "walk/b")):
        assert command(*words, *more).code == 0
        rows = [[float(cell) for cell in row] for row in list(csv.reader(edits.read_text().splitlines()))[1:]]
        assert any(sorted(row[1:]) == pytest.approx([1.2, 3.0]) for row in rows)
    write_pins(folder, [Pin("walk/a", 12, "walk/b", 30)])
    result = command(*words, "--json")
    assert json.loads(result.out)["pins"] == 1
    assert f"pins that hold the alignment: 1 (1 of {folder / 'pins.csv'})" in result.err


def test_labels_and_sound_follow_the_pins(command, saved: Path, folder: Path, tmp_path: Path) -> None:
    write_pins(folder, [Pin("a", 12, "b", 30), Pin("b", 1, "c", 1)])
    (tmp_path / "first.csv").write_text("video,event,frame\nwalk/a,top,12\n")
    words = ("transfer", "labels", tmp_path / "first.csv", "--embeddings", saved, "-o", tmp_path / "o.csv")
    result = command(*words, "--json")
    assert "pins that hold the alignment: 1 (" in result.err  # b and c are both without labels
    assert json.loads(result.out)["videos"]["walk/b"]["events"][0]["frame"] == 30
    sound = (
        "transfer",
        "sound",
        "walk/b",
        "walk/a",
        "--embeddings",
        saved,
        "-o",
        tmp_path / "o.wav",
        "--json",
    )
    result = command(*sound, "--pin", "35:20")
    assert result.code == 0 and json.loads(result.out)["pins"] == 2
    result = command(*sound, "--pin", "20:20", "--overwrite")
    assert result.code == 2 and "pins 12:30 and 20:20 of walk/a and walk/b cross" in result.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pin", "12"], "cannot read the pin '12': expected frames of A and B such as 12:30, or 1.5s:2.0s"),
        (["--pin", "x:30"], "cannot read 'x' of the pin 'x:30': expected a frame such as 12"),
        (["--pin", "1.5:30"], "cannot read '1.5' of the pin '1.5:30'"),
        (
            ["--pin", "12:40"],
            "the pin '12:40' lies outside walk/b, which has frames 0 to 39, the last at 3.90 s",
        ),
        (["--pin", "9s:1s"], "the pin '9s:1s' lies outside walk/a, which has frames 0 to 29"),
        (["--pin", "12:30", "--pin", "20:20"], "pins 12:30 and 20:20 of walk/a and walk/b cross"),
        (
            ["walk/c", "--pin", "12:30"],
            "--pin is for two videos, got 3: write the pins of more into pins.csv",
        ),
        (["--save-pins"], "no pins to save: add them with --pin"),
    ],
)
def test_bad_pins_are_one_line(command, saved: Path, words: list[str], message: str) -> None:
    result = command("align", "walk/a", "walk/b", *words, "--embeddings", saved, "--json")
    assert result.code == 2 and message in result.err and len(result.err.splitlines()) <= 2


def test_pins_of_arrays_without_files_cannot_be_saved(command, tmp_path: Path) -> None:
    arrays = {name: np.arange(9.0)[:, None] for name in "ab"}
    folder = EmbeddingSet.from_arrays(arrays).save(tmp_path / "set")
    result = command("align", "a", "b", "--embeddings", folder, "--json", "--pin", "1:2", "--save-pins")
    assert result.code == 2 and "the videos do not lie in one folder; leave out --save-pins" in result.err


def test_a_damaged_file_is_named(command, saved: Path, folder: Path) -> None:
    (folder / "pins.csv").write_text("video_a,frame_a,video_b,frame_b\na,x,b,30\n")
    result = command("align", "walk/a", "walk/b", "--embeddings", saved, "--json")
    assert result.code == 2 and f"{folder / 'pins.csv'}, line 2, frame_a: expected a number" in result.err


def test_files_and_folders_find_their_pins(command, rendered: Path, run_folder: Path, tmp_path: Path) -> None:
    first, second = (rendered / f"pouring_00{number}.mp4" for number in range(2))
    write_pins(rendered, [Pin(first.stem, 7, second.stem, 9)])
    try:
        frames, told = match(command, first, second, "--run", run_folder)
        assert frames[7] == 9 and f"1 of {rendered / 'pins.csv'}" in told
        result = command(
            "align", first, second, "--pin", "3:4", "--run", run_folder, "-o", tmp_path / "t.csv"
        )
        assert f"next: cycleback sync {first} {second} --run {run_folder} --pin 3:4" in result.out
        told = command("sync", rendered, "--run", run_folder, "--edits", tmp_path / "e.csv").err
        assert f"1 of {rendered / 'pins.csv'}" in told
    finally:
        (rendered / "pins.csv").unlink()
