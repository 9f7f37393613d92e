import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from cycleback.cli.train import describe_backwards, describe_restart
from cycleback.runs import run_split
from cycleback.training import TrainState, read_log
from cycleback.training.state import Restart

QUICK = [
    "data.frame_size=64",
    "optimizer.num_updates=8",
    "optimizer.batch_size=2",
    "run.save_every=2",
    "run.log_every=1",
]


SHORT = ["data.frame_size=48", "optimizer.num_updates=2", "optimizer.batch_size=2", "run.select_every=0"]


def test_a_run_folder_holds_all_it_needs(run_folder: Path) -> None:
    names = {path.name for path in run_folder.iterdir()}
    assert names == {"recipe.toml", "encoder.safetensors", "videos.json", "state.pt", "log.jsonl"}
    assert "num_updates = 4" in (run_folder / "recipe.toml").read_text()
    assert [record["step"] for record in read_log(run_folder)] == [1, 2, 3, 4]
    split = json.loads((run_folder / "videos.json").read_text())
    assert sorted(split["train"] + split["held_out"]) == [f"pouring_{number:03d}" for number in range(5)]
    assert len(split["train"]) >= 2 <= len(split["held_out"]) + 1


def test_by_default_all_streams_are_learned_from_and_their_weights_are_printed(
    command, rendered: Path, tmp_path: Path
) -> None:
    run, output = tmp_path / "run", tmp_path / "set"
    assert command("train", rendered, "-o", run, *SHORT).code == 0
    assert 'streams = ["appearance", "motion", "pose"]' in (run / "recipe.toml").read_text()
    for source in (run, "pretrained"):
        result = command("embed", rendered, "--run", source, "-o", output, "--overwrite")
        assert result.code == 0
        lines = [line for line in result.err.splitlines() if line.startswith("streams: ")]
        assert len(lines) == 1
        said = re.fullmatch(
            r"streams: motion (\S+), appearance 0\.35; not used: pose \(no person in common\)", lines[0]
        )
        assert said is not None and 0.9 < float(said[1]) <= 1
    video = rendered / "pouring_000.mp4"
    result = command("follow", video, "--reference", video, "--run", run)
    assert result.code == 2 and "cannot follow a stream" in result.err and result.err.count("\n") == 1


def test_an_existing_run_is_not_overwritten(command, rendered: Path, run_folder: Path) -> None:
    result = command("train", rendered, "-o", run_folder)
    assert result.code == 2
    way_out = "Resume it with --resume, or choose another folder with -o."
    assert result.err == f"error: {run_folder} exists. {way_out}\n"


def test_a_mistyped_setting_is_refused_with_a_guess(command, rendered: Path, tmp_path: Path) -> None:
    result = command("train", rendered, "-o", tmp_path / "run", "optimizer.bach_size=2")
    assert result.code == 2
    assert "Did you mean 'optimizer.batch_size'?" in result.err
    assert not (tmp_path / "run").exists()


def test_resuming_what_is_not_there_says_how_to_begin(command, rendered: Path, tmp_path: Path) -> None:
    result = command("train", rendered, "-o", tmp_path / "run", "--resume")
    assert result.code == 2
    assert "looked for recipe.toml" in result.err


def test_a_finished_run_prints_where_it_is_and_what_to_do(command, rendered: Path, run_folder: Path) -> None:
    result = command("train", rendered, "-o", run_folder, "--resume")
    assert result.code == 0
    assert f": {run_folder}\nnext: cycleback sync {rendered} --run {run_folder}\n" in result.out


@pytest.mark.parametrize("words", [["optimizer.num_updates=9"], ["--recipe", "fast"]])
def test_resume_refuses_other_settings(command, rendered: Path, run_folder: Path, words: list[str]) -> None:
    result = command("train", rendered, "-o", run_folder, "--resume", *words)
    assert result.code == 2
    assert f"and cannot take {' '.join(words)}. Remove it, or edit that file" in result.err


def start(rendered: Path, folder: Path, *words: str) -> subprocess.Popen[bytes]:
    code = "import sys; from cycleback.cli.main import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    with (folder.parent / "out.txt").open("w") as out:
        return subprocess.Popen(
            [sys.executable, "-c", code, "train", str(rendered), "-o", str(folder), *words],
            env=environment,
            stderr=subprocess.DEVNULL,
            stdout=out,
        )


def wait_for_state(folder: Path, process: subprocess.Popen[bytes]) -> None:
    while not (folder / "state.pt").exists():
        assert process.poll() is None, "training ended before it saved"
        time.sleep(0.01)


