"""`cycleback transfer labels` on a rendered folder, and on what users get wrong."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cycleback.annotations import FORMATS, read_annotations
from cycleback.embeddings import EmbeddingSet


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An embedding set of four videos at other speeds."""
    time = {name: np.linspace(0, 3, frames) for name, frames in zip("abcd", (40, 60, 50, 80), strict=True)}
    arrays = {name: np.stack([np.cos(t), np.sin(t), t], axis=1) for name, t in time.items()}
    folder = tmp_path_factory.mktemp("sets") / "set"
    return EmbeddingSet.from_arrays(arrays, fps=20, encoder="someone").save(folder)


@pytest.fixture
def given(tmp_path: Path) -> Path:
    path = tmp_path / "first.csv"
    path.write_text("video,event,frame\na,top,20\na,impact,30\n")
    return path


def test_one_labelled_video_labels_a_folder(
    command, rendered: Path, run_folder: Path, tmp_path: Path
) -> None:
    rows = (rendered / "labels.csv").read_text().splitlines()
    (tmp_path / "one.csv").write_text("\n".join([rows[0], *(row for row in rows if "pouring_000" in row)]))
    words = [tmp_path / "one.csv", rendered, "--run", run_folder, "-o", tmp_path / "all.csv"]
    result = command("transfer", "labels", *words)
    assert result.code == 0
    found = list(csv.DictReader((tmp_path / "all.csv").read_text().splitlines()))
    assert len({row["video"] for row in found}) == 5 and len(found) == 5 * 4
    assert "label this next: pouring_" in result.out
    assert f"4 videos labelled by the labels of 1: {tmp_path / 'all.csv'}" in result.out


def test_the_json_holds_times_confidences_and_what_to_label_next(command, saved: Path, given: Path) -> None:
    result = command(
        "transfer", "labels", given, "--embeddings", saved, "-o", given.parent / "o.csv", "--json"
    )
    found = json.loads(result.out)
    top = found["videos"]["d"]["events"][0]
    assert top["name"] == "top" and abs(top["frame"] - 40) <= 2
    assert top["seconds"] == pytest.approx(top["frame"] / 20)
    assert 0 <= top["confidence"] <= 1 and sorted(found["label_next"]) == ["b", "c", "d"]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_written_and_read_back_as_labels(
    command, saved: Path, given: Path, name: str
) -> None:
    out = given.parent / "out"
    result = command("transfer", "labels", given, "--embeddings", saved, "--format", name, "-o", out)
    assert result.code == 0, result.err
    assert len(read_annotations(out, format=name)) == 4


@pytest.mark.parametrize("suffix", [".json", ".eaf", ".boris", ".csv", ""])
def test_the_name_of_the_output_says_its_format(command, saved: Path, given: Path, suffix: str) -> None:
    out = given.parent / f"out{suffix}"
    assert command("transfer", "labels", given, "--embeddings", saved, "-o", out).code == 0
    assert len(read_annotations(out, format=None if suffix else "csv")) == 4


def test_segments_are_carried_over_and_shown_with_both_ends(command, saved: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("lift\n" * 20 + "pour\n" * 20)
    result = command(
        "transfer",
        "labels",
        tmp_path / "a.txt",
        "--embeddings",
        saved,
        "--format",
        "frames",
        "-o",
        tmp_path / "out",
    )
    assert "0.00-" in result.out
    lines = (tmp_path / "out" / "d.txt").read_text().split()
    assert len(lines) == 80 and abs(lines.index("pour") - 40) <= 2 and set(lines) == {"lift", "pour"}


def test_another_action_is_left_out_and_told(command, given: Path, tmp_path: Path) -> None:
    arrays = {name: np.arange(40.0)[:, None] for name in "abc"}
    folder = EmbeddingSet.from_arrays(arrays, actions={"a": "x", "b": "x", "c": "y"}).save(tmp_path / "set")
    result = command("transfer", "labels", given, "--embeddings", folder, "-o", tmp_path / "o.csv")
    assert "not labelled, as no labelled video shows their action: c" in result.out
    result = command("transfer", "labels", given, "a", "c", "--embeddings", folder, "-o", tmp_path / "p.csv")
    assert (result.code, result.err) == (
        2,
        "error: nothing to label: the labelled videos show another action than c\n",
    )


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("A1,top,3", "the labels name a video 'A1', which is not among the 4"),
        ("a,top,40", "a: 'top' is labelled at frame 40, but the video has 40 frames, the last at 1.95 s"),
        ("a,top,x", 'first.csv, line 2, frame: expected a number, got "x"'),
    ],
)
def test_labels_that_do_not_fit_are_one_line(
    command, saved: Path, given: Path, rows: str, words: str
) -> None:
    given.write_text(f"video,event,frame\n{rows}\n")
    result = command("transfer", "labels", given, "--embeddings", saved, "-o", given.parent / "o.csv")
    assert result.code == 2 and words in result.err and result.err.count("\n") == 1
    assert [file.name for file in given.parent.iterdir()] == ["first.csv"]


def test_a_name_that_is_nearly_right_is_guessed(command, tmp_path: Path) -> None:
    arrays = {name: np.arange(9.0)[:, None] for name in ("swing1", "swing2")}
    folder = EmbeddingSet.from_arrays(arrays).save(tmp_path / "set")
    given = write(tmp_path / "x.csv", "video,event,frame\nswing_1,top,3\n")
    result = command("transfer", "labels", given, "--embeddings", folder, "-o", tmp_path / "o.csv")
    assert "Did you mean 'swing1'?" in result.err


def test_missing_labels_and_unknown_formats_are_refused_before_any_work(
    command, given: Path, tmp_path: Path
) -> None:
    assert "no.csv: No such file" in command("transfer", "labels", tmp_path / "no.csv", tmp_path).err
    result = command("transfer", "labels", given, tmp_path, "--format", "elna")
    assert result.err.startswith("error: no label format 'elna': expected one of csv, json, elan")
    assert "'word'" in command("transfer", "labels", given, tmp_path, "--from", "word").err
    assert "no alignment method 'x'" in command("transfer", "labels", given, tmp_path, "--method", "x").err


def test_an_empty_folder_and_no_videos_are_told(command, given: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = command("transfer", "labels", given, tmp_path / "empty", "-o", tmp_path / "o.csv")
    assert result.code == 2 and "empty" in result.err and result.err.count("\n") == 1
    assert "no videos given" in command("transfer", "labels", given, "-o", tmp_path / "o.csv").err


def test_existing_labels_are_kept_unless_told_otherwise(command, saved: Path, given: Path) -> None:
    out = write(given.parent / "o.csv", "mine")
    result = command("transfer", "labels", given, "--embeddings", saved, "-o", out)
    assert (result.code, out.read_text()) == (2, "mine") and "o.csv exists. Add --overwrite" in result.err
    assert command("transfer", "labels", given, "--embeddings", saved, "-o", out, "--overwrite").code == 0


def test_all_labelled_is_nothing_to_do(command, saved: Path, given: Path) -> None:
    result = command("transfer", "labels", given, "a", "--embeddings", saved, "-o", given.parent / "o.csv")
    assert "nothing to label: every video has labels already" in result.err


def test_embeddings_of_another_encoder_than_the_run_s_are_refused(
    command, saved: Path, given: Path, run_folder: Path
) -> None:
    out = given.parent / "o.csv"
    result = command("transfer", "labels", given, "--embeddings", saved, "--run", run_folder, "-o", out)
    assert result.code == 2 and not out.exists()
    assert f"cannot be compared: {saved} by " in result.err and f", {run_folder} by " in result.err
