import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from cycleback.data.augmentation import AugmentSettings
from cycleback.errors import CheckpointError, TrainingError
from cycleback.models import Encoder, build_base, build_embedder
from cycleback.training import Processes, StepReport, Trainer, read_log
from cycleback.training.state import STATE_FILE
from training.tiny import Killed, all_weights, kill_after, make_batches

EVERYTHING = {
    "losses": ("tcc", "tcn", "sal", "supervised", "next_frame"),
    "accumulate": 2,
    "ema_decay": 0.9,
    "clip_norm": 1.0,
    "warmup_updates": 2,
}


def assert_equal(a: Trainer, b: Trainer) -> None:
    first, second = all_weights(a), all_weights(b)
    assert all(torch.equal(first[name], second[name]) for name in first)


def without_seconds(folder: Path) -> list[dict[str, object]]:
    return [{key: value for key, value in record.items() if key != "seconds"} for record in read_log(folder)]


def stop_after_three(report: StepReport) -> None:
    if report.step == 3:
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("options", [{}, EVERYTHING], ids=["plain", "everything"])
def test_three_then_three_updates_equal_six_bit_for_bit(folder, trainer, options: dict) -> None:
    whole, first, second = (trainer(6, log_every=1, **options) for _ in range(3))
    whole.run(folder("whole"))
    parts = folder("parts")
    state = first.run(parts, on_step=stop_after_three)
    assert (state.step, state.is_interrupted) == (3, True)
    state = second.run(parts)
    assert (state.step, state.is_interrupted) == (6, False)
    assert_equal(whole, second)
    assert without_seconds(parts.with_name("whole")) == without_seconds(parts)
    if whole._average is not None:
        averages = whole._average.state_dict(), second._average.state_dict()
        assert all(torch.equal(averages[0][name], averages[1][name]) for name in averages[0])


def test_the_slow_copy_trails_the_encoder_and_gives_the_targets(trainer) -> None:
    learner = trainer(2, losses=("tcc", "next_frame"), slow_momentum=0.75, dropout=0.0)
    first = {name: weight.detach().clone() for name, weight in learner.encoder.named_parameters()}
    learner.start_update(0)
    moved = {name: weight.detach().clone() for name, weight in learner.encoder.named_parameters()}
    seen = {}
    losses = learner.loss.losses["next_frame"]
    losses.register_forward_pre_hook(lambda module, args, kwargs: seen.update(kwargs), with_kwargs=True)
    learner.start_update(1)
    slow = dict(learner._forward_backward.slow_copy.named_parameters())
    assert any(not torch.equal(first[name], moved[name]) for name in first)
    for name in first:
        torch.testing.assert_close(slow[name].detach(), 0.75 * first[name] + 0.25 * moved[name])
    late = learner.batches(1).inputs.chunk(2, dim=1)[1]
    with torch.no_grad():
        expected = learner._forward_backward.slow_copy.embed(late)
    torch.testing.assert_close(seen["targets"], expected)


def test_a_kill_between_saves_repeats_the_lost_updates_exactly(folder, trainer) -> None:
    whole, killed, resumed = (trainer(6, save_every=2, log_every=1, **EVERYTHING) for _ in range(3))
    whole.run(folder("whole"))
    parts = folder("parts")
    with pytest.raises(Killed):
        killed.run(parts, on_step=kill_after(5))
    resumed.run(parts)
    assert_equal(whole, resumed)
    assert without_seconds(parts.with_name("whole")) == without_seconds(parts)


def test_a_job_that_is_told_to_end_saves_first(tmp_path: Path, trainer) -> None:
    def end(report: StepReport) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    assert trainer(6).run(tmp_path, on_step=end).step == 1
    assert torch.load(tmp_path / STATE_FILE)["step"] == 1
    assert signal.getsignal(signal.SIGTERM) is before


def test_accumulated_batches_give_the_mean_gradient(trainer) -> None:
    options = {"dropout": 0.0, "batch_norm": False}
    both = trainer(1, accumulate=2, **options)
    report = both.start_update(0).report()
    singles, losses = [], []
    for number in (0, 1):
        single = trainer(1, **options)
        single.batches = lambda step, draw=single.batches, number=number: draw(number)
        losses.append(single.start_update(0).report().loss)
        singles.append([p.grad for p in single.encoder.embedder.parameters()])
    assert report.loss == pytest.approx(sum(losses) / 2, rel=1e-6)
    for weight, one, two in zip(both.encoder.embedder.parameters(), *singles, strict=True):
        torch.testing.assert_close(weight.grad, (one + two) / 2, rtol=1e-4, atol=1e-7)


def test_accumulation_must_be_of_something(trainer) -> None:
    with pytest.raises(ValueError, match=r"optimizer\.accumulate must be at least 1, got 0"):
        trainer(1, accumulate=0)


def test_the_weights_of_a_loss_are_trained_along(tmp_path: Path, trainer) -> None:
    learner = trainer(2, losses=("sal", "supervised"))
    before = all_weights(learner)
    learner.run(tmp_path)
    after = all_weights(learner)
    changed = {name.split(".")[2] for name in before if not torch.equal(before[name], after[name])}
    assert {"sal", "supervised"} <= changed


