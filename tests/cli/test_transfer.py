"""`cycleback transfer labels` on a rendered folder, and on what users get wrong."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cycleback.annotations import FORMATS, read_annotations
from cycleback.embeddings import EmbeddingSet
from cycleback.video import probe, read_audio, write_video


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
    assert result.err.startswith("error: unknown label format 'elna'. Did you mean 'elan'?")
    assert "'word'" in command("transfer", "labels", given, tmp_path, "--from", "word").err
    assert (
        "unknown alignment method 'x'" in command("transfer", "labels", given, tmp_path, "--method", "x").err
    )


def test_an_empty_folder_and_no_videos_are_told(command, given: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = command("transfer", "labels", given, tmp_path / "empty", "-o", tmp_path / "o.csv")
    assert result.code == 2 and "empty" in result.err and result.err.count("\n") == 1
    assert "no videos given" in command("transfer", "labels", given, "-o", tmp_path / "o.csv").err


def test_existing_labels_are_kept_unless_told_otherwise(command, saved: Path, given: Path) -> None:
    out = write(given.parent / "o.csv", "mine")
    result = command("transfer", "labels", given, "--embeddings", saved, "-o", out)
    assert (result.code, out.read_text()) == (2, "mine") and "o.csv exists. Add --overwrite" in result.err
    words = ("transfer", "labels", given, "--embeddings", saved, "-o", out, "--overwrite")
    result = command(*words)
    assert (result.code, out.read_text()) == (2, "mine") and "not as this program wrote it" in result.err
    out.unlink()
    assert [command(*words).code for _ in range(2)] == [0, 0]
    out.write_text(out.read_text() + "a,corrected by hand,3\n")
    assert command(*words).code == 2 and "corrected by hand" in out.read_text()


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


Command = Callable[..., object]


@pytest.fixture
def silent(tmp_path: Path) -> Path:
    return write_video(tmp_path / "silent.mp4", [np.zeros((64, 64, 3), np.uint8)] * 5, fps=10)


def test_a_video_gets_the_sound_of_another(command, rendered: Path, run_folder: Path, tmp_path: Path) -> None:
    source, target = rendered / "pouring_000.mp4", rendered / "pouring_001.mp4"
    output = tmp_path / "heard.mp4"
    result = command("transfer", "sound", source, target, "--run", run_folder, "-o", output)
    assert result.code == 0, result.err
    assert f"{target} with the sound of {source}, mean confidence 0." in result.out
    assert str(output) in result.out
    assert probe(output).num_frames == probe(target).num_frames
    assert read_audio(output).duration_s == pytest.approx(probe(target).duration_s, abs=0.05)


def test_json_says_where_the_wav_is(command, rendered: Path, run_folder: Path, tmp_path: Path) -> None:
    pair = rendered / "pouring_000.mp4", rendered / "pouring_001.mp4"
    words = ["--run", run_folder, "-o", tmp_path / "heard.wav", "--method", "blocks", "--json"]
    report = json.loads(command("transfer", "sound", *pair, *words).out)
    assert (report["output"], report["method"]) == (str(tmp_path / "heard.wav"), "blocks")
    assert report["seconds"] == pytest.approx(probe(pair[1]).duration_s, abs=0.001)
    assert 0 <= report["mean_confidence"] <= 1


def test_a_saved_embedding_set_serves_too(command, rendered: Path, run_folder: Path, tmp_path: Path) -> None:
    assert command("embed", rendered, "--run", run_folder, "-o", tmp_path / "set").code == 0
    words = ["--embeddings", tmp_path / "set", "-o", tmp_path / "heard.wav"]
    assert command("transfer", "sound", "pouring_000", "pouring_001", *words).code == 0
    assert (tmp_path / "heard.wav").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{silent}", "{loud}"], "silent.mp4 has no sound track; give the video with the sound first"),
        (["{loud}", "{loud}"], "source and target are the same video"),
        (["{loud}", "{broken}"], "broken.mp4 is not a video, or its header is damaged"),
        (["{broken}", "{loud}"], "broken.mp4 is not a video, or its header is damaged"),
        (["{loud}", "nowhere.mp4"], "nowhere.mp4 does not exist; check the spelling"),
        (["{loud}", "{silent}", "-o", "{silent}"], "silent.mp4 is an input, and inputs are never replaced"),
        (["{loud}", "{silent}", "-o", "a.gif"], "a.gif: expected a name ending in .mp4, .mkv, .mov or .wav"),
        (
            ["{loud}", "{silent}", "--method", "magic"],
            "unknown method of sound transfer 'magic'; expected smooth",
        ),
    ],
)
def test_bad_input_is_one_line(
    command, rendered: Path, silent: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(silent.parent)
    broken = silent.with_name("broken.mp4")
    broken.write_bytes(b"no video" * 100)
    names = {"silent": silent, "broken": broken, "loud": rendered / "pouring_000.mp4"}
    result = command("transfer", "sound", *[word.format(**names) for word in words])
    assert result.code == 2
    assert result.err.startswith("error: ")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert {path.name for path in silent.parent.iterdir()} == {"silent.mp4", "broken.mp4"}


def test_one_frame_is_a_video_too(command, rendered: Path, run_folder: Path, tmp_path: Path) -> None:
    still = write_video(tmp_path / "still.mp4", [np.zeros((64, 64, 3), np.uint8)], fps=10)
    words = ["--run", run_folder, "-o", tmp_path / "heard.mp4"]
    assert command("transfer", "sound", rendered / "pouring_000.mp4", still, *words).code == 0
    assert probe(tmp_path / "heard.mp4").num_frames == 1
