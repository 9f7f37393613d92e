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
