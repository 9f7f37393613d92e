import errno
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from cycleback.errors import CheckpointError, TrainingError
from cycleback.training import failures, read_log
from cycleback.training.failures import stop_on_interrupt
from cycleback.training.state import STATE_FILE


def full_disk(*words: object, **options: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(("module", "name"), [(torch, "save"), (os, "replace"), (os, "fsync")])
def test_a_full_disk_leaves_the_last_state_whole(tmp_path: Path, trainer, monkeypatch, module, name) -> None:
    trainer(2).run(tmp_path)
    learner = trainer(4)

    def fill_disk(report: object) -> None:
        monkeypatch.setattr(module, name, full_disk)

    with pytest.raises(
        CheckpointError, match=r"cannot save the run in .*: No space left on device\. Free some space"
    ):
        learner.run(tmp_path, on_step=fill_disk)
    monkeypatch.undo()
    assert torch.load(tmp_path / STATE_FILE)["step"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "state.pt"]
    assert trainer(4).run(tmp_path).step == 4


def test_a_full_disk_while_the_log_is_written_is_one_sentence(tmp_path: Path, trainer, monkeypatch) -> None:
    learner = trainer(2, log_every=1)

    def fill_disk(report: object) -> None:
        monkeypatch.setattr(Path, "open", full_disk)

    with pytest.raises(CheckpointError, match=r"No space left on device.*last saved state is intact"):
        learner.run(tmp_path, on_step=fill_disk)


def test_a_failed_save_of_the_encoder_is_one_sentence(tmp_path: Path, trainer) -> None:
    with pytest.raises(CheckpointError, match=r"cannot save the run in .*No space left on device"):
        trainer(1).run(tmp_path, on_save=full_disk)
    assert not (tmp_path / STATE_FILE).exists()  # no state without the encoder that belongs to it


OUT_OF_MEMORY = [
    torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    MemoryError(),
]


@pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=["cuda", "cpu", "python"])
def test_running_out_of_memory_says_what_to_lower(tmp_path: Path, trainer, error: BaseException) -> None:
    learner = trainer(4, save_every=1, log_every=1)
    draw = learner.batches

    def batches(number: int):
        if number == 2:
            raise error
        return draw(number)

    learner.batches = batches
    with pytest.raises(
        TrainingError, match=r"out of memory on cpu at update 3\. Lower optimizer\.batch_size"
    ) as found:
        learner.run(tmp_path)
    assert "data.frames_per_video or data.frame_size" in str(found.value)
    assert torch.load(tmp_path / STATE_FILE)["step"] == 2
    assert len(read_log(tmp_path)) == 2


def test_a_video_that_vanished_is_named(tmp_path: Path, trainer) -> None:
    learner = trainer(4)
    learner.batches = lambda number: open(tmp_path / "gone.npy")  # noqa: SIM115
    with pytest.raises(
        TrainingError, match=r"cannot read .*gone\.npy at update 1: No such file or directory"
    ):
        learner.run(tmp_path)


def test_an_operation_that_cannot_be_deterministic_is_explained(tmp_path: Path, trainer) -> None:
    learner = trainer(4)

    def batches(number: int):
        raise RuntimeError("scatter_cuda does not have a deterministic implementation, but you set more.")

    learner.batches = batches
    with pytest.raises(TrainingError, match=r"scatter_cuda .* Set run\.deterministic=false"):
        learner.run(tmp_path)


def test_other_errors_are_left_alone(tmp_path: Path, trainer) -> None:
    learner = trainer(4)
    learner.batches = lambda number: torch.ones(2) @ torch.ones(3)
    with pytest.raises(RuntimeError, match="size"):
        learner.run(tmp_path)


@pytest.fixture
def terminal() -> Iterator[None]:
    """A process started in the background ignores Ctrl-C; these tests are about one that does not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.usefixtures("terminal")
def test_the_first_ctrl_c_only_asks() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_on_interrupt() as interrupted:
        assert not interrupted()
        press_ctrl_c()
        press_ctrl_c()  # a launcher's echo of the same press
        assert interrupted()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("terminal")
def test_a_later_ctrl_c_stops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "SAME_PRESS_S", -1.0)
    with pytest.raises(KeyboardInterrupt), stop_on_interrupt():
        press_ctrl_c()
        press_ctrl_c()


@pytest.mark.usefixtures("terminal")
def test_other_threads_leave_signals_alone() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def run() -> None:
        with stop_on_interrupt() as interrupted:
            seen.extend([interrupted(), signal.getsignal(signal.SIGINT) is before])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [False, True]
