import math
from collections import Counter
from itertools import combinations

import pytest
import torch
from torch import nn

from cycleback.losses import SaLLoss, Triplets, draw_triplets, triplet_errors
from losses import loops


@pytest.fixture
def loss():
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return SaLLoss(5).double()


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def flat(triplets):
    """(frames, label) of each triplet."""
    return list(
        zip(triplets.frames.flatten(0, 1).tolist(), triplets.shuffled.flatten().tolist(), strict=True)
    )


def layers_of(loss):
    linear = [layer for layer in loss.classifier if isinstance(layer, nn.Linear)]
    return [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in linear]


def test_equals_the_loop_over_the_same_triplets(loss, embeddings):
    triplets = draw_triplets(3, 7, generator=seeded())
    frames, labels = triplets.frames.tolist(), triplets.shuffled.tolist()
    expected = loops.sal_loop(embeddings.numpy(), frames, labels, layers_of(loss))
    assert loss(embeddings, generator=seeded()).item() == pytest.approx(expected, rel=1e-10)


def test_classifier_has_the_sizes_of_the_paper():
    shapes = [tuple(layer.weight.shape) for layer in SaLLoss(32).classifier if isinstance(layer, nn.Linear)]
    assert shapes == [(128, 96), (64, 128), (2, 64)]
    assert [type(layer).__name__ for layer in SaLLoss(32).classifier][1::2] == ["ReLU", "ReLU"]
    assert len(SaLLoss(32, hidden_sizes=()).classifier) == 1


def test_triplets_in_order_are_in_order_and_the_others_are_not():
    for (first, middle, last), label in flat(draw_triplets(4, 9, generator=seeded())):
        low, high = sorted((first, last))
        assert (low < middle < high) == (label == 0)
        assert len({first, middle, last}) == 3


def test_five_frames_leave_no_choice_but_the_coins():
    triplets = draw_triplets(2, 5, triplets_per_video=1000, generator=seeded())
    counts = Counter((tuple(frames), label) for frames, label in flat(triplets))
    shuffled = [(1, 0, 3), (1, 4, 3), (3, 0, 1), (3, 4, 1)]
    assert set(counts) == {((1, 2, 3), 0), ((3, 2, 1), 0), *((frames, 1) for frames in shuffled)}
    assert all(180 < counts[frames, 0] < 320 for frames in [(1, 2, 3), (3, 2, 1)])
    assert all(300 < counts[frames, 1] < 450 for frames in shuffled)


def test_every_five_frames_are_equally_likely():
    triplets = draw_triplets(1, 7, triplets_per_video=21000, shuffled_fraction=0, generator=seeded())
    counts = Counter(tuple(sorted(frames)) for frames, _ in flat(triplets))
    expected = Counter(five[1:4] for five in combinations(range(7), 5))
    assert set(counts) == set(expected)
    assert all(
        abs(counts[middle] - 1000 * times) < 5 * math.sqrt(1000 * times) for middle, times in expected.items()
    )


@pytest.mark.parametrize(("fraction", "shuffled"), [(0.75, 24), (0.5, 16), (0.0, 0), (1.0, 32), (0.7, 22)])
def test_the_share_of_shuffled_triplets_is_exact(fraction, shuffled):
    triplets = draw_triplets(4, 20, shuffled_fraction=fraction, generator=seeded())
    assert triplets.shuffled.shape == (4, 8) and triplets.shuffled.sum() == shuffled


def test_every_triplet_is_shuffled_as_often_as_any_other():
    draws = [draw_triplets(2, 6, generator=seeded(seed)).shuffled for seed in range(400)]
    share = torch.stack(draws).double().mean(dim=0)  # (2, 8)
    assert share.min() > 0.75 - 0.11 and share.max() < 0.75 + 0.11  # 5 standard deviations


def test_changing_one_video_leaves_the_triplets_of_the_others_unchanged(loss, embeddings):
    triplets = draw_triplets(3, 7, generator=seeded())
    changed = embeddings.index_fill(0, torch.tensor([1]), 9.0)
    before, after = (triplet_errors(x, triplets, loss.classifier) for x in (embeddings, changed))
    assert before.shape == (3, 8)
    torch.testing.assert_close(after[[0, 2]], before[[0, 2]], rtol=0, atol=0)
    assert after[1].ne(before[1]).all()