def test_actions_of_unequal_size_are_trained_on_equally_often(tmp_path: Path, trainer) -> None:
    actions = ["pour", "pour", "pour", "pour", "bowl", "bowl"]
    learner = trainer(12, batches=make_batches(num_videos=6, actions=actions))
    draw, seen = learner.batches, []

    def note(number: int):
        batch = draw(number)
        seen.append({actions[video] for video in batch.videos})
        return batch

    learner.batches = note
    learner.run(tmp_path)
    assert all(len(kinds) == 1 for kinds in seen)
    assert Counter(kind for kinds in seen for kind in kinds) == {"pour": 6, "bowl": 6}


def test_learning_lowers_the_loss(tmp_path: Path, trainer) -> None:
    trainer(60, learning_rate=1e-2, dropout=0.0, log_every=1).run(tmp_path)
    losses = [record["loss"] for record in read_log(tmp_path)]
    assert sum(losses[-10:]) < sum(losses[:10])


def test_a_non_finite_loss_stops_with_the_names_of_the_videos(tmp_path: Path, trainer) -> None:
    broken = trainer(3)
    broken.batches.videos[2][:] = float("nan")
    with pytest.raises(
        TrainingError, match=r"not finite at update [12] \(tcc nan, tcn nan; videos: .*c"
    ) as error:
        broken.run(tmp_path)
    assert "optimizer.learning_rate" in str(error.value)


def test_a_damaged_state_is_named(tmp_path: Path, trainer) -> None:
    (tmp_path / STATE_FILE).write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointError, match=r"state\.pt cannot be read"):
        trainer(3).run(tmp_path)


def frame_trainer(trainer, **options) -> Trainer:
    """A trainer on pictures, base and all."""
    learner = trainer(2, **options)
    base = build_base("small")
    learner.encoder = Encoder(base, build_embedder("conv", in_channels=base.channels, conv_channels=(4,)))
    learner.optimizer = torch.optim.Adam(learner.encoder.parameters())
    learner.batches.videos = [torch.randint(0, 256, (24, 32, 32, 3), dtype=torch.uint8) for _ in range(4)]
    learner.augmentation = AugmentSettings(noise=0.1, crop=(0.8, 1.0))
    return learner


ARITHMETICS = [
    {},
    {"precision": "bfloat16"},
    {"channels_last": True},
    {"precision": "bfloat16", "channels_last": True, "deterministic": True},
]


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_frames_are_augmented_and_learned_from(tmp_path: Path, trainer, arithmetic: dict[str, Any]) -> None:
    learner = frame_trainer(trainer, **arithmetic)
    before = all_weights(learner)
    learner.run(tmp_path)
    after = all_weights(learner)
    assert any(not torch.equal(before[name], after[name]) for name in before if "base" in name)
    assert all(weight.dtype != torch.bfloat16 for weight in after.values())


def test_training_on_frames_resumes_bit_for_bit_in_any_layout(folder, trainer) -> None:
    options = {"precision": "bfloat16", "channels_last": True, "save_every": 1}
    torch.manual_seed(3)
    whole = frame_trainer(trainer, **options)
    first, second = frame_trainer(trainer, **options), frame_trainer(trainer, **options)
    for other in (first, second):
        other.encoder.load_state_dict(whole.encoder.state_dict())
        other.batches.videos = whole.batches.videos
    whole.run(folder("whole"))
    parts = folder("parts")
    with pytest.raises(Killed):
        first.run(parts, on_step=kill_after(2))
    second.run(parts)
    assert_equal(whole, second)


GPU_ARITHMETICS = [
    {},
    {"precision": "bfloat16", "channels_last": True, "compile": True},
    {"deterministic": True},
]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch.compile uses it
@pytest.mark.parametrize("arithmetic", GPU_ARITHMETICS)
def test_a_gpu_gives_the_losses_of_the_cpu(tmp_path: Path, trainer, arithmetic: dict[str, Any]) -> None:
    cuda, options = torch.device("cuda"), {"dropout": 0.0, "losses": ("tcc", "tcn")}
    expected = trainer(3, **options).start_update(0).report()
    learner = trainer(3, processes=Processes(device=cuda), **arithmetic, **options)
    learner.encoder.to(cuda)
    tolerance = 0.3 if "precision" in arithmetic else 1e-3
    assert learner.start_update(0).report().loss == pytest.approx(expected.loss, rel=tolerance)
    assert learner.run(tmp_path).step == 3


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_everything_trains_on_a_gpu(tmp_path: Path, trainer) -> None:
    cuda = torch.device("cuda")
    options = {"precision": "bfloat16", "select_every": 1, **EVERYTHING}
    learner = trainer(3, processes=Processes(device=cuda), **options)
    learner.encoder.to(cuda)
    learner.loss.to(cuda)
    assert learner.run(tmp_path, evaluate_held_out=lambda: 0.5).step == 3
