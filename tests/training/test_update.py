from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cycleback.data.augmentation import AugmentSettings
from cycleback.losses import LossParts
from cycleback.training import Processes, RunSettings, Trainer, read_log
from cycleback.training.batches import Batch
from cycleback.training.update import CudaGraph, Forward, draw_for_batch, see, to_images, use_deterministic
from training.tiny import make_batches

SETTINGS = AugmentSettings(hue=0.2, saturation=(0.5, 1.5), crop=(0.8, 1.0))


def batch_of(rows: tuple[int, ...]) -> tuple[torch.Tensor, Batch]:
    generator = torch.Generator().manual_seed(0)
    frames = torch.randint(0, 256, (4, 2, 1, 8, 8, 3), dtype=torch.uint8, generator=generator)[list(rows)]
    return frames, Batch(
        frames, torch.zeros(4, 2), torch.zeros(4, 2), (0, 1, 2, 3), has_positives=False, rows=rows
    )


def changed(rows: tuple[int, ...], settings: AugmentSettings | None = SETTINGS) -> torch.Tensor:
    frames, batch = batch_of(rows)
    return to_images(frames, draw_for_batch(batch, settings=settings, seed=3))


def test_a_video_is_changed_alike_whichever_process_embeds_it() -> None:
    whole = changed((0, 1, 2, 3))
    part = changed((1, 3))
    assert whole.shape == (4, 2, 1, 3, 8, 8)
    torch.testing.assert_close(part, whole[[1, 3]])


def test_processes_have_noise_of_their_own() -> None:
    noise = AugmentSettings(flip=0, brightness=0, contrast=(1, 1), noise=0.2)
    first = changed((1, 0), noise)
    second = changed((2, 0), noise)
    assert not torch.equal(first[1], second[1])


def test_without_settings_frames_become_fractions() -> None:
    frames, _ = batch_of((0, 1))
    assert torch.equal(changed((0, 1), None), frames.movedim(-1, -3) / 255)


def test_half_precision_stays_near_and_comes_out_in_full(trainer) -> None:
    learner = trainer()
    learner.encoder.eval()
    features = torch.rand(2, 3, 2, 16, 3, 3)
    full = Forward(learner.encoder, RunSettings())(features, are_features=True)
    half = Forward(learner.encoder, RunSettings(precision="bfloat16"))(features, are_features=True)
    assert half.dtype == torch.float32
    assert not torch.equal(full, half)
    torch.testing.assert_close(half, full, rtol=0.05, atol=0.05)


def test_the_network_is_compiled_when_asked_for(trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda function: compiled.append(function) or function)
    learner = trainer(compile=True)
    learner.start_update(0).report()
    assert compiled == [learner.encoder.forward, learner.encoder.embed]


@pytest.mark.parametrize("enabled", [True, False])
def test_determinism_is_for_the_run_only(enabled: bool) -> None:
    with use_deterministic(enabled):
        assert torch.are_deterministic_algorithms_enabled() == enabled
    assert not torch.are_deterministic_algorithms_enabled()


def on_cuda(test):
    """Run a test only on a CUDA device."""
    skip = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
    return pytest.mark.gpu(skip(test))


CUDA = torch.device("cuda")
LOSSES = [("tcc",), ("tcc", "tcn"), ("tcc", "sal"), ("supervised",)]


def on_gpu(trainer, losses: tuple[str, ...], *, cuda_graph: bool, **options) -> Trainer:
    options |= {"losses": losses, "cuda_graph": cuda_graph, "log_every": 1}
    learner = trainer(9, dropout=0.0, processes=Processes(device=CUDA), **options)
    learner.encoder.to(CUDA)
    learner.loss.to(CUDA)
    return learner


@on_cuda
@pytest.mark.parametrize("losses", [("tcc",), ("tcc", "tcn")], ids="+".join)
def test_replayed_updates_have_the_losses_of_eager_ones(folder, trainer, losses: tuple[str, ...]) -> None:
    logs = []
    for cuda_graph in (False, True):
        where = folder(str(cuda_graph))
        on_gpu(trainer, losses, cuda_graph=cuda_graph).run(where)
        logs.append([entry["loss"] for entry in read_log(where)])
    assert logs[0] == pytest.approx(logs[1], rel=1e-3, abs=1e-4)
    assert len(set(logs[1])) == 9


@on_cuda
@pytest.mark.parametrize("losses", LOSSES, ids="+".join)
def test_every_loss_is_captured(tmp_path: Path, trainer, losses: tuple[str, ...]) -> None:
    learner = on_gpu(trainer, losses, cuda_graph=True)
    learner.run(tmp_path)
    assert len(learner._forward_backward._graphs) == 1


@on_cuda
def test_dropout_and_triplets_differ_between_updates(trainer) -> None:
    learner = on_gpu(trainer, ("sal",), cuda_graph=True, learning_rate=0.0)
    draw = learner.batches
    learner.batches = lambda number: draw(0)
    losses = [learner.start_update(step).report().loss for step in range(8)]
    assert len(set(losses[3:])) > 1


@on_cuda
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_an_update_is_started_without_waiting_for_the_device(trainer) -> None:
    learner = on_gpu(trainer, ("tcc", "tcn"), cuda_graph=True, batches=make_batches(device=CUDA))
    for step in range(6):
        learner.start_update(step).report()
    try:
        torch.cuda.set_sync_debug_mode("error")
        pending = learner.start_update(6)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert pending.report().step == 7


@on_cuda
def test_a_graph_keeps_what_it_reads() -> None:
    weight = torch.nn.Parameter(torch.ones(1000, device=CUDA))

    def captured() -> CudaGraph:
        factor, input = torch.full((1000,), 2.0, device=CUDA), torch.ones(1000, device=CUDA)

        def compute(generator: torch.Generator) -> tuple[torch.Tensor, LossParts]:
            value = (weight * factor * input).sum()
            value.backward()
            return value.detach(), LossParts(value.detach(), {})

        return CudaGraph(compute, [input], [weight])

    found = captured()
    waste = [
        torch.full((1000,), torch.nan, device=CUDA) for _ in range(100)
    ]  # where `factor` was, if it is gone
    _, loss = found.replay([torch.ones(1000, device=CUDA)], seed=0)
    assert len(waste) == 100 and float(loss.total) == 2000


def test_a_second_view_has_an_augmentation_of_its_own(trainer) -> None:
    frames = torch.randint(0, 256, (2, 1, 1, 8, 8, 3), dtype=torch.uint8).repeat(1, 4, 1, 1, 1, 1)
    times, numbers = torch.zeros(2, 2), torch.zeros(2, 2, dtype=torch.int64)
    batch = Batch(frames, times, numbers, (0, 1), has_positives=True, positive_frames=numbers)
    tried = trainer(augmentation=SETTINGS)._forward_backward
    for has_views in (False, True):
        on_device = tried._to_device(0, replace(batch, has_views=has_views))
        first, second = see(on_device).chunk(2, dim=1)
        assert torch.equal(first, second) != has_views
        again = see(tried._to_device(0, replace(batch, has_views=has_views)))
        assert torch.equal(torch.cat([first, second], dim=1), again)
