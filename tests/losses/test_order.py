import pytest
import torch

from cycleback.losses import OrderLoss, TCCLoss
from losses import loops


def on_a_line(*directions: int, frames: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings (B, T, 1) of videos that go along one line, and come from its end where told -1; times."""
    times = (torch.arange(frames, dtype=torch.float64) + 0.5) / frames
    places = [times if direction == 1 else 1 - times for direction in directions]
    return torch.stack(places)[..., None] * 5, times.expand(len(directions), -1)


def test_equals_the_loop(embeddings, times):
    expected = loops.order_loop(list(embeddings.numpy()), list(times.numpy()))
    assert expected > 0
    assert OrderLoss()(embeddings, times=times).item() == pytest.approx(expected, rel=1e-5)


def test_cycles_cannot_tell_forwards_from_backwards_but_the_order_can():
    (forward, times), (backward, _) = on_a_line(1, 1), on_a_line(1, -1)
    cycles = [TCCLoss()(embeddings, times=times).item() for embeddings in (forward, backward)]
    assert cycles[0] == pytest.approx(cycles[1], rel=1e-9)
    assert OrderLoss()(forward, times=times).item() == 0
    assert OrderLoss()(backward, times=times).item() == pytest.approx(1, abs=0.05)


def test_only_the_pairs_that_run_backwards_cost():
    embeddings, times = on_a_line(1, 1, -1)  # of six ordered pairs, four
    assert OrderLoss()(embeddings, times=times).item() == pytest.approx(4 / 6, abs=0.05)


def test_its_gradient_turns_matches_round():
    embeddings, times = on_a_line(1, -1)
    places = 0.01 * embeddings + 0.01 * torch.randn(
        embeddings.shape, generator=torch.Generator().manual_seed(0)
    )
    places = torch.cat([places, torch.zeros_like(places)], dim=-1).requires_grad_()
    optimizer = torch.optim.Adam([places], lr=0.05)
    before = OrderLoss()(places, times=times).item()
    for _ in range(200):
        optimizer.zero_grad()
        OrderLoss()(places, times=times).backward()
        optimizer.step()
    assert before > 0.5
    assert OrderLoss()(places, times=times).item() < 0.01


@pytest.mark.parametrize("spread", [0.0, 1e-20, 1e4, 1e15])
def test_gradients_are_finite_at_the_extremes(spread, embeddings, times):
    frames = (spread * embeddings.float()).requires_grad_()
    value = OrderLoss()(frames, times=times)
    value.backward()
    assert value.isfinite() and frames.grad.isfinite().all()


def test_gradcheck(embeddings, times):
    frames = embeddings[:, :4, :2].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: OrderLoss()(x, times=times[:, :4]), (frames,))


def test_normalized_embeddings_are_unit_vectors(embeddings, times):
    unit = embeddings / embeddings.norm(dim=-1, keepdim=True)
    loss = OrderLoss(normalize=True, scaling="none")
    expected = OrderLoss(scaling="none")(unit, times=times)
    assert expected > 0
    torch.testing.assert_close(loss(5 * embeddings, times=times), expected)


def test_times_are_needed(embeddings):
    with pytest.raises(ValueError, match="the order of matches needs times="):
        OrderLoss()(embeddings)
