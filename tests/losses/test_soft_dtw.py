import itertools
import math

import numpy as np
import pytest
import torch

from cycleback.losses.soft_dtw import skew, soft_dtw, unskew, warp_table


def slow_table(costs: np.ndarray, g: float, minimum: str) -> np.ndarray:
    """The recursion of the paper, one cell at a time."""
    rows, width = costs.shape
    table = np.full((rows + 1, width + 1), np.inf)
    table[0, 0] = 0
    for i, j in itertools.product(range(1, rows + 1), range(1, width + 1)):
        before = [v for v in (table[i - 1, j - 1], table[i - 1, j], table[i, j - 1]) if math.isfinite(v)]
        lowest = min(before)
        weights = [math.exp(-(v - lowest) / g) for v in before]
        least = lowest - g * math.log(sum(weights))
        if minimum == "mean":
            least = sum(w * v for w, v in zip(weights, before, strict=True)) / sum(weights)
        table[i, j] = costs[i - 1, j - 1] + least
    return table[1:, 1:]


def random_costs(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("minimum", ["log", "mean"])
@pytest.mark.parametrize("shape", [(2, 5, 7), (3, 7, 4), (1, 1, 6), (2, 6, 1), (1, 1, 1)])
def test_the_table_is_that_of_the_recursion(shape, minimum):
    costs = random_costs(*shape)
    for g in (0.05, 1.0):
        expected = np.stack([slow_table(pair.numpy(), g, minimum) for pair in costs])
        found = warp_table(costs, smoothing=g, minimum=minimum)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize("minimum", ["log", "mean"])
def test_the_gradient_is_that_of_finite_differences(minimum):
    costs = random_costs(2, 4, 6).requires_grad_()
    weights = random_costs(2, 4, 6, seed=1)  # every cell of the table counts, not only the last
    assert torch.autograd.gradcheck(
        lambda x: (weights * warp_table(x, smoothing=0.3, minimum=minimum)).sum(), (costs,)
    )


def test_the_soft_minima_bound_the_best_path_and_meet_it_without_smoothing():
    costs = random_costs(6, 8)
    best = slow_table(costs.numpy(), 1e-4, "mean")[-1, -1]
    assert soft_dtw(costs, smoothing=0.2) < best < soft_dtw(costs, smoothing=0.2, minimum="mean")
    assert soft_dtw(costs, smoothing=1e-4).item() == pytest.approx(best, abs=2e-3)


def test_with_little_smoothing_the_gradient_is_the_path():
    costs = torch.ones(5, 5, dtype=torch.float64) - torch.eye(5, dtype=torch.float64)
    costs.requires_grad_()
    soft_dtw(costs, smoothing=0.01).backward()
    torch.testing.assert_close(costs.grad, torch.eye(5, dtype=torch.float64), atol=1e-6, rtol=0)


def test_skewing_can_be_undone():
    cells = random_costs(2, 3, 5)
    diagonals = skew(cells, -1.0)
    assert diagonals.shape == (7, 2, 3)
    assert diagonals[4, 1, 2] == cells[1, 2, 2]
    assert (diagonals[0, :, 1:] == -1).all()
    torch.testing.assert_close(unskew(diagonals, 5), cells)


@pytest.mark.parametrize("minimum", ["log", "mean"])
@pytest.mark.parametrize("scale", [0.0, 1e-6, 1e4])
def test_long_tables_in_single_precision_stay_finite_and_close(scale, minimum):
    costs = scale * random_costs(2, 60, 90)
    exact = warp_table(costs, minimum=minimum)[..., -1, -1]
    single = costs.float().requires_grad_()
    found = soft_dtw(single, minimum=minimum)
    found.sum().backward()
    torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=1e-4)
    assert single.grad.isfinite().all()
    assert single.grad[:, -1, -1].allclose(torch.ones(2))  # every path ends there


def test_wrong_tables_and_names_are_refused():
    with pytest.raises(ValueError, match=r"got \(3,\)"):
        soft_dtw(torch.zeros(3))
    with pytest.raises(ValueError, match="minimum must be one of 'log', 'mean', got 'hard'"):
        warp_table(torch.zeros(2, 2), minimum="hard")
    with pytest.raises(ValueError, match="smoothing must be positive, got 0"):
        soft_dtw(torch.zeros(2, 2), smoothing=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("minimum", ["log", "mean"])
@pytest.mark.parametrize("shape", [(3, 5, 7), (2, 33, 20), (1, 300, 1100), (2, 1100, 40), (70, 1, 1)])
def test_a_gpu_finds_the_same_table_and_gradient(shape, minimum):
    costs, weights = random_costs(*shape), random_costs(*shape, seed=1)

    def walk(device: str, dtype: torch.dtype) -> torch.Tensor:
        leaf = costs.to(device, dtype, copy=True).requires_grad_()
        table = warp_table(leaf, smoothing=0.1, minimum=minimum)
        (weights.to(table) * table).sum().backward()
        return torch.stack([table.detach().cpu().double(), leaf.grad.cpu().double()]).flatten(1)

    exact, single = walk("cpu", torch.float64), walk("cpu", torch.float32)
    assert ((walk("cuda", torch.float64) - exact).norm(dim=1) <= 1e-9 * exact.norm(dim=1)).all()
    bound = 2 * (single - exact).norm(dim=1) + 1e-5 * exact.norm(dim=1)  # rounds about as a CPU does
    assert ((walk("cuda", torch.float32) - exact).norm(dim=1) <= bound).all()
