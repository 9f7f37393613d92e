"""Two processes on gloo against one: the same loss, the same gradients, the same batches."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from cycleback.errors import TrainingError
from cycleback.training import Processes, join_processes, read_log
from cycleback.training.batches import assign_rows
from cycleback.training.distributed import choose_gpu
from training.two_processes import gradients, shared_trainer, watched

ALONE = Processes()


def start_two(script: Path, *words: str) -> None:
    """Run a script as two processes, as torchrun does, and wait for both."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    common["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    started = [
        subprocess.Popen(
            [sys.executable, str(script), *words],
            env={**common, "RANK": rank, "LOCAL_RANK": rank, "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1")
    ]
    ends = [(process.communicate(timeout=120)[1], process.returncode) for process in started]
    assert [code for _, code in ends] == [0, 0], ends


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """Folder and results of both processes."""
    out = tmp_path_factory.mktemp("two")
    (out / "run").mkdir()
    start_two(Path(__file__).with_name("two_processes.py"), str(out))
    return out, [torch.load(out / f"rank{rank}.pt", weights_only=False) for rank in (0, 1)]


@pytest.mark.parametrize("batch_size", [4, 5, 3])
def test_two_processes_have_the_loss_and_gradients_of_one(two, batch_size: int) -> None:
    expected = gradients(shared_trainer(ALONE, batch_size=batch_size))
    assert any(name.startswith("losses.sal") for name in expected)
    for results in two[1]:
        found = results[f"gradients {batch_size}"]
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-6, msg=name)


def test_a_broken_video_of_one_process_stops_both(two) -> None:
    first, second = (results["broken"] for results in two[1])
    assert first == second
    assert "not finite at update 1" in first


def test_an_interrupt_of_one_process_stops_both_at_the_same_update(two) -> None:
    assert [results["step"] for results in two[1]] == [3, 3]


def test_only_the_first_process_writes(two) -> None:
    folder, _ = two
    assert sorted(path.name for path in (folder / "run").iterdir()) == ["log.jsonl", "state.pt"]
    assert [record["step"] for record in read_log(folder / "run")] == [1, 2, 3]


def test_processes_agree_on_flags_and_values(two) -> None:
    assert [results["any"] for results in two[1]] == [True, True]
    assert [results["from_first"] for results in two[1]] == [7.0, 7.0]


def test_the_others_stop_where_the_first_fails(two) -> None:
    first, second = (results["first_alone"] for results in two[1])
    assert first == "ValueError: only the first gets here"
    assert second == "TrainingError: process 1 stops: the first process failed, see its message"


def test_one_process_goes_on_with_the_batches_of_two(two, tmp_path: Path) -> None:
    folder, results = two
    whole_batches, rest = [], []
    whole = watched(shared_trainer(ALONE, batch_size=3), whole_batches)
    whole.run(tmp_path)
    resumed = watched(shared_trainer(ALONE, batch_size=3), rest)
    assert resumed.run(folder / "run").step == 6
    for parts in results:
        for (number, videos, times), expected in zip([*parts["seen"], *rest], whole_batches, strict=True):
            assert (number, videos) == expected[:2]
            assert torch.equal(times, expected[2])
    for name, weight in whole.encoder.state_dict().items():
        torch.testing.assert_close(resumed.encoder.state_dict()[name], weight, rtol=1e-3, atol=1e-5)


def test_rows_are_dealt_in_turn_and_filled_up_with_repeats() -> None:
    assert [assign_rows(5, rank=rank, world_size=2) for rank in (0, 1)] == [(0, 2, 4), (1, 3, 0)]
    assert [assign_rows(2, rank=rank, world_size=3) for rank in (0, 1, 2)] == [(0,), (1,), (0,)]


def test_without_torchrun_a_process_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with join_processes(torch.device("cpu")) as processes:
        assert (processes.rank, processes.world_size, processes.is_first) == (0, 1, True)


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_gpu(1) == torch.device("cuda", 1)
    with pytest.raises(TrainingError, match="process 2 of this machine has no GPU of its own; there are 2"):
        choose_gpu(2)
