import itertools
import math

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from cycleback.losses.transport import (
    Structure,
    Virtual,
    neighbourhood,
    sinkhorn,
    structure_costs,
    transport_plan,
)


def random_costs(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def slow_sinkhorn(costs: np.ndarray, g: float, iterations: int) -> np.ndarray:
    """The textbook: scale the kernel's columns and rows in turn."""
    rows, columns = costs.shape
    plan = np.exp(-costs / g)
    for _ in range(iterations):
        plan = plan / plan.sum(axis=0, keepdims=True) / columns
        plan = plan / plan.sum(axis=1, keepdims=True) / rows
    return plan


def test_sinkhorn_on_logarithms_is_sinkhorn():
    costs = random_costs(2, 5, 7)
    found = transport_plan(costs, regularization=0.2, iterations=9)
    for pair, plan in zip(costs, found, strict=True):
        np.testing.assert_allclose(plan.numpy(), slow_sinkhorn(pair.numpy(), 0.2, 9), rtol=1e-9)


def test_with_little_entropy_it_is_the_plan_of_the_linear_program():
    costs = random_costs(4, 6)
    constraints = np.zeros((10, 24))
    for i, j in itertools.product(range(4), range(6)):
        constraints[i, 6 * i + j] = constraints[4 + j, 6 * i + j] = 1
    best = linprog(costs.numpy().ravel(), A_eq=constraints, b_eq=[1 / 4] * 4 + [1 / 6] * 6)
    plan = transport_plan(costs[None], regularization=0.003, iterations=3000)[0]
    assert float((plan * costs).sum()) == pytest.approx(best.fun, abs=1e-3)
    np.testing.assert_allclose(plan.numpy().ravel(), best.x, atol=5e-3)


def test_tiny_regularisation_does_not_underflow_in_single_precision():
    plan = transport_plan(1000 * random_costs(1, 5, 5).float(), regularization=1e-3, iterations=50)
    assert plan.isfinite().all()
    torch.testing.assert_close(plan.sum(-1), torch.full((1, 5), 0.2))


def test_the_virtual_frame_takes_what_has_no_counterpart_and_no_more_than_its_share():
    costs = torch.full((1, 6, 6), 2.0, dtype=torch.float64)
    costs[0].fill_diagonal_(0.0)
    costs[0, 2, 2] = 2.0  # frame 2 of X goes with no frame of Y, nor frame 2 of Y with one of X
    plan = transport_plan(costs, regularization=0.02, iterations=200, virtual=Virtual(0.5, 0.5))[0]
    expected = torch.eye(6, dtype=torch.float64) / 6
    expected[2, 2] = 0
    torch.testing.assert_close(plan, expected, atol=1e-6, rtol=0)
    forced = transport_plan(costs, regularization=0.02, iterations=200)[0]
    torch.testing.assert_close(forced.sum(-1), torch.full((6,), 1 / 6, dtype=torch.float64))
    far = torch.full((1, 6, 6), 2.0, dtype=torch.float64)
    left = 1 - transport_plan(far, regularization=0.02, iterations=200, virtual=Virtual(0.5, 0.3)).sum()
    assert left.item() == pytest.approx(0.3, abs=1e-6)


def slow_structure(plan: np.ndarray, reach: int) -> np.ndarray:
    """For each match, the share of neighbours that go to no neighbour of the other frame, and back."""
    rows, columns = plan.shape
    costs = np.zeros_like(plan)
    for i, j in itertools.product(range(rows), range(columns)):
        near_i = [k for k in range(rows) if 0 < abs(k - i) <= reach]
        near_j = [k for k in range(columns) if 0 < abs(k - j) <= reach]
        of_i = sum(plan[k, m] * rows for k in near_i for m in range(columns) if abs(m - j) > reach)
        of_j = sum(plan[k, m] * columns for m in near_j for k in range(rows) if abs(k - i) > reach)
        costs[i, j] = (of_i / len(near_i) + of_j / len(near_j)) / 2
    return costs


@pytest.mark.parametrize("radius", [0.02, 0.3])
def test_the_structure_equals_the_loop_even_where_the_radius_is_below_one_frame(radius):
    plan = transport_plan(random_costs(2, 7, 9), regularization=0.1)
    found = structure_costs(plan, radius=radius)
    reach = [neighbourhood(count, radius) for count in (7, 9)]
    if reach[0] == reach[1]:
        for pair, costs in zip(plan, found, strict=True):
            np.testing.assert_allclose(costs.numpy(), slow_structure(pair.numpy(), reach[0]), rtol=1e-9)
    assert neighbourhood(21, 0.02) == 1  # the released setting, where the radius of the program is 0
    assert found.abs().sum() > 0


def test_structure_prefers_neighbours_that_stay_together():
    costs = torch.zeros(1, 8, 8, dtype=torch.float64)  # every plan costs the same, but for one hint
    costs += 0.1
    order = [*range(4, 8), *range(4)]  # two blocks, swapped: no order of time, but neighbours stay
    for i, j in enumerate(order):
        costs[0, i, j] = 0.0
    costs[0, 2, 6], costs[0, 2, 1] = 0.1, 0.0  # frame 2 is torn away from its neighbours
    plain = transport_plan(costs, regularization=0.01, iterations=50)[0]
    held = transport_plan(
        costs, regularization=0.01, iterations=50, structure=Structure(weight=0.5, radius=0.1, steps=10)
    )[0]
    assert plain[2].argmax() == 1
    assert held[2].argmax() == 6


def test_sinkhorn_takes_any_masses():
    rows, columns = torch.tensor([0.7, 0.3]).log(), torch.tensor([0.2, 0.5, 0.3]).log()
    plan = sinkhorn(torch.zeros(2, 3), rows, columns, iterations=3).exp()
    torch.testing.assert_close(plan, rows.exp()[:, None] * columns.exp())
    assert math.isclose(float(plan.sum()), 1, rel_tol=1e-6)


def test_a_regularisation_of_zero_is_refused():
    with pytest.raises(ValueError, match="regularization must be positive, got 0"):
        transport_plan(torch.zeros(1, 2, 2), regularization=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("shape", [(3, 5, 7), (6, 20, 20), (2, 100, 33), (1, 200, 150)])
def test_a_gpu_finds_the_same_plan(shape):
    costs, prior = random_costs(*shape), -random_costs(*shape, seed=1)
    options = {"virtual": Virtual(0.3, 0.2), "structure": Structure(), "iterations": 30}
    expected = transport_plan(costs, log_prior=prior, **options)
    for dtype, bound in ((torch.float64, 1e-9), (torch.float32, 1e-4)):
        plan = transport_plan(costs.to("cuda", dtype), log_prior=prior.to("cuda", dtype), **options)
        assert (plan.cpu().double() - expected).norm() < bound * expected.norm()
