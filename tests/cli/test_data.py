import json
from pathlib import Path

import numpy as np

from cycleback.video import write_video
from long_recordings import draw, wander


def test_a_good_folder_is_ready_to_train(command, rendered: Path) -> None:
    result = command("data", "check", rendered)
    assert result.code == 0
    assert "pouring_000" in result.out
    assert f"{rendered}: ready to train" in "".join(result.out.splitlines()) or "ready to train" in result.out


def test_problems_are_listed_and_the_exit_code_is_1(command, tmp_path: Path, rendered: Path) -> None:
    (tmp_path / "a.mp4").write_bytes((rendered / "pouring_000.mp4").read_bytes())
    (tmp_path / "b.mp4").write_bytes(b"")
    result = command("data", "check", tmp_path)
    assert result.code == 1
    assert "error" in result.out
    assert "b" in result.out


def test_json_says_the_same(command, rendered: Path) -> None:
    report = json.loads(command("data", "check", rendered, "--json").out)
    assert report["ok"] is True
    assert len(report["rows"]) == 5
    assert report["rows"][0]["labels"] == 4


def test_sequences_and_names_with_brackets_are_listed(command, tmp_path: Path) -> None:
    for name in ("[a]", "b"):
        np.savez(tmp_path / f"{name}.npz", features=np.random.default_rng(len(name)).random((12, 7)))
    result = command("data", "check", tmp_path)
    assert result.code == 0
    assert "7 features" in result.out and "2 of 2 videos have fewer than 32 frames" in result.out


def test_an_empty_folder_says_what_was_looked_for(command, tmp_path: Path) -> None:
    result = command("data", "check", tmp_path)
    assert result.code == 2
    assert str(tmp_path) in result.err


def test_a_published_data_set_becomes_a_plain_folder(command, shared_data: Path, tmp_path: Path) -> None:
    result = command("data", "prepare", "golfdb", shared_data / "golf", tmp_path / "golf", "link=true")
    assert result.code == 0
    assert "379 train, 191 val, 50 val_slow" in result.out
    assert command("embed", tmp_path / "golf", "--run", tmp_path / "none").code == 2


def test_an_unknown_data_set_lists_the_known_ones(command, tmp_path: Path) -> None:
    result = command("data", "prepare", "kinetics", tmp_path, tmp_path / "out")
    assert result.code == 2
    known = "pouring, penn-action, golfdb, penn-poses, lerobot"
    assert f"no data set is called 'kinetics'. Known: {known}." in result.err


def test_an_edited_video_is_cut_into_its_shots(command, rendered: Path, tmp_path: Path) -> None:
    edited = tmp_path / "edited.mp4"
    rng = np.random.default_rng(0)
    write_video(edited, np.concatenate([draw(wander(160, rng)[:40], scene=k) for k in (0, 1)]), fps=25)
    result = command("data", "shots", edited)
    assert result.code == 0, result.err
    assert "edited.mp4: 2 shots" in result.out and result.out.splitlines()[-1].endswith("--clips shots")
    result = command("data", "shots", edited, "--clips", tmp_path / "shots", "--json")
    facts = json.loads(result.out)
    assert [shot["start"] for shot in facts["shots"]] == [0, 40] and len(facts["clips"]) == 2
    assert command("data", "shots", rendered / "pouring_000.mp4").out.strip().endswith("one shot, no cut")
    refused = command("data", "shots", edited, "--clips", tmp_path / "shots")
    assert refused.code == 2 and "has files in it" in refused.err
