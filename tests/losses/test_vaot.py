import itertools
import math

import numpy as np
import pytest
import torch

from cycleback.losses import VAOTLoss, VAVALoss
from cycleback.losses.transport import Structure, Virtual, transport_plan
from losses.test_lav import FRAMES, slow_idm, unit


def slow_pick(cosines: np.ndarray, plan: np.ndarray, temperature: float) -> float:
    """Cross-entropy of picking what the plan says, one row at a time."""
    total = 0.0
    for row, target in zip(cosines, plan, strict=True):
        norm = math.log(sum(math.exp(c / temperature) for c in row))
        total -= sum(t * (c / temperature - norm) for t, c in zip(target, row, strict=True))
    return total / plan.sum()


def test_vaot_equals_the_loop(embeddings, times):
    videos, costs = unit(embeddings), []
    for u, v in itertools.combinations(range(3), 2):
        cosines = videos[u] @ videos[v].T
        apart = (times[u][:, None] - times[v][None]).abs()
        plan = transport_plan(
            (1 - cosines + 0.35 * apart)[None],
            regularization=0.07,
            iterations=10,
            virtual=Virtual(0.5, 0.2),
            structure=Structure(0.3, 0.02, 5),
        )[0].numpy()
        forth, back = (
            slow_pick(c, p, 0.1) for c, p in ((cosines.numpy(), plan), (cosines.T.numpy(), plan.T))
        )
        costs.append((forth + back) / 2)
    found = VAOTLoss()(embeddings, times=times)
    assert found.item() == pytest.approx(np.mean(costs), rel=1e-9)


def test_vava_equals_the_loop(embeddings, times):
    videos, costs = unit(embeddings), []
    for u, v in itertools.combinations(range(3), 2):
        distances = ((videos[u][:, None] - videos[v][None]) ** 2).sum(-1)
        prior = torch.zeros(7, 7, dtype=torch.float64)
        for i, j in itertools.product(range(7), repeat=2):
            diagonal = 7 * float(times[u][i] - times[v][j])
            nearest = j - int(distances[i].argmin())
            prior[i, j] = math.log(0.9 * math.exp(-(diagonal**2) / 8) + 0.1 * math.exp(-(nearest**2) / 8))
        plan = transport_plan(
            distances[None], regularization=0.1, log_prior=prior[None], virtual=Virtual(0.5, 0.2)
        )[0]
        costs.append(float((plan * distances).sum()))
    contrast = [slow_idm(v, t, f, 15, 2.0) / 49 for v, t, f in zip(videos, times, FRAMES, strict=True)]
    found = VAVALoss()(embeddings, times=times, frames=FRAMES)
    assert found.item() == pytest.approx(np.mean(costs) + 0.5 * np.mean(contrast), rel=1e-6)


def test_the_gradient_of_the_transport_cost_takes_the_plan_as_fixed(embeddings, times):
    places = embeddings.clone().requires_grad_()
    loss = VAVALoss(idm_weight=0.0, diagonal_share=1.0, iterations=500)
    loss(places, times=times, frames=FRAMES).backward()
    assert places.grad.abs().sum() > 0


def test_descent_finds_matches_that_are_out_of_order():
    """Two videos with their halves swapped: no warping can follow, transport can."""
    torch.manual_seed(0)
    base = torch.randn(8, 6)
    order = torch.tensor([4, 5, 6, 7, 0, 1, 2, 3])
    start = torch.stack([base, base[order]]) + 0.6 * torch.randn(2, 8, 6)
    places = start.clone().requires_grad_()
    times = (torch.arange(8) / 8).expand(2, 8)
    optimizer = torch.optim.Adam([places], lr=0.02)
    loss = VAOTLoss(time_weight=0.0)
    for _ in range(150):
        optimizer.zero_grad()
        loss(places, times=times).backward()
        optimizer.step()
    nearest = (unit(places[0]) @ unit(places[1]).T).argmax(dim=1)
    assert torch.equal(nearest, order.argsort())


@pytest.mark.parametrize("spread", [0.0, 1e-20, 1e15])
def test_gradients_are_finite_at_the_extremes(spread, embeddings, times):
    for loss, keywords in ((VAOTLoss(), {}), (VAVALoss(), {"frames": FRAMES})):
        places = (spread * embeddings.float()).requires_grad_()
        value = loss(places, times=times.float(), **keywords)
        value.backward()
        assert value.isfinite() and places.grad.isfinite().all()


def test_what_is_needed_is_said(embeddings, times):
    with pytest.raises(ValueError, match="VAOT loss needs times"):
        VAOTLoss()(embeddings)
    with pytest.raises(ValueError, match="VAVA loss needs times"):
        VAVALoss()(embeddings, times=times)
    with pytest.raises(ValueError, match="sigma must be positive, got 0"):
        VAVALoss(sigma=0)
