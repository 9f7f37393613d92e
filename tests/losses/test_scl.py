import math

import pytest
import torch

from cycleback.losses import NextFrameLoss, SCLLoss
from losses.test_lav import FRAMES, unit

OTHER = torch.tensor([[2, 4, 8, 11, 22, 30, 31], [0, 6, 7, 9, 20, 33, 38], [5, 6, 12, 18, 19, 25, 41]])


@pytest.fixture
def positives(embeddings):
    noise = torch.randn(embeddings.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    return embeddings + 0.3 * noise


def slow_scl(views, frames, variance: float, temperature: float) -> float:
    """KL of the paper, frame by frame, both ways, mean over videos."""
    total = []
    for v in range(3):
        for one, other in ((0, 1), (1, 0)):
            for i in range(7):
                apart = [int(frames[one][v][i]) - int(s) for s in frames[other][v]]
                near = [math.exp(-(a**2) / (2 * variance)) for a in apart]
                like = [math.exp(float(views[one][v][i] @ z) / temperature) for z in views[other][v]]
                shares = [(g / sum(near), p / sum(like)) for g, p in zip(near, like, strict=True)]
                total.append(sum(g * math.log(g / p) for g, p in shares if g > 0))
    return sum(total) / len(total)


def test_scl_equals_the_loop(embeddings, positives):
    found = SCLLoss(5, variance=20, hidden_size=0)(
        embeddings, positives=positives, frames=FRAMES, positive_frames=OTHER
    )
    expected = slow_scl([unit(embeddings), unit(positives)], [FRAMES, OTHER], 20, 0.1)
    assert found.item() == pytest.approx(expected, rel=1e-7)


def test_the_views_may_change_places_and_the_network_is_trained(embeddings, positives):
    torch.manual_seed(0)
    loss = SCLLoss(5).double()
    one = loss(embeddings, positives=positives, frames=FRAMES, positive_frames=OTHER)
    other = loss(positives, positives=embeddings, frames=OTHER, positive_frames=FRAMES)
    torch.testing.assert_close(one, other)
    one.backward()
    assert all(weight.grad.abs().sum() > 0 for weight in loss.parameters())


def test_frames_in_the_order_of_time_cost_less_than_shuffled_ones():
    frames = 2 * torch.arange(12)[None]
    angles = torch.linspace(0, 3, 12, dtype=torch.float64)
    line = torch.stack([angles.cos(), angles.sin()], dim=-1)[None]
    loss = SCLLoss(2, hidden_size=0)
    ordered = loss(line, positives=line, frames=frames, positive_frames=frames)
    shuffled = loss(line, positives=line.flip(1), frames=frames, positive_frames=frames)
    collapsed = torch.ones_like(line)
    flat = loss(collapsed, positives=collapsed, frames=frames, positive_frames=frames)
    assert ordered < flat < shuffled


def test_next_frame_is_the_cosine_to_the_target_where_there_is_a_later_frame(embeddings, positives):
    torch.manual_seed(0)
    loss = NextFrameLoss(5).double()
    later = FRAMES + 3
    later[:, -1] = FRAMES[:, -1]  # the last frame of a video has none
    found = loss(embeddings, targets=positives, frames=FRAMES, positive_frames=later)
    costs = []
    for v in range(3):
        for t in range(6):
            guess, target = loss.predictor(embeddings[v, t]).detach(), positives[v, t]
            costs.append(1 - float(guess @ target) / float(guess.norm() * target.norm()))
    assert found.item() == pytest.approx(sum(costs) / 18, rel=1e-9)
    targets = positives.clone().requires_grad_()
    moved = embeddings.clone().requires_grad_()
    loss(moved, targets=targets, frames=FRAMES, positive_frames=later).backward()
    assert targets.grad is None and moved.grad.abs().sum() > 0


def test_a_batch_without_later_frames_costs_nothing(embeddings, positives):
    loss = NextFrameLoss(5).double()
    assert loss(embeddings, targets=positives, frames=FRAMES, positive_frames=FRAMES).item() == 0


@pytest.mark.parametrize("spread", [0.0, 1e-20, 1e15])
def test_gradients_are_finite_at_the_extremes(spread, embeddings):
    torch.manual_seed(0)
    for loss, key in ((SCLLoss(5), "positives"), (NextFrameLoss(5), "targets")):
        places = (spread * embeddings.float()).requires_grad_()
        value = loss(places, **{key: places}, frames=FRAMES, positive_frames=OTHER + 1000)
        value.backward()
        assert value.isfinite() and places.grad.isfinite().all()


def test_what_is_needed_is_said(embeddings):
    with pytest.raises(ValueError, match="SCL loss needs positives="):
        SCLLoss(5)(embeddings)
    with pytest.raises(ValueError, match="next-frame loss needs targets="):
        NextFrameLoss(5)(embeddings)
    with pytest.raises(ValueError, match=r"embeddings must be \(B, T, 4\) for this loss"):
        SCLLoss(4)(embeddings, positives=embeddings, frames=FRAMES, positive_frames=OTHER)
