from pathlib import Path

import pytest
import torch
from torch import nn

from cycleback.errors import CheckpointError
from cycleback.training import TrainState
from cycleback.training.held_out import Selected
from cycleback.training.state import WeightAverage, load_state, save_state
from training.tiny import all_weights

CPU = torch.device("cpu")


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    first, second = nn.Linear(2, 3), nn.Linear(2, 3)
    state = TrainState(7, 1.5, Selected(4, 0.25, 1))
    save_state(tmp_path, state, {"encoder": first})
    assert load_state(tmp_path, {"encoder": second}, device=CPU) == state
    assert torch.equal(first.weight, second.weight)


def test_a_run_that_never_saved_is_at_the_start(tmp_path: Path) -> None:
    assert load_state(tmp_path, {}, device=CPU) == TrainState(0, 0.0)


def test_a_state_of_another_recipe_says_what_differs(tmp_path: Path) -> None:
    save_state(tmp_path, TrainState(1, 0.0), {"encoder": nn.Linear(2, 3)})
    with pytest.raises(CheckpointError, match=r"state\.pt does not fit this recipe: it has no 'ema'"):
        load_state(tmp_path, {"encoder": nn.Linear(2, 3), "ema": nn.Linear(1, 1)}, device=CPU)
    with pytest.raises(CheckpointError, match=r"does not fit this recipe: .*Linear.*\. Train into another"):
        load_state(tmp_path, {"encoder": nn.Linear(5, 3)}, device=CPU)


def test_a_flipped_byte_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    layer, other, state = nn.Linear(20, 30), nn.Linear(20, 30), TrainState(1, 0.5)
    save_state(tmp_path, state, {"encoder": layer})
    path = tmp_path / "state.pt"
    content = path.read_bytes()
    start, noticed = content.index(layer.weight.detach().numpy().tobytes()), 0
    for place in (*range(start, start + 2400, 100), *range(0, len(content), 37)):
        flipped = bytearray(content)
        flipped[place] ^= 1
        path.write_bytes(flipped)
        try:
            assert load_state(tmp_path, {"encoder": other}, device=CPU) == state
            assert torch.equal(layer.weight, other.weight)
        except CheckpointError as error:
            assert "Delete it to start this run again" in str(error)
            noticed += place in range(start, start + 2400)
    assert noticed >= 24


@pytest.mark.parametrize("wrong", [{"step": "x"}, {"step": -1}, {"selected": 3}, {"seconds": float("nan")}])
def test_a_state_of_other_types_is_one_line(tmp_path: Path, wrong: dict[str, object]) -> None:
    layer = nn.Linear(2, 3)
    torch.save({"step": 1, "seconds": 0.0, "encoder": layer.state_dict()} | wrong, tmp_path / "state.pt")
    with pytest.raises(CheckpointError, match=rf"state\.pt, {next(iter(wrong))}: expected"):
        load_state(tmp_path, {"encoder": layer}, device=CPU)


def test_the_average_follows_its_formula() -> None:
    layer = nn.Linear(3, 2)
    average, expected = WeightAverage(layer, 0.5), layer.weight.detach().clone()
    for step in range(20):
        with torch.no_grad():
            layer.weight += 1.0
        average.update(step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * layer.weight.detach()
    torch.testing.assert_close(average.state_dict()["weight"], expected)


def test_the_average_is_in_use_inside_and_the_weights_are_back_after() -> None:
    layer = nn.Linear(3, 2)
    average, first = WeightAverage(layer, 0.9), layer.weight.detach().clone()
    nn.init.constant_(layer.weight, 7.0)
    with pytest.raises(RuntimeError), average.in_use():
        assert torch.equal(layer.weight, first)
        raise RuntimeError
    assert (layer.weight == 7.0).all()


def test_frozen_weights_are_not_averaged() -> None:
    layer = nn.Linear(3, 2)
    layer.weight.requires_grad_(False)
    assert list(WeightAverage(layer, 0.9).state_dict()) == ["bias"]


def test_what_is_saved_is_the_average_and_training_goes_on_with_the_weights(tmp_path: Path, trainer) -> None:
    saved = []
    learner, plain = trainer(4, ema_decay=0.9), trainer(4)
    learner.run(tmp_path, on_save=lambda step: saved.append(all_weights(learner)))
    for step in range(4):
        plain.start_update(step).report()
    now, average = all_weights(learner), learner._average.state_dict()
    assert all(torch.equal(now[name], value) for name, value in all_weights(plain).items())
    assert all(torch.equal(saved[-1][f"encoder.{name}"], value) for name, value in average.items())
    assert any(not torch.equal(saved[-1][name], now[name]) for name in now)
