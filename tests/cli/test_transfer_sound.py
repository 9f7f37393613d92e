"""`cycleback transfer sound` as a user types it."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cycleback.video import probe, read_audio, write_video

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
        (["{loud}", "{silent}", "-o", "{silent}"], "silent.mp4 exists. Add --overwrite"),
        (["{loud}", "{silent}", "-o", "a.gif"], "a.gif: expected a name ending in .mp4, .mkv, .mov or .wav"),
        (["{loud}", "{silent}", "--method", "magic"], "no method of sound transfer 'magic': expected smooth"),
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
