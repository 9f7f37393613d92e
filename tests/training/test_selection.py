import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from cycleback.errors import TrainingError
from cycleback.training import SELECTED_FILE, Selected, Selector, read_log
from cycleback.training.selection import better_of, require_held_out
from training.tiny import Killed, all_weights, kill_after

RATES = {2: 0.3, 4: 0.6, 6: 0.5, 8: 0.6, 10: 0.4}


def selector_of(learner, *, patience: int = 0) -> Selector:
    """Rates that depend on the step alone, told by the optimizer's own count."""

    def measure() -> float:
        assert not learner.encoder.training
        return RATES[int(next(iter(learner.optimizer.state.values()))["step"])]

    return Selector(measure, every=2, patience=patience)


def test_the_best_weights_are_kept_and_the_run_goes_on(tmp_path: Path, trainer) -> None:
    learner, plain, kept = trainer(9), trainer(9), {}
    state = learner.run(
        tmp_path,
        selector=Selector(iter([0.3, 0.6, 0.5, 0.6, 0.4]).__next__, every=2),
        on_save=lambda step: kept.update({step: all_weights(learner)}),
    )
    assert (state.step, state.selected, state.stopped_early) == (9, Selected(4, 0.6, 3), False)
    assert list(kept) == [2, 4]
    for step in range(9):
        plain.update(step)
    assert all(torch.equal(all_weights(plain)[k], v) for k, v in all_weights(learner).items())
    assert json.loads((tmp_path / SELECTED_FILE).read_text())["step"] == 4
    looks = [record for record in read_log(tmp_path) if "held_out_cycle_rate" in record]
    assert looks[0] == {"step": 2, "held_out_cycle_rate": 0.3}
    assert [record["step"] for record in looks] == [2, 4, 6, 8, 9]


def test_training_stops_when_patience_ends_and_stays_stopped(tmp_path: Path, trainer) -> None:
    learner = trainer(10)
    state = learner.run(tmp_path, selector=selector_of(learner, patience=2))
    assert (state.step, state.stopped_early, state.selected.step) == (8, True, 4)
    again = trainer(10)
    state = again.run(tmp_path, selector=selector_of(again, patience=2))
    assert (state.step, state.stopped_early, state.selected) == (8, True, Selected(4, 0.6, 2))


def test_a_killed_run_keeps_what_it_had_selected(folder, trainer) -> None:
    parts, first, second = folder("parts"), trainer(10), trainer(10)
    with pytest.raises(Killed):
        first.run(parts, selector=selector_of(first), on_step=kill_after(5))
    saved = []
    state = second.run(parts, selector=selector_of(second), on_save=saved.append)
    assert state.selected == Selected(4, 0.6, 3)
    assert saved == []
    assert [r["step"] for r in read_log(parts) if "held_out_cycle_rate" in r] == [2, 4, 6, 8, 10]


def test_the_average_of_the_weights_is_what_is_measured(tmp_path: Path, trainer) -> None:
    learner = trainer(2, ema_decay=0.9)
    seen: list[bool] = []

    def rates() -> Iterator[float]:
        while True:
            average = learner._average.state_dict()
            weights = dict(learner.encoder.named_parameters())
            seen.append(all(torch.equal(weights[name], average[name]) for name in average))
            yield 0.5

    learner.run(tmp_path, selector=Selector(rates().__next__, every=1))
    assert seen == [True, True]


def test_of_equal_rates_the_earlier_is_kept() -> None:
    assert better_of(None, step=1, rate=0.0) == Selected(1, 0.0, 0)
    assert better_of(Selected(1, 0.5, 0), step=2, rate=0.5) == Selected(1, 0.5, 1)
    assert better_of(Selected(1, 0.5, 3), step=9, rate=0.6) == Selected(9, 0.6, 0)


def test_a_rate_that_is_no_number_stops(tmp_path: Path, trainer) -> None:
    with pytest.raises(TrainingError, match="held-out cycle rate is nan at update 2"):
        trainer(4).run(tmp_path, selector=Selector(lambda: float("nan"), every=2))


def test_one_held_out_video_is_too_few() -> None:
    with pytest.raises(
        TrainingError, match=r"at least 2 held-out videos of one action, got 1\. Raise data\.held_out"
    ):
        require_held_out(1)


def test_looking_every_zero_updates_is_refused() -> None:
    with pytest.raises(ValueError, match="select_every must be at least 1 and patience at least 0, got 0, 3"):
        Selector(lambda: 0.0, every=0, patience=3)