def test_the_classifier_sees_the_three_embeddings_in_their_order(embeddings):
    triplets = Triplets(torch.tensor([[[1, 0, 3]], [[2, 5, 4]], [[6, 4, 1]]]), torch.tensor([[1], [1], [0]]))
    seen = []
    triplet_errors(embeddings, triplets, lambda x: seen.append(x) or x[..., :2])
    expected = torch.stack([embeddings[0, [1, 0, 3]], embeddings[1, [2, 5, 4]], embeddings[2, [6, 4, 1]]])
    torch.testing.assert_close(seen[0], expected.reshape(3, 1, 15), rtol=0, atol=0)


def test_a_classifier_that_knows_nothing_costs_log_2(loss, embeddings):
    for parameter in loss.parameters():
        nn.init.zeros_(parameter)
    assert loss(embeddings, generator=seeded()).item() == pytest.approx(math.log(2))


def test_collapsed_embeddings_cannot_beat_the_share_of_the_classes(loss):
    logits = torch.tensor([0.25, 0.75], dtype=torch.float64).log()
    with torch.no_grad():
        loss.classifier[-1].weight.zero_()
        loss.classifier[-1].bias.copy_(logits)
    value = loss(torch.ones(4, 20, 5, dtype=torch.float64), generator=seeded())
    assert value.item() == pytest.approx(-0.25 * math.log(0.25) - 0.75 * math.log(0.75))


def test_embeddings_that_know_the_time_can_be_told_apart():
    clock = torch.linspace(-1, 1, 12)[None, :, None].expand(4, 12, 1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        loss = SaLLoss(1, triplets_per_video=16)
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-2)
    for step in range(150):
        optimizer.zero_grad()
        value = loss(clock, generator=seeded(step))
        value.backward()
        optimizer.step()
    assert value.item() < 0.1


def test_the_generator_alone_decides_the_triplets(loss, embeddings):
    first, again, other = (loss(embeddings, generator=seeded(seed)) for seed in (5, 5, 6))
    assert first == again != other
    generator = seeded(5)
    assert loss(embeddings, generator=generator) == first != loss(embeddings, generator=generator)


def test_without_a_generator_the_global_seed_decides(loss, embeddings):
    with torch.random.fork_rng():
        torch.manual_seed(5)
        first = loss(embeddings)
        torch.manual_seed(5)
        assert loss(embeddings) == first


@pytest.mark.parametrize("spread", [0.0, 1e-20, 1e4, 1e15])
def test_gradients_are_finite_at_the_extremes(loss, spread, embeddings):
    leaf = (spread * embeddings.float()).requires_grad_()
    value = loss.float()(leaf, generator=seeded())
    value.backward()
    assert value.isfinite() and leaf.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in loss.parameters())


def test_gradcheck(embeddings):
    tiny = embeddings[:2, :5, :2].clone().requires_grad_()
    loss = SaLLoss(2, triplets_per_video=3, hidden_sizes=(4,)).double()
    assert torch.autograd.gradcheck(lambda x: loss(x, generator=seeded()), tiny)


def test_half_precision_and_autocast_compute_in_the_precision_of_the_weights(loss, embeddings):
    half = embeddings.half()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss.float()(half, generator=seeded())
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, loss(half.float(), generator=seeded()), rtol=0, atol=0)
    assert loss.double()(half, generator=seeded()).dtype == torch.float64


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_generator_on_the_cpu_draws_the_same_for_a_gpu(loss, embeddings):
    expected = loss(embeddings, generator=seeded())
    value = loss.cuda()(embeddings.cuda(), generator=seeded())
    torch.testing.assert_close(value.cpu(), expected)


def test_fewer_than_five_frames_are_refused(loss, embeddings):
    with pytest.raises(ValueError, match=r"5 different frames of a video, got 4; sample more"):
        loss(embeddings[:, :4])


def test_bad_settings_and_shapes_are_refused(loss, embeddings):
    with pytest.raises(ValueError, match=r"triplets_per_video must be positive, got 0"):
        SaLLoss(5, triplets_per_video=0)
    with pytest.raises(ValueError, match=r"shuffled_fraction must be in \[0, 1\], got 1.5"):
        SaLLoss(5, shuffled_fraction=1.5)
    with pytest.raises(ValueError, match=r"embeddings must be \(B, T, 5\) for this loss, got \(3, 7, 4\)"):
        loss(embeddings[..., :4])
