import itertools

import pytest
import torch

from cycleback.losses import IDMLoss, LAVLoss
from losses.test_soft_dtw import slow_table

FRAMES = torch.tensor([[0, 3, 9, 14, 20, 26, 33], [1, 2, 5, 8, 21, 30, 39], [0, 10, 12, 13, 15, 31, 40]])


def slow_idm(video, times, frames, window: float, margin: float) -> float:
    """The sum of the paper over all pairs of frames of one video."""
    total = 0.0
    for i, j in itertools.product(range(len(video)), repeat=2):
        distance = float(((video[i] - video[j]) ** 2).sum())
        if abs(int(frames[i]) - int(frames[j])) > window:
            total += (1 + float(times[i] - times[j]) ** 2) * max(0.0, margin - distance)
        else:
            total += distance
    return total


def slow_lav(videos, times, frames, *, smoothing: float, idm_weight: float, window: float) -> float:
    """The loss of the paper, pair by pair."""
    pairs = []
    for u, v in itertools.combinations(range(len(videos)), 2):
        costs = ((videos[u][:, None] - videos[v][None]) ** 2).sum(-1).numpy()
        warped = slow_table(costs, smoothing, "log")[-1, -1]
        contrast = sum(slow_idm(videos[k], times[k], frames[k], window, 2.0) for k in (u, v))
        pairs.append((warped + idm_weight * contrast) / len(videos[u]))
    return sum(pairs) / len(pairs)


def unit(embeddings: torch.Tensor) -> torch.Tensor:
    return embeddings / embeddings.norm(dim=-1, keepdim=True)


def test_the_moment_equals_the_loop(embeddings, times):
    for window in (5, 12):
        sums = [
            slow_idm(v, t, f, window, 2.0) for v, t, f in zip(unit(embeddings), times, FRAMES, strict=True)
        ]
        found = IDMLoss(window=window)(embeddings, times=times, frames=FRAMES)
        assert found.item() == pytest.approx(sum(sums) / 3 / 7**2, rel=1e-9)


def test_lav_equals_the_loop(embeddings, times):
    found = LAVLoss(smoothing=0.2, idm_weight=0.7)(embeddings, times=times, frames=FRAMES)
    expected = slow_lav(unit(embeddings), times, FRAMES, smoothing=0.2, idm_weight=0.7, window=10)
    assert found.item() == pytest.approx(expected, rel=1e-9)


def test_collapse_is_free_for_the_warp_but_not_with_the_moment(times):
    collapsed = torch.ones(3, 7, 5, dtype=torch.float64)
    angles = torch.arange(7, dtype=torch.float64) / 7 * 3
    spread = torch.stack([angles.cos(), angles.sin()], dim=-1).expand(3, 7, 2)
    frames = FRAMES[:1].expand(3, 7)
    costs = {
        weight: [
            LAVLoss(idm_weight=weight)(e, times=times, frames=frames).item() for e in (collapsed, spread)
        ]
        for weight in (0.0, 0.5)
    }
    assert costs[0.0][0] < costs[0.0][1]
    assert costs[0.5][0] > costs[0.5][1]


def test_descent_aligns_two_videos(times):
    frames = 5 * torch.arange(7).expand(2, 7)
    places = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    optimizer = torch.optim.Adam([places], lr=0.05)
    for _ in range(300):
        optimizer.zero_grad()
        LAVLoss(window=5)(places, times=times[:2].float(), frames=frames).backward()
        optimizer.step()
    nearest = torch.cdist(unit(places[0]), unit(places[1])).argmin(dim=1)
    assert (nearest - torch.arange(7)).abs().max() <= 1


@pytest.mark.parametrize("loss", [LAVLoss(), IDMLoss()])
@pytest.mark.parametrize("spread", [0.0, 1e-20, 1e15])
def test_gradients_are_finite_at_the_extremes(loss, spread, embeddings, times):
    places = (spread * embeddings.float()).requires_grad_()
    value = loss(places, times=times, frames=FRAMES)
    value.backward()
    assert value.isfinite() and places.grad.isfinite().all()


@pytest.mark.parametrize("loss", [LAVLoss(smoothing=0.5), IDMLoss()])
def test_gradcheck(loss, embeddings, times):
    places = embeddings[:2, :4, :3].clone().requires_grad_()
    keywords = {"times": times[:2, :4], "frames": FRAMES[:2, :4]}
    assert torch.autograd.gradcheck(lambda x: loss(x, **keywords), (places,))


def test_what_is_needed_is_said(embeddings, times):
    with pytest.raises(ValueError, match="LAV loss needs times"):
        LAVLoss()(embeddings, times=times)
    with pytest.raises(
        ValueError, match=r"frames must be \(B, T\) = \(3, 7\) like the embeddings, got \(2, 7\)"
    ):
        IDMLoss()(embeddings, times=times, frames=FRAMES[:2])
    with pytest.raises(ValueError, match=r"embeddings must be \(B >= 2, T, D\)"):
        LAVLoss()(embeddings[:1], times=times[:1], frames=FRAMES[:1])
