import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from cycleback.training import read_log

QUICK = ["optimizer.num_updates=4", "optimizer.batch_size=2", "encoder.mlp.fc_channels=[16]"]


@pytest.fixture
def poses(tmp_path: Path) -> Path:
    for number in range(7):
        phase = np.linspace(0, 3, 30 + number)[:, None]
        (tmp_path / "poses").mkdir(exist_ok=True)
        np.savez(tmp_path / "poses" / f"clip_{number}.npz", features=np.sin(phase + np.arange(3)))
    return tmp_path / "poses"


def test_the_page_is_made_and_the_next_command_is_said(
    command: Callable, poses: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = command("compare", "--data", poses, "--methods", "tcc", "-o", out, "--no-perturb", *QUICK)
    assert result.code == 0, result.err
    assert "The held-out videos have no key events" in result.out
    assert f"open {out / 'report.html'} in a browser\nnext: cycleback embed {poses} " in result.out
    assert {"report.html", "report.json", "report.md"} <= {path.name for path in out.iterdir()}


def test_json_prints_one_object_and_the_second_call_adds_a_row(
    command: Callable, poses: Path, tmp_path: Path
) -> None:
    words = ["compare", "--data", poses, "-o", tmp_path / "out", "--no-perturb", "--json", *QUICK]
    first = json.loads(command(*words, "--methods", "tcc").out)
    second = json.loads(command(*words, "--methods", "tcc,tcn").out)
    assert list(second["rows"]) == ["tcc", "tcn", "time-only", "untrained", "frozen"]
    assert second["rows"]["tcc"] == first["rows"]["tcc"]
    assert second == json.loads((tmp_path / "out" / "report.json").read_text())


def kill_while_learning(words: list[str], state: Path) -> None:
    code = "import sys; from cycleback.cli.main import main; sys.exit(main(sys.argv[1:]))"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    process = subprocess.Popen([sys.executable, "-c", code, *words], env=environment, **quiet)
    while not state.exists():
        assert process.poll() is None, "ended before it saved"
        time.sleep(0.01)
    process.kill()
    process.wait()


def test_a_killed_comparison_goes_on_to_the_same_bits(command: Callable, poses: Path, tmp_path: Path) -> None:
    more = ["optimizer.num_updates=60", "run.log_every=1", *QUICK[1:]]
    words = ["compare", "--data", str(poses), "--methods", "tcc", "--no-perturb", *more, "-o"]
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    kill_while_learning([*words, str(parts)], parts / "runs" / "tcc" / "state.pt")
    assert not (parts / "rows" / "tcc.json").exists()
    assert command(*words, parts).code == command(*words, whole).code == 0
    expected, found = (load_file(out / "runs" / "tcc" / "encoder.safetensors") for out in (whole, parts))
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert [line["step"] for line in read_log(parts / "runs" / "tcc")] == list(range(1, 61))


def test_an_unknown_method_is_one_line(command: Callable, poses: Path, tmp_path: Path) -> None:
    result = command("compare", "--data", poses, "--methods", "tcc,tnc", "-o", tmp_path / "out")
    assert result.code == 2
    assert result.err == "error: no method 'tnc'. Did you mean 'tcn'?\n"
    assert not (tmp_path / "out").exists()


def test_an_unknown_protocol_is_one_line(command: Callable, poses: Path, tmp_path: Path) -> None:
    result = command("compare", "--data", poses, "--protocol", "papr", "-o", tmp_path / "out")
    assert result.code == 2
    assert "no protocol 'papr': expected linear, paper or reference" in result.err


def test_the_data_set_must_be_named(command: Callable) -> None:
    result = command("compare")
    assert result.code == 2
    assert "--data" in result.err


def test_ctrl_c_says_that_the_same_command_goes_on(
    command: Callable, poses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*args: object, **settings: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cycleback.comparison.rows.train", stop)
    result = command("compare", "--data", poses, "--methods", "tcc", "-o", tmp_path / "out", *QUICK)
    assert result.code == 130
    assert result.err.endswith(
        f"Interrupted. Finished rows are in {tmp_path / 'out'}; rerun the same command to resume.\n"
    )


def test_every_method_of_the_help_can_be_compared(command: Callable, poses: Path, tmp_path: Path) -> None:
    words = ["compare", "--data", poses, "-o", tmp_path / "out", "--no-perturb", "--json", *QUICK]
    result = command(*words, "--methods", "tcc+order,tcc-stochastic")
    assert result.code == 0, result.err
    assert list(json.loads(result.out)["rows"])[:2] == ["tcc+order", "tcc-stochastic"]


def test_no_method_at_all_is_refused(command: Callable, poses: Path, tmp_path: Path) -> None:
    result = command("compare", "--data", poses, "--methods", " , ", "-o", tmp_path / "out")
    assert result.code == 2 and "--methods is empty: name at least one, such as tcc" in result.err
    assert not (tmp_path / "out").exists()
