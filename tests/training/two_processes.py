"""One of two processes that train together; started by test_distributed.py with the variables of torchrun."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import torch

from cycleback.errors import TrainingError
from cycleback.training import Processes, StepReport, Trainer, join_processes
from training.tiny import make_batches, make_trainer

LOSSES = ("tcc", "tcn", "sal", "supervised")


def shared_trainer(processes: Processes, *, batch_size: int, losses: tuple[str, ...] = LOSSES) -> Trainer:
    batches = make_batches(batch_size=batch_size, num_videos=6)
    batches = replace(batches, rank=processes.rank, world_size=processes.world_size)
    return make_trainer(
        6, dropout=0.0, batch_norm=False, losses=losses, batches=batches, processes=processes, log_every=1
    )


def gradients(trainer: Trainer) -> dict[str, torch.Tensor]:
    """Loss and gradients of one update."""
    report = trainer.start_update(0).report()
    named = [*trainer.encoder.named_parameters(), *trainer.loss.named_parameters()]
    found = {name: weight.grad.clone() for name, weight in named if weight.grad is not None}
    return {**found, "loss": torch.tensor(report.loss), "embeddings": report.embeddings}


def watched(trainer: Trainer, seen: list[tuple[int, tuple[int, ...], torch.Tensor]]) -> Trainer:
    """The trainer, noting number, videos and times of every batch."""
    draw = trainer.batches

    def note(number: int):
        batch = draw(number)
        seen.append((number, batch.videos, batch.times))
        return batch

    trainer.batches = note
    return trainer


def stop_after_three(report: StepReport) -> None:
    if report.step == 3:
        os.kill(os.getpid(), signal.SIGINT)


def run_and_stop(processes: Processes, folder: Path) -> dict[str, object]:
    """Only the first process is interrupted; both stop."""
    seen: list[tuple[int, tuple[int, ...], torch.Tensor]] = []
    trainer = watched(shared_trainer(processes, batch_size=3), seen)
    state = trainer.run(folder, on_step=stop_after_three)
    return {"step": state.step, "seen": seen}


def break_on_second(processes: Processes) -> str:
    """A video that only the second process embeds is broken; the error of this process."""
    trainer = shared_trainer(processes, batch_size=2)
    second = trainer.batches(0).videos[1]
    trainer.batches.videos[second][:] = float("nan")
    try:
        trainer.start_update(0).report()
    except TrainingError as error:
        return str(error)
    return "no error"


def main(out: Path) -> None:
    torch.set_num_threads(1)
    with join_processes(torch.device("cpu")) as processes:
        results: dict[str, object] = {
            f"gradients {size}": gradients(shared_trainer(processes, batch_size=size)) for size in (4, 5, 3)
        }
        results["broken"] = break_on_second(processes)
        results["any"] = processes.any(processes.rank == 1)
        results["from_first"] = processes.from_first(7.0 + processes.rank)
        results |= run_and_stop(processes, out / "run")
        try:
            with processes.first_alone():
                raise ValueError("only the first gets here")
        except (ValueError, TrainingError) as error:
            results["first_alone"] = f"{type(error).__name__}: {error}"
        torch.save(results, out / f"rank{processes.rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