def test_a_killed_run_resumes_to_the_same_bits(command, rendered: Path, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert command("train", rendered, "-o", whole, *QUICK).code == 0
    killed = start(rendered, parts, *QUICK)
    wait_for_state(parts, killed)
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    assert command("train", rendered, "-o", parts, "--resume").code == 0
    expected, resumed = (load_file(folder / "encoder.safetensors") for folder in (whole, parts))
    assert all(torch.equal(expected[name], resumed[name]) for name in expected)
    assert len(read_log(parts)) == 8


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder, poses = tmp_path / "run", tmp_path / "poses"
    poses.mkdir()
    for number in range(4):  # sequences need no video decoded, no base loaded
        np.savez(poses / f"{number}.npz", features=np.sin(np.linspace(0, 3, 40)[:, None] + np.arange(4)))
    process = start(poses, folder, "--recipe", "poses", *QUICK[2:], "optimizer.num_updates=100000")
    wait_for_state(folder, process)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    out = (tmp_path / "out.txt").read_text()
    assert "of 100000; the run is saved in" in out
    assert "--resume" in out
    assert load_file(folder / "encoder.safetensors")


def test_selection_says_which_update_was_kept(command, rendered: Path, tmp_path: Path) -> None:
    settings = [*QUICK, "run.select_every=2", "data.held_out=0.5"]
    result = command("train", rendered, "-o", tmp_path / "run", *settings)
    assert result.code == 0
    assert "kept update " in result.out
    assert "of held-out frames cycle back" in result.out


def test_a_second_training_is_told_and_what_is_set_is_not_advised() -> None:
    state = TrainState(step=9, seconds=1.0, backwards=0.04)
    assert describe_restart(state) is None and describe_backwards(state) is None
    better = Restart("loss.weights.order=0.3", before=0.33, after=0.02, is_kept=True)
    words = describe_restart(replace(state, restart=better))
    assert words == (
        "33% of the pairs of videos were matched backwards in time: trained again with "
        "loss.weights.order=0.3, now 2%"
    )
    worse = Restart("run.seed=1", before=0.33, after=0.37, is_kept=False)
    state = replace(state, backwards=0.33, restart=worse)
    assert str(describe_restart(state)).endswith(
        "trained again with run.seed=1, now 37%; kept the first training"
    )
    note = str(describe_backwards(state))
    assert note.startswith("note: 33% of the pairs of videos") and "order" not in note


def test_a_recipe_is_taken_by_name(command, rendered: Path, tmp_path: Path) -> None:
    result = command("train", rendered, "-o", tmp_path / "run", "--recipe", "fast-scratch", *SHORT)
    assert result.code == 0
    assert 'base = "small"' in (tmp_path / "run" / "recipe.toml").read_text()
    assert (
        "no recipe 'fsat'. Did you mean 'fast'?"
        in command("train", rendered, "-o", tmp_path / "x", "--recipe", "fsat").err
    )


def write_sequences(folder: Path, *, count: int = 4, value: float | None = None) -> Path:
    """Random walks as .npz sequences; with `value`, one frame of the second holds it."""
    folder.mkdir()
    walks = np.random.default_rng(0).normal(size=(count, 40, 6)).cumsum(axis=1).astype(np.float32)
    if value is not None:
        walks[1, 7] = value
    for number, walk in enumerate(walks):
        np.savez(folder / f"walk_{number}.npz", features=walk)
    return folder


@pytest.mark.parametrize(
    ("data", "overrides"),
    [
        ({"count": 1}, []),
        ({"value": np.nan, "count": 2}, []),
        ({}, ["optimizer.learning_rate=100", "optimizer.clip_norm=0", "optimizer.name=sgd"]),
    ],
    ids=["one video", "not a number", "diverges"],
)
def test_a_training_that_saved_nothing_leaves_no_folder(command, tmp_path: Path, data, overrides) -> None:
    videos = write_sequences(tmp_path / "data", **data)
    settings = ["--recipe", "poses", "optimizer.batch_size=2", "data.held_out=0", *overrides]
    result = command("train", videos, "-o", tmp_path / "run", *settings)
    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines()[-1].startswith("error: ")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("device", ["cuda:99", "tpu", "meta", "", "cuda:x"])
@pytest.mark.parametrize("words", ["train {0} -o {1}", "embed {0} -o {1}", "compare --data {0} -o {1}"])
def test_a_device_that_is_not_there_is_one_line(command, tmp_path: Path, words: str, device: str) -> None:
    videos = write_sequences(tmp_path / "data")
    result = command(*words.format(videos, tmp_path / "out").split(), "--device", device)
    expected = f"error: cannot compute on device {device!r}; expected cpu, or a GPU such as cuda\n"
    assert (result.code, result.err) == (2, expected)
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("always:left out")
def test_a_broken_video_of_a_folder_is_left_out_by_every_command(
    command, rendered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "clips"
    shutil.copytree(rendered, folder)
    (folder / "broken.mp4").write_bytes(b"no video")
    monkeypatch.chdir(tmp_path)
    line = "warning: left out broken"
    for words in (
        ["train", folder, "-o", "run", "--recipe", "fast-scratch", *SHORT],
        ["embed", folder, "-o", "set"],
        ["search", "add", "index", folder],
        ["sync", folder, "-o", "synced.mp4", "--height", "64"],
    ):
        result = command(*words)
        assert result.code == 0, result.err
        assert result.err.count(line) == 1 and "broken.mp4" in result.err
    assert "broken" not in json.dumps(run_split(tmp_path / "run"))
    for words in (["search", "add", "index2", folder / "broken.mp4"], ["align", folder / "broken.mp4"]):
        others = [folder / "pouring_000.mp4", folder / "pouring_001.mp4", folder / "pouring_002.mp4"]
        result = command(*words, *others)
        assert result.code == 2 and line not in result.err and "broken.mp4" in result.err


def test_how_many_videos_are_held_out_is_said(command, rendered: Path, tmp_path: Path) -> None:
    words = ("--recipe", "fast-scratch", *SHORT)
    result = command("train", rendered, "-o", tmp_path / "run", *words)
    split = run_split(tmp_path / "run")
    numbers = f"{len(split['train'])} videos to learn from, {len(split['held_out'])} held out"
    assert f"{numbers} (data.held_out=0.2 is the chance of each video, so the share varies)" in result.err
    shutil.copytree(rendered, tmp_path / "clips")
    rows = [f"pouring_00{number},{'val' if number == 4 else 'train'}" for number in range(5)]
    (tmp_path / "clips" / "splits.csv").write_text("\n".join(["video,split", *rows, ""]))
    result = command("train", tmp_path / "clips", "-o", tmp_path / "other", *words)
    assert "4 videos to learn from, 1 held out (splits.csv says so)" in result.err
