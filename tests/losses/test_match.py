import itertools
import math

import pytest
import torch

from cycleback.losses import MatchLoss


def slow_loss(embeddings: torch.Tensor, frames: torch.Tensor, matches: torch.Tensor, sigma: float) -> float:
    """The definition, pair by pair and frame by frame."""
    videos, count = embeddings.shape[:2]
    costs = []
    for u, v, t in itertools.product(range(videos), range(videos), range(count)):
        if u != v:
            off = [float(matches[u, v, t] - frames[v, s]) for s in range(count)]
            weights = [math.exp(-(distance**2) / (2 * sigma**2)) for distance in off]
            scores = [-float(((embeddings[u, t] - embeddings[v, s]) ** 2).sum()) for s in range(count)]
            norm = math.log(sum(map(math.exp, scores)))
            picked = sum(weight * (score - norm) for weight, score in zip(weights, scores, strict=True))
            costs.append(-picked / sum(weights))
    return sum(costs) / len(costs)


def test_it_is_the_cross_entropy_to_the_matched_frames() -> None:
    generator = torch.Generator().manual_seed(0)
    embeddings = torch.randn(3, 5, 4, generator=generator, dtype=torch.float64)
    frames = torch.sort(torch.randint(0, 30, (3, 5), generator=generator)).values
    matches = 30 * torch.rand(3, 3, 5, generator=generator, dtype=torch.float64)
    for sigma in (1.0, 4.0):
        loss = MatchLoss(sigma=sigma, l2_weight=0.0)(embeddings, frames=frames, matches=matches)
        assert float(loss) == pytest.approx(slow_loss(embeddings, frames, matches, sigma), rel=1e-9)
    penalty = MatchLoss(l2_weight=0.5)(embeddings, frames=frames, matches=matches)
    bare = MatchLoss(l2_weight=0.0)(embeddings, frames=frames, matches=matches)
    assert float(penalty - bare) == pytest.approx(0.5 * float(embeddings.square().sum(-1).mean()))


def test_right_matches_cost_less_than_shifted_ones_and_descent_finds_them() -> None:
    frames = torch.arange(8).expand(2, 8)
    matches = frames.float().expand(2, 2, 8)
    line = 3.0 * torch.arange(8.0)[:, None].expand(8, 2)
    loss = MatchLoss()
    aligned, shifted = torch.stack([line, line]), torch.stack([line, line.roll(2, 0)])
    assert loss(aligned, frames=frames, matches=matches) < loss(shifted, frames=frames, matches=matches)
    embeddings = torch.randn(2, 8, 4, generator=torch.Generator().manual_seed(1)).requires_grad_()
    optimizer = torch.optim.Adam([embeddings], lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        loss(embeddings, frames=frames, matches=matches).backward()
        optimizer.step()
    nearest = torch.cdist(embeddings[0], embeddings[1]).argmin(dim=1)
    assert torch.equal(nearest, torch.arange(8))


def test_wrong_shapes_and_settings_are_refused() -> None:
    embeddings = torch.zeros(2, 3, 4)
    with pytest.raises(ValueError, match="needs frames"):
        MatchLoss()(embeddings)
    with pytest.raises(ValueError, match=r"matches must be \(2, 2, 3\), got \(2, 3\)"):
        MatchLoss()(embeddings, frames=torch.zeros(2, 3), matches=torch.zeros(2, 3))
    with pytest.raises(ValueError, match="sigma must be positive, got 0"):
        MatchLoss(sigma=0)
