import pytest

from cycleback.training.schedule import learning_rate_factor


def test_constant_is_one() -> None:
    assert learning_rate_factor(50, num_updates=100) == 1.0


def test_warm_up_rises_linearly() -> None:
    factors = [learning_rate_factor(step, num_updates=100, warmup_updates=4) for step in range(5)]
    assert factors == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


def test_cosine_falls_from_one_to_nothing() -> None:
    factors = [learning_rate_factor(step, num_updates=100, schedule="cosine") for step in (0, 50, 100)]
    assert factors == pytest.approx([1.0, 0.5, 0.0])


def test_steps_fall_where_they_are_told_to() -> None:
    steps = {"num_updates": 100, "schedule": "step", "step_updates": (10, 20), "step_factor": 0.5}
    assert [learning_rate_factor(step, **steps) for step in (0, 9, 10, 19, 20, 99)] == [
        1,
        1,
        0.5,
        0.5,
        0.25,
        0.25,
    ]


def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(ValueError, match="schedule must be 'constant', 'cosine' or 'step', got 'linear'"):
        learning_rate_factor(0, num_updates=1, schedule="linear")
