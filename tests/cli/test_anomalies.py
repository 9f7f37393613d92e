"""`cycleback anomalies` on embedding sets made by hand, and once on videos."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.video import write_video


def take(seed: int, *, offset: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    clock = np.sort(rng.uniform(size=60))
    line = np.stack([np.sin(3 * clock), np.cos(3 * clock), 2 * clock], axis=1)
    return line + 0.05 * rng.normal(size=line.shape) + offset


@pytest.fixture
def good(tmp_path: Path) -> Path:
    takes = {f"good_{k}": take(k) for k in range(8)}
    return EmbeddingSet.from_arrays(takes, fps=10, encoder="aaaa").save(tmp_path / "good")


@pytest.fixture
def new(tmp_path: Path) -> Path:
    spoiled = take(20)
    spoiled[30:40, 0] += 3
    takes = {"fine": take(21), "spoiled": spoiled, "foreign": take(22, offset=9)}
    return EmbeddingSet.from_arrays(takes, fps=10, encoder="aaaa").save(tmp_path / "new")


def test_each_video_gets_a_verdict_and_its_spans(command, good: Path, new: Path, tmp_path: Path) -> None:
    result = command("anomalies", "--embeddings", new, "--good", good, "-o", tmp_path / "t.csv")
    assert result.code == 0, result.err
    assert "fine: typical" in result.out
    assert "spoiled: something differs" in result.out
    assert "  frames 28-41  2.80-4.10 s: different path (embedding)" in result.out  # smoothing widens 30-39
    assert "foreign: looks like another action" in result.out
    assert f"2 of 3 videos differ from 8 good takes: {tmp_path / 't.csv'}" in result.out


def test_the_table_has_a_row_a_frame(command, good: Path, new: Path, tmp_path: Path) -> None:
    command("anomalies", "--embeddings", new, "--good", good, "-o", tmp_path / "t.csv")
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert len(rows) == 180
    assert list(rows[0]) == ["video", "frame", "seconds", "score", "flagged", "kind"]
    flagged = {int(row["frame"]) for row in rows if row["video"] == "spoiled" and row["flagged"] == "1"}
    assert set(range(31, 39)) <= flagged


def test_json_says_the_same(command, good: Path, new: Path, tmp_path: Path) -> None:
    words = ("anomalies", "spoiled", "--embeddings", new, "--good", good, "-o", tmp_path / "t.json", "--json")
    found = json.loads(command(*words).out)
    assert (found["good_takes"], list(found["videos"])) == (8, ["spoiled"])
    assert 30 <= found["videos"]["spoiled"]["peak_frame"] <= 39


def test_videos_are_compared_with_a_folder_and_drawn(
    command, rendered: Path, run_folder: Path, tmp_path: Path
) -> None:
    still = write_video(tmp_path / "still.mp4", [np.full((64, 64, 3), 90, np.uint8)] * 40, fps=30)
    words = ["--good", rendered, "--run", run_folder, "--looks"]
    result = command("anomalies", still, *words, "-o", tmp_path / "t.csv", "--picture", tmp_path / "p.png")
    assert result.code == 0, result.err
    assert "still: " in result.out
    assert "good takes are named like videos" in result.err
    assert "from 5 good takes" in result.out
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--embeddings", "{new}", "--good", "{tmp}/none"], "{tmp}/none does not exist"),
        (["--embeddings", "{new}", "--good", "{few}"], "4 good takes cannot say what is typical"),
        (
            ["--embeddings", "{new}", "--good", "{other}"],
            "the good takes by bbbb, the videos by aaaa. Embed all with the same run",
        ),
        (["--embeddings", "{new}", "--good", "{empty}"], "{empty}"),
        (["--embeddings", "{one}", "--good", "{good}"], "at least 2 frames to be compared, got 1"),
        (["--embeddings", "{new}", "--good", "{good}", "-o", "{taken}"], "exists. Add --overwrite"),
        (["--embeddings", "{new}", "--good", "{good}", "--appearance"], "--appearance needs the videos"),
        (["--embeddings", "{new}", "--good", "{good}", "--picture", "{tmp}/p.png"], "is not at None"),
        (["--good", "{good}"], "no videos given"),
        (["nobody", "--embeddings", "{new}", "--good", "{good}"], "there is no video 'nobody'"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    command, good: Path, new: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    whole = EmbeddingSet.load(good)
    few = whole.subset(whole.names[:4]).save(tmp_path / "few")
    arrays = {name: whole[name] for name in whole}
    other = EmbeddingSet.from_arrays(arrays, encoder="bbbb").save(tmp_path / "other")
    one = EmbeddingSet.from_arrays({"dot": np.ones((1, 3))}, encoder="aaaa").save(tmp_path / "one")
    empty, taken, out = tmp_path / "empty", tmp_path / "taken.csv", tmp_path / "out.csv"
    empty.mkdir()
    taken.write_text("mine")
    filled = {"good": good, "new": new, "few": few, "other": other, "one": one, "empty": empty}
    filled |= {"taken": taken, "tmp": tmp_path}
    result = command("anomalies", "-o", out, *(word.format(**filled) for word in words))
    assert result.code == 2
    assert message.format(**filled) in result.err
    assert not out.exists() and not (tmp_path / "p.png").exists()
    assert taken.read_text() == "mine"


def test_good_takes_are_not_judged_against_themselves(command, rendered: Path, tmp_path: Path) -> None:
    result = command("anomalies", rendered, "--good", rendered, "-o", tmp_path / "t.csv")
    assert result.code == 2
    assert "all 5 videos are among the good takes themselves" in result.err
