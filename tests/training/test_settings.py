import pytest

from cycleback.training import OptimizerSettings


def factors(*steps: int, **settings: object) -> list[float]:
    optimizer = OptimizerSettings(**{"num_updates": 100, "warmup_updates": 0, **settings})
    return [optimizer.learning_rate_factor(step) for step in steps]


def test_constant_is_one() -> None:
    assert factors(50, schedule="constant") == [1.0]


def test_warm_up_rises_linearly() -> None:
    rise = factors(*range(5), schedule="constant", warmup_updates=4)
    assert rise == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


def test_cosine_falls_from_one_to_nothing() -> None:
    assert factors(0, 50, 100, schedule="cosine") == pytest.approx([1.0, 0.5, 0.0])


def test_steps_fall_where_they_are_told_to() -> None:
    found = factors(0, 9, 10, 19, 20, 99, schedule="step", step_updates=(10, 20), step_factor=0.5)
    assert found == [1, 1, 0.5, 0.5, 0.25, 0.25]
