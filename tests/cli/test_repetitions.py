"""`cycleback repetitions`: a table, a picture, clips; and the note of the commands that expect one take."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.video import read_frames, write_video


@pytest.fixture(scope="module")
def loop(rendered: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rendered pour, shown four times."""
    frames = read_frames(rendered / "pouring_000.mp4", range(0, 48, 2))
    return write_video(tmp_path_factory.mktemp("loop") / "loop.mp4", np.concatenate([frames] * 4), fps=15)


@pytest.fixture
def takes(tmp_path: Path) -> Path:
    """Embeddings of an action done five times, and once."""
    turns = 2 * np.pi * np.arange(150)[:, None] / 30
    often = np.concatenate([np.cos(turns), np.sin(turns), np.cos(2 * turns + 1)], axis=1)
    arrays = {"often": often, "once": often[:28]}
    return EmbeddingSet.from_arrays(arrays, fps=10, encoder="aaaa").save(tmp_path / "takes")


def test_a_loop_is_counted_drawn_and_cut(command, loop: Path, tmp_path: Path) -> None:
    outputs = ("-o", tmp_path / "r.csv", "--picture", tmp_path / "r.png", "--clips", tmp_path / "clips")
    result = command("repetitions", loop, *outputs)
    assert result.code == 0, result.err
    assert "loop: 4 repetitions of about 1.6" in result.out
    assert f"next: cycleback sync {tmp_path / 'clips'}" in result.out
    rows = list(csv.DictReader((tmp_path / "r.csv").read_text().splitlines()))
    whole = [row for row in rows if row["whole"] == "1"]
    assert [row["repetition"] for row in whole] == ["1", "2", "3", "4"]
    lengths = [int(row["end_frame"]) - int(row["start_frame"]) + 1 for row in whole[1:-1]]
    assert lengths == pytest.approx([24, 24], abs=2)
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    clips = sorted(path.name for path in (tmp_path / "clips").iterdir())
    assert clips == [f"loop-{number:02d}.mp4" for number in range(1, 5)]
    again = command("align", tmp_path / "clips" / clips[1], tmp_path / "clips" / clips[2], "--json")
    assert again.code == 0 and "note:" not in again.err


def test_videos_without_repetitions_have_no_rows(command, rendered: Path, tmp_path: Path) -> None:
    words = (rendered, "-o", tmp_path / "r.csv", "--clips", tmp_path / "clips", "--json")
    result = command("repetitions", *words)
    assert result.code == 0, result.err
    facts = json.loads(result.out)
    assert {each["count"] for each in facts["videos"].values()} == {0}
    assert facts["clips"] == [] and not (tmp_path / "clips").exists()
    assert (tmp_path / "r.csv").read_text().splitlines() == [
        "video,repetition,start_frame,end_frame,start_s,end_s,share,whole"
    ]


def test_commands_that_expect_one_take_say_that_there_are_several(
    command, takes: Path, tmp_path: Path
) -> None:
    words = ("--embeddings", takes, "--reference", "once", "-o", tmp_path / "p.csv")
    both = command("progress", "often", "once", *words)
    note = (
        "note: often holds about 5 repetitions: cut them first with cycleback repetitions often --clips takes"
    )
    assert both.err.splitlines().count(note) == 1
    assert "note:" not in command("progress", "once", *words, "--overwrite").err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no.mp4"], "no.mp4"),
        (["often", "--embeddings", "{takes}", "-o", "r.txt"], "expected a name ending in .csv or .json"),
        (["often", "--embeddings", "{takes}", "--clips", "{takes}"], "takes is an input"),
        (["often", "--embeddings", "{takes}", "--clips", "{taken}"], "has files in it. Add --overwrite"),
        (
            ["often", "--embeddings", "{takes}", "--clips", "{takes}/index.json"],
            "it is a file; give a folder",
        ),
        ([], "no videos given"),
    ],
)
def test_errors_are_one_line(
    command, takes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "notes.txt").touch()
    result = command("repetitions", *(word.format(takes=takes, taken=taken) for word in words))
    assert result.code == 2
    assert result.err.startswith("error: ") and result.err.count("\n") == 1 and message in result.err
