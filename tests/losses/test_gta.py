import itertools
import math

import numpy as np
import pytest
import torch

from cycleback.losses import GTALoss, ReversalLoss
from losses.test_lav import unit
from losses.test_soft_dtw import slow_table


def column_softmax(values: np.ndarray) -> np.ndarray:
    weights = np.exp(values - values.max(axis=0))
    return weights / weights.sum(axis=0)


def slow_gta(videos, *, warp_weight: float) -> float:
    """The formulas, one pair at a time."""
    costs = []
    for u, v in itertools.combinations(range(len(videos)), 2):
        tables = []
        for x, y in ((videos[u], videos[v]), (videos[v], videos[u])):
            shares = column_softmax((x @ y.T).numpy() / 0.1)
            tables.append(slow_table(-np.log(shares), 0.1, "mean"))
        landed = column_softmax(-tables[0]) @ column_softmax(-tables[1])  # column i: from frame i
        own = [-math.log(landed[i, i]) for i in range(len(landed))]
        costs.append(np.mean(own) + warp_weight * (tables[0][-1, -1] + tables[1][-1, -1]))
    return float(np.mean(costs))


def test_gta_equals_the_loop(embeddings):
    for weight in (0.1, 0.5):
        expected = slow_gta(unit(embeddings), warp_weight=weight)
        assert GTALoss(warp_weight=weight)(embeddings).item() == pytest.approx(expected, rel=1e-7)


def test_reversal_equals_the_loop(embeddings):
    videos, costs = unit(embeddings), []
    for u, v in itertools.combinations(range(3), 2):
        table = ((videos[u][:, None] - videos[v][None]) ** 2).sum(-1).numpy()
        forwards, backwards = (slow_table(t, 0.1, "mean")[-1, -1] / 7 for t in (table, table[:, ::-1]))
        costs.append(max(0.0, forwards - backwards + 0.4))
    assert ReversalLoss(margin=0.4)(embeddings).item() == pytest.approx(np.mean(costs), rel=1e-9)


def test_collapse_is_not_rewarded():
    collapsed = torch.ones(2, 9, 4, dtype=torch.float64)
    angles = 2 * math.pi * torch.arange(9, dtype=torch.float64) / 9
    aligned = torch.stack([angles.cos(), angles.sin()], dim=-1).expand(2, 9, 2)
    assert GTALoss()(aligned) < GTALoss()(collapsed)


def test_only_pairs_that_run_backwards_cost_more_than_the_margin():
    angles = torch.linspace(0, 2, 10, dtype=torch.float64)
    line = torch.stack([angles.cos(), angles.sin()], dim=-1)
    loss = ReversalLoss(margin=0.05)
    assert loss(torch.stack([line, line])).item() == 0
    assert loss(torch.stack([line, line.flip(0)])).item() > 0.2


def test_descent_aligns_two_videos():
    places = torch.randn(2, 8, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    optimizer = torch.optim.Adam([places], lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        GTALoss()(places).backward()
        optimizer.step()
    nearest = (unit(places[0]) @ unit(places[1]).T).argmax(dim=1)
    assert (nearest - torch.arange(8)).abs().max() <= 1


@pytest.mark.parametrize("loss", [GTALoss(smoothing=0.5, temperature=0.5), ReversalLoss(margin=0.4)])
def test_gradcheck(loss, embeddings):
    places = embeddings[:2, :4, :3].clone().requires_grad_()
    assert torch.autograd.gradcheck(loss, (places,))


@pytest.mark.parametrize("loss", [GTALoss(), ReversalLoss()])
@pytest.mark.parametrize("spread", [0.0, 1e-20, 1e15])
def test_gradients_are_finite_at_the_extremes(loss, spread, embeddings):
    places = (spread * embeddings.float()).requires_grad_()
    value = loss(places)
    value.backward()
    assert value.isfinite() and places.grad.isfinite().all()


def test_wrong_settings_are_refused(embeddings):
    with pytest.raises(ValueError, match="margin must be positive, got 0"):
        ReversalLoss(margin=0)
    with pytest.raises(ValueError, match=r"embeddings must be \(B >= 2, T, D\)"):
        GTALoss()(embeddings[:1])
