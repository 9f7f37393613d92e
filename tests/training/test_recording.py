"""A replayed update is the update."""

from pathlib import Path

import pytest
import torch

from cycleback.losses import LossParts
from cycleback.training import Arithmetic, Trainer, read_log
from cycleback.training.recording import Recording
from training.tiny import make_batches

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
CUDA = torch.device("cuda")
LOSSES = [("tcc",), ("tcc", "tcn"), ("tcc", "sal"), ("supervised",)]


def on_gpu(trainer, losses: tuple[str, ...], *, record: bool, **options) -> Trainer:
    options |= {"losses": losses, "arithmetic": Arithmetic(record=record)}
    learner = trainer(9, dropout=0.0, device=CUDA, **options)
    learner.encoder.to(CUDA)
    learner.loss.to(CUDA)
    return learner


@pytest.mark.parametrize("losses", [("tcc",), ("tcc", "tcn")], ids="+".join)
def test_replayed_updates_have_the_losses_of_eager_ones(folder, trainer, losses: tuple[str, ...]) -> None:
    logs = []
    for record in (False, True):
        where = folder(str(record))
        on_gpu(trainer, losses, record=record).run(where, log_every=1)
        logs.append([entry["loss"] for entry in read_log(where)])
    assert logs[0] == pytest.approx(logs[1], rel=1e-3, abs=1e-4)
    assert len(set(logs[1])) == 9


@pytest.mark.parametrize("losses", LOSSES, ids="+".join)
def test_every_loss_is_recorded(tmp_path: Path, trainer, losses: tuple[str, ...]) -> None:
    learner = on_gpu(trainer, losses, record=True)
    learner.run(tmp_path)
    assert len(learner._step._recordings) == 1


def test_dropout_and_triplets_differ_between_updates(trainer) -> None:
    learner = on_gpu(trainer, ("sal",), record=True, learning_rate=0.0)
    draw = learner.batches
    learner.batches = lambda number: draw(0)
    losses = [learner.update(step).loss for step in range(8)]
    assert len(set(losses[3:])) > 1


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_an_update_is_launched_without_waiting_for_the_device(trainer) -> None:
    learner = on_gpu(trainer, ("tcc", "tcn"), record=True, batches=make_batches(device=CUDA))
    for step in range(6):
        learner.update(step)
    try:
        torch.cuda.set_sync_debug_mode("error")
        launched = learner.launch(6)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert launched.report().step == 7


def test_a_recording_keeps_what_it_reads() -> None:
    weight = torch.nn.Parameter(torch.ones(1000, device=CUDA))

    def recorded() -> Recording:
        factor, input = torch.full((1000,), 2.0, device=CUDA), torch.ones(1000, device=CUDA)

        def compute(generator: torch.Generator) -> tuple[torch.Tensor, LossParts]:
            value = (weight * factor * input).sum()
            value.backward()
            return value.detach(), LossParts(value.detach(), {})

        return Recording(compute, [input], [weight])

    found = recorded()
    waste = [
        torch.full((1000,), torch.nan, device=CUDA) for _ in range(100)
    ]  # where `factor` was, if it is gone
    _, loss = found.replay([torch.ones(1000, device=CUDA)], seed=0)
    assert len(waste) == 100 and float(loss.total) == 2000
