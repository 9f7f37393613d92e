from pathlib import Path

import pytest
import torch
from torch import nn

from cycleback.errors import CheckpointError
from cycleback.training import Selected, TrainState
from cycleback.training.state import load_state, save_state

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
