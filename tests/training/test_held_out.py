import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from cycleback.alignment import cycle_consistency_rate
from cycleback.data import VideoRecord
from cycleback.errors import TrainingError
from cycleback.models import Encoder, build_base, build_embedder
from cycleback.training import RunSettings, read_log
from cycleback.training.held_out import (
    MAX_VIDEOS,
    SELECTED_FILE,
    Selected,
    choose_held_out,
    embed_video,
    held_out_cycle_rate,
    select_better,
)
from training.tiny import Killed, all_weights, kill_after

RATES = {2: 0.3, 4: 0.6, 6: 0.5, 8: 0.6, 10: 0.4}


def records(*actions: str) -> list[VideoRecord]:
    return [VideoRecord(name=str(i), path=Path(str(i)), action=a) for i, a in enumerate(actions)]


@pytest.fixture
def encoder() -> Encoder:
    torch.manual_seed(0)
    base = build_base("small")
    return Encoder(base, build_embedder("conv", in_channels=base.channels, conv_channels=(4,))).eval()


def test_frames_and_their_maps_are_embedded_alike(encoder: Encoder) -> None:
    frames = torch.randint(0, 256, (70, 24, 24, 3), dtype=torch.uint8)
    with torch.no_grad():
        maps = encoder.features(frames.movedim(-1, 1))
    torch.testing.assert_close(
        torch.from_numpy(embed_video(encoder, frames)), torch.from_numpy(embed_video(encoder, maps))
    )


def test_the_rate_is_the_mean_over_actions(encoder: Encoder) -> None:
    videos = [torch.rand(n, encoder.base.channels, 2, 2) for n in (8, 9, 7, 6, 10)]
    embeddings = [embed_video(encoder, video) for video in videos]
    bowl = cycle_consistency_rate([embeddings[1], embeddings[3]])
    pour = cycle_consistency_rate([embeddings[i] for i in (0, 2, 4)])
    rate = held_out_cycle_rate(encoder, videos, ["pour", "bowl", "pour", "bowl", "pour"])
    assert rate == pytest.approx((bowl + pour) / 2)


def test_actions_with_one_video_are_left_out_and_large_ones_cut() -> None:
    chosen = choose_held_out(records("a", *["b"] * 40, "c", "c"))
    assert [record.action for record in chosen] == ["b"] * MAX_VIDEOS + ["c", "c"]


def test_no_action_with_two_videos_is_an_error() -> None:
    with pytest.raises(TrainingError, match="at least 2 held-out videos of one action, got 1"):
        choose_held_out(records("a", "b"))


def evaluation_of(learner) -> Callable[[], float]:
    """Rates that depend on the step alone, told by the optimizer's own count."""

    def measure() -> float:
        assert not learner.encoder.training
        return RATES[int(next(iter(learner.optimizer.state.values()))["step"])]

    return measure


def test_the_best_weights_are_kept_and_the_run_goes_on(tmp_path: Path, trainer) -> None:
    learner, plain, kept = trainer(9, select_every=2), trainer(9), {}
    state = learner.run(
        tmp_path,
        evaluate_held_out=iter([0.3, 0.6, 0.5, 0.6, 0.4]).__next__,
        on_save=lambda step: kept.update({step: all_weights(learner)}),
    )
    assert (state.step, state.selected, state.stopped_early) == (9, Selected(4, 0.6, 3), False)
    assert list(kept) == [2, 4]
    for step in range(9):
        plain.start_update(step).report()
    assert all(torch.equal(all_weights(plain)[k], v) for k, v in all_weights(learner).items())
    assert json.loads((tmp_path / SELECTED_FILE).read_text())["step"] == 4
    looks = [record for record in read_log(tmp_path) if "held_out_cycle_rate" in record]
    assert looks[0] == {"step": 2, "held_out_cycle_rate": 0.3}
    assert [record["step"] for record in looks] == [2, 4, 6, 8, 9]


def test_training_stops_when_patience_ends_and_stays_stopped(tmp_path: Path, trainer) -> None:
    learner = trainer(10, select_every=2, patience=2)
    state = learner.run(tmp_path, evaluate_held_out=evaluation_of(learner))
    assert (state.step, state.stopped_early, state.selected.step) == (8, True, 4)
    again = trainer(10, select_every=2, patience=2)
    state = again.run(tmp_path, evaluate_held_out=evaluation_of(again))
    assert (state.step, state.stopped_early, state.selected) == (8, True, Selected(4, 0.6, 2))


def test_a_killed_run_keeps_what_it_had_selected(folder, trainer) -> None:
    parts, first, second = folder("parts"), trainer(10, select_every=2), trainer(10, select_every=2)
    with pytest.raises(Killed):
        first.run(parts, evaluate_held_out=evaluation_of(first), on_step=kill_after(5))
    saved = []
    state = second.run(parts, evaluate_held_out=evaluation_of(second), on_save=saved.append)
    assert state.selected == Selected(4, 0.6, 3)
    assert saved == []
    assert [r["step"] for r in read_log(parts) if "held_out_cycle_rate" in r] == [2, 4, 6, 8, 10]


def test_the_average_of_the_weights_is_what_is_measured(tmp_path: Path, trainer) -> None:
    learner = trainer(2, ema_decay=0.9, select_every=1)
    seen: list[bool] = []

    def rates() -> Iterator[float]:
        while True:
            average = learner._average.state_dict()
            weights = dict(learner.encoder.named_parameters())
            seen.append(all(torch.equal(weights[name], average[name]) for name in average))
            yield 0.5

    learner.run(tmp_path, evaluate_held_out=rates().__next__)
    assert seen == [True, True]


def test_of_equal_rates_the_earlier_is_kept() -> None:
    assert select_better(None, step=1, rate=0.0) == Selected(1, 0.0, 0)
    assert select_better(Selected(1, 0.5, 0), step=2, rate=0.5) == Selected(1, 0.5, 1)
    assert select_better(Selected(1, 0.5, 3), step=9, rate=0.6) == Selected(9, 0.6, 0)


def test_a_rate_that_is_no_number_stops(tmp_path: Path, trainer) -> None:
    with pytest.raises(TrainingError, match="held-out cycle rate is nan at update 2"):
        trainer(4, select_every=2).run(tmp_path, evaluate_held_out=lambda: float("nan"))


def test_negative_intervals_are_refused() -> None:
    with pytest.raises(ValueError, match=r"and run\.patience must not be negative, got -1 and 3"):
        RunSettings(select_every=-1, patience=3)
