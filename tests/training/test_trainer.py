import json
import os
import signal
from pathlib import Path

import pytest
import torch

from cycleback.errors import CheckpointError, TrainingError
from cycleback.training import STATE_FILE, StepReport, Trainer, read_log


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in trainer.encoder.state_dict().items()}


def assert_equal(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert all(torch.equal(a[name], b[name]) for name in a)


def without_seconds(folder: Path) -> list[dict[str, object]]:
    return [{key: value for key, value in record.items() if key != "seconds"} for record in read_log(folder)]


def test_three_then_three_updates_equal_six_bit_for_bit(tmp_path: Path, trainer) -> None:
    whole, first, second = trainer(6), trainer(6), trainer(6)
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    whole.run(tmp_path / "whole", log_every=1)

    def stop_after_three(report: StepReport) -> None:
        if report.step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    stopped = first.run(tmp_path / "parts", log_every=1, on_step=stop_after_three, save_every=1)
    assert stopped.step == 3
    assert second.run(tmp_path / "parts", log_every=1).step == 6
    assert_equal(weights(whole), weights(second))
    assert without_seconds(tmp_path / "whole") == without_seconds(tmp_path / "parts")


def test_a_kill_between_saves_repeats_the_lost_updates_exactly(tmp_path: Path, trainer) -> None:
    whole, killed, resumed = trainer(6), trainer(6), trainer(6)
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    whole.run(tmp_path / "whole", log_every=1)

    def die(report: StepReport) -> None:
        if report.step == 5:
            raise SystemExit

    with pytest.raises(SystemExit):
        killed.run(tmp_path / "parts", save_every=2, log_every=1, on_step=die)
    resumed.run(tmp_path / "parts", log_every=1)
    assert_equal(weights(whole), weights(resumed))
    assert without_seconds(tmp_path / "whole") == without_seconds(tmp_path / "parts")


def test_learning_lowers_the_loss(tmp_path: Path, trainer) -> None:
    trainer(60, learning_rate=1e-2, dropout=0.0).run(tmp_path, log_every=1)
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


def test_a_log_line_cut_off_by_a_kill_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps({"step": 1}) + '\n{"step": 2, "lo')
    assert read_log(tmp_path) == [{"step": 1}]


def test_frames_are_augmented_once_a_clip_and_learned_from(tmp_path: Path, trainer) -> None:
    from cycleback.data import AugmentSettings
    from cycleback.models import Encoder, build_base, build_embedder

    learner = trainer(1)
    base = build_base("small")
    learner.encoder = Encoder(base, build_embedder("conv", in_channels=base.channels, conv_channels=(4,)))
    learner.optimizer = torch.optim.Adam(learner.encoder.parameters())
    learner.batches.videos = [torch.randint(0, 256, (24, 32, 32, 3), dtype=torch.uint8) for _ in range(4)]
    learner.augmentation = AugmentSettings()
    before = weights(learner)
    learner.run(tmp_path)
    after = weights(learner)
    assert any(not torch.equal(before[name], after[name]) for name in before if name.startswith("base"))
