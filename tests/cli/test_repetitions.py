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
        "video,repetition,start_frame,end_frame,start_s,end_s,share,whole,"
        "duration_s,amplitude,speed,difference"
    ]


def test_commands_that_expect_one_take_say_that_there_are_several(
    command, takes: Path, tmp_path: Path
) -> None:
    words = ("--embeddings", takes, "--reference", "once", "-o", tmp_path / "p.csv")
    both = command("progress", "often", "once", *words)
    told = "verdict: often holds about 5 repetitions: add --repetitions to take each as a video of its own"
    assert both.out.splitlines()[0] == told
    assert "repetitions" not in command("progress", "once", *words, "--overwrite").out
    found = json.loads(command("progress", "often", "once", *words, "--overwrite", "--json").out)["verdict"]
    assert found["kind"] == "repetitions" and found["text"] == told


def test_every_command_takes_repetitions_as_takes(command, loop: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    period = 24  # frames, at 15 per second
    assert command("repetitions", loop, "-o", "r.csv").code == 0
    whole = [row for row in csv.DictReader(Path("r.csv").read_text().splitlines()) if row["whole"] == "1"]
    starts = [int(row["start_frame"]) for row in whole]

    result = command("align", loop, "--repetitions", "-o", "clock.csv")
    assert result.code == 0, result.err
    assert "repetitions: loop.mp4 4" in result.err and "note:" not in result.err
    clock = list(csv.DictReader(Path("clock.csv").read_text().splitlines()))
    for number in (2, 3):  # the same moment of two turns of the loop is one period apart
        apart = [int(row[f"loop#{number + 1} frame"]) - int(row[f"loop#{number} frame"]) for row in clock]
        assert np.median(apart) == period
    assert [int(clock[0][f"loop#{number} frame"]) for number in (1, 2, 3, 4)] == starts

    result = command("sync", loop, "--repetitions", "--edits", "edits.csv")
    assert result.code == 0, result.err
    first = next(csv.DictReader(Path("edits.csv").read_text().splitlines()))
    assert [float(first[f"loop#{n}"]) for n in (1, 2, 3, 4)] == pytest.approx(np.array(starts) / 15, abs=1e-4)

    result = command("sync", loop, "--repetitions", "--reference", "loop#2", "--height", "64", "-o", "s.mp4")
    assert result.code == 0, result.err
    assert "4 takes at the pace of loop#2: s.mp4" in result.out

    result = command("progress", loop, "--repetitions", "-o", "p.csv")
    assert result.code == 0, result.err
    rows = list(csv.DictReader(Path("p.csv").read_text().splitlines()))
    for number, start in enumerate(starts, start=1):
        own = [row for row in rows if row["repetition"] == str(number)]
        assert own[0]["video"] == "loop" and int(own[0]["frame"]) == start
        assert float(own[0]["progress"]) < 0.1 and float(own[-1]["progress"]) > 0.6

    labelled = starts[1] + 10
    Path("first.csv").write_text(f"video,event,frame\nloop,full,{labelled}\n")
    result = command("transfer", "labels", "first.csv", loop, "--repetitions")
    assert result.code == 0, result.err
    labels = list(csv.DictReader(Path("first-all.csv").read_text().splitlines()))
    assert {row["video"] for row in labels} == {"loop"}
    expected = [labelled + turn * period for turn in (-1, 0, 1, 2)]
    assert [int(row["frame"]) for row in labels] == pytest.approx(expected, abs=2)


def test_the_odd_repetition_is_found(command, tmp_path: Path) -> None:
    turns = 2 * np.pi * np.arange(300)[:, None] / 30
    noise = 0.03 * np.random.default_rng(0).normal(size=(300, 4))
    often = np.concatenate([np.cos(turns), np.sin(turns), np.cos(2 * turns + 1), 0 * turns], axis=1) + noise
    often[192:206, 3] += 1.0  # in the seventh of ten
    saved = EmbeddingSet.from_arrays({"often": often}, fps=10, encoder="aaaa").save(tmp_path / "set")
    words = ("often", "--embeddings", saved, "--repetitions", "-o", tmp_path / "a.csv")
    result = command("anomalies", *words)
    assert result.code == 0, result.err
    assert "1 of 10 takes differ" in result.out
    odd = [line for line in result.out.splitlines() if "something differs" in line]
    assert len(odd) == 1 and odd[0].startswith("often#7")
    rows = csv.DictReader((tmp_path / "a.csv").read_text().splitlines())
    flagged = [int(row["frame"]) for row in rows if row["flagged"] == "1" and row["video"] == "often#7"]
    assert set(range(194, 204)) <= set(flagged) <= set(range(188, 210))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["align", "once", "--repetitions"], "no repetitions found in once: leave out --repetitions"),
        (["align", "often", "--repetitions", "--pin", "1:2"], "leave out --pin, or --repetitions"),
        (["anomalies", "often"], "no good takes"),
        (["anomalies", "often", "--repetitions"], "5 takes cannot say which is odd: give at least 6"),
        (["progress", "often"], "no reference: give a video"),
        (
            ["sync", "often", "--repetitions", "--transfer-sound", "once"],
            "--transfer-sound is for whole videos",
        ),
    ],
)
def test_what_cannot_be_split_is_one_line(
    command, takes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = command(*words, "--embeddings", takes)
    assert result.code == 2
    assert result.err.splitlines()[-1].startswith("error: ") and message in result.err


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
