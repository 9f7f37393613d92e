"""`cycleback timing` on embedding sets made by hand, and once on videos."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet


def line(*lengths: int) -> np.ndarray:
    """A line around a corner, with so many frames before it and after."""
    before, after = (np.linspace(0, 2, n, endpoint=False) for n in lengths)
    return np.stack([np.r_[before, np.full(len(after), 2.0)], np.r_[0 * before, after]], axis=1)


@pytest.fixture
def takes(tmp_path: Path) -> Path:
    arrays = {"a": line(20, 20), "b": line(20, 20), "late": line(30, 20)}
    events = {name: {"go": 2, "turn": 30 if name == "late" else 20} for name in arrays}
    return EmbeddingSet.from_arrays(arrays, events=events, fps=10).save(tmp_path / "takes")


def test_each_take_gets_a_sentence_and_rows(command, takes: Path, tmp_path: Path) -> None:
    words = ("timing", "--embeddings", takes, "-o", tmp_path / "t.csv", "--picture", tmp_path / "t.svg")
    result = command(*words)
    assert result.code == 0, result.err
    assert "late: turn 1.00 s late; go to turn 56% longer" in result.out
    assert "a: like the typical take, as far as can be told" in result.out
    assert f"3 takes, 2 labelled moments, compared with the typical take: {tmp_path / 't.csv'}" in result.out
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    found = [(row["video"], row["name"], row["difference_ms"]) for row in rows if row["finding"] == "1"]
    assert found == [("late", "turn", "1000.0"), ("late", "go to turn", "1000.0")]
    assert "+1000" in (tmp_path / "t.svg").read_text()


def test_labels_of_one_take_are_enough_and_json_says_the_same(command, takes: Path, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("video,event,frame\na,go,2\na,turn,20\n")
    words = ("timing", "--embeddings", takes, "--labels", tmp_path / "one.csv", "--reference", "a")
    found = json.loads(command(*words, "-o", tmp_path / "t.json", "--json").out)
    assert (found["reference"], found["moments"], found["discovered"]) == ("a", ["go", "turn"], False)
    assert list(found["videos"]) == ["b", "late"] and "turn " in found["videos"]["late"]
    assert {row["video"] for row in json.loads((tmp_path / "t.json").read_text())} == {"b", "late"}


def test_videos_are_compared_with_a_reference_file(
    command, rendered: Path, run_folder: Path, tmp_path: Path
) -> None:
    videos = sorted(rendered.glob("*.mp4"))
    words = ("--reference", videos[3], "--phases", 3, "--run", run_folder, "-o", tmp_path / "t.csv")
    result = command("timing", *videos[:3], *words)
    assert result.code == 0, result.err
    assert "3 takes, 2 moments that all takes share, compared with pouring_003" in result.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--embeddings", "{takes}", "--reference", "nobody"], "there is no video 'nobody'"),
        (["--embeddings", "{takes}", "--zero", "trun"], "no moment 'trun' to count time from. Did you mean"),
        (["--embeddings", "{takes}", "--phases", "1"], "for '--phases'"),
        (["--embeddings", "{takes}", "--phases", "99"], "phases can be told apart in these clips, not 99"),
        (["--embeddings", "{takes}", "--labels", "{tmp}/no.csv"], "no.csv"),
        (["a", "--embeddings", "{takes}"], "one take has nothing to be compared with"),
        (["--embeddings", "{takes}", "-o", "{tmp}/t.txt"], "t.txt"),
        (["--embeddings", "{takes}", "--picture", "{tmp}/p.gif"], "p.gif"),
        ([], "no videos given"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    command, takes: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    filled = [word.format(takes=takes, tmp=tmp_path) for word in words]
    before = set(tmp_path.iterdir())
    result = command("timing", *filled, *([] if "-o" in words else ["-o", tmp_path / "out.csv"]))
    assert result.code == 2
    assert message in result.err and "Traceback" not in result.err
    assert set(tmp_path.iterdir()) == before
