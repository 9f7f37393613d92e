"""`cycleback progress`: a table, a picture, a reward."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet


@pytest.fixture
def takes(tmp_path: Path) -> Path:
    arrays = {name: np.linspace(0, 1, count)[:, None] for name, count in (("slow", 40), ("fast", 20))}
    return EmbeddingSet.from_arrays(arrays, fps=10, encoder="aaaa").save(tmp_path / "takes")


def test_progress_by_the_clock_of_the_reference(command, takes: Path, tmp_path: Path) -> None:
    words = ("slow", "fast", "--embeddings", takes, "--reference", "slow", "--goal", takes)
    result = command("progress", *words, "-o", tmp_path / "p.csv", "--picture", tmp_path / "p.png")
    assert result.code == 0, result.err
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    fast = [row for row in rows if row["video"] == "fast"]
    assert [float(row["progress"]) for row in fast] == pytest.approx(np.linspace(0, 1, 20), abs=0.04)
    assert [float(row["reward"]) for row in fast] == pytest.approx(np.linspace(-1, 0, 20), abs=1e-3)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_without_a_goal_there_is_no_reward(command, takes: Path, tmp_path: Path) -> None:
    words = ("fast", "--embeddings", takes, "--reference", "slow", "--method", "nearest", "--json")
    result = command("progress", *words, "-o", tmp_path / "p.csv")
    assert json.loads(result.out)["frames"] == 20
    assert "reward" not in (tmp_path / "p.csv").read_text()


def test_videos_are_measured_against_a_reference_file(
    command, rendered: Path, run_folder: Path, tmp_path: Path
) -> None:
    a, b = rendered / "pouring_000.mp4", rendered / "pouring_001.mp4"
    result = command("progress", a, "--reference", b, "--run", run_folder, "-o", tmp_path / "p.csv")
    assert result.code == 0, result.err
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    shares = [float(row["progress"]) for row in rows]
    assert shares == sorted(shares)
    assert 0 <= shares[0] < 0.5 < shares[-1] <= 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fast", "--embeddings", "{takes}", "--reference", "nobody"], "there is no video 'nobody'"),
        (
            ["fast", "--embeddings", "{takes}", "--reference", "slow", "--goal", "{tmp}/no"],
            "no does not exist",
        ),
        (
            ["fast", "--embeddings", "{takes}", "--reference", "slow", "-o", "{taken}"],
            "exists. Add --overwrite",
        ),
        (
            ["fast", "--embeddings", "{takes}", "--reference", "slow", "--method", "x"],
            "unknown alignment method 'x'",
        ),
        (["{video}", "--reference", "nobody.mp4"], "no reference 'nobody.mp4': give the path of a video"),
        (["fast", "--embeddings", "{takes}"], "no reference: give a video that shows"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    command, takes: Path, rendered: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    taken, out = tmp_path / "taken.csv", tmp_path / "out.csv"
    taken.write_text("mine")
    filled = {"takes": takes, "tmp": tmp_path, "taken": taken, "video": rendered / "pouring_000.mp4"}
    result = command("progress", "-o", out, *(word.format(**filled) for word in words))
    assert result.code == 2
    assert message in result.err
    assert not out.exists()
    assert taken.read_text() == "mine"
