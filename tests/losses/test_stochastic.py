import itertools
import math
from collections import Counter
from functools import partial

import pytest
import torch

from cycleback.losses import Cycles, StochasticTCCLoss, TCCLoss, draw_cycles, ordered_pairs, walk_cycles
from losses import loops

KINDS = ("regression", "classification", "mse", "huber")
COSINE = TCCLoss(kind="mse", similarity="cosine", scaling="none", temperature=0.5)
FORMS = {  # name: (loss, the loop with its error, what divides the similarity at D = 5)
    "regression": (TCCLoss(), partial(loops.cycles_loop, error=loops.regression, scale=0.5)),
    "mse": (TCCLoss(kind="mse"), partial(loops.cycles_loop, error=loops.mse, scale=0.5)),
    "huber": (TCCLoss(kind="huber"), partial(loops.cycles_loop, error=loops.huber, scale=0.5)),
    "smoothed": (
        TCCLoss.reference("classification"),
        partial(loops.cycles_loop, error=partial(loops.classification, smoothing=0.1), scale=0.5),
    ),
    "cosine": (
        COSINE,
        partial(loops.cycles_loop, error=loops.mse, scale=0.5, similarity=loops.cosine),
    ),
}


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def listed(cycles):
    """(videos, start) of each cycle."""
    return list(zip(cycles.videos.tolist(), cycles.starts.tolist(), strict=True))


def all_cycles_of_two(num_videos, num_frames):
    """Every ordered pair of videos from every frame of the first."""
    pairs = zip(*(index.tolist() for index in ordered_pairs(num_videos)), strict=True)
    walks = [(pair, i) for pair in pairs for i in range(num_frames)]
    return Cycles(torch.tensor([pair for pair, _ in walks]), torch.tensor([i for _, i in walks]))


@pytest.mark.parametrize("cycle_length", [2, 3])
@pytest.mark.parametrize("name", FORMS)
def test_equals_the_loop_over_the_same_cycles(name, cycle_length, embeddings, times):
    tcc, loop = FORMS[name]
    cycles = draw_cycles(3, 7, num_cycles=21, cycle_length=cycle_length, generator=seeded())
    expected = loop(list(embeddings.numpy()), list(times.numpy()), listed(cycles))
    value = StochasticTCCLoss(tcc, cycle_length=cycle_length)(embeddings, times=times, generator=seeded())
    assert value.item() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", FORMS)
def test_all_cycles_of_two_videos_are_the_loss_over_all_pairs(name, embeddings, times):
    tcc, _ = FORMS[name]
    value = StochasticTCCLoss(tcc).over_cycles(embeddings, all_cycles_of_two(3, 7), times)
    torch.testing.assert_close(value, tcc(embeddings, times=times))


def test_the_mean_of_many_cycles_of_two_videos_tends_to_the_loss_over_all_pairs(embeddings, times):
    tcc = TCCLoss(kind="mse")
    value = StochasticTCCLoss(tcc, fraction=1000.0)(embeddings, times=times, generator=seeded())
    torch.testing.assert_close(value, tcc(embeddings, times=times), rtol=0.03, atol=0)


def test_the_paper_form_and_positions_need_no_times(embeddings):
    tcc = TCCLoss.paper()
    positions = torch.arange(1.0, 8.0, dtype=torch.float64).expand(3, 7)
    value = StochasticTCCLoss(tcc)(embeddings, generator=seeded())
    cycles = draw_cycles(3, 7, num_cycles=21, cycle_length=2, generator=seeded())
    torch.testing.assert_close(value, StochasticTCCLoss(tcc).over_cycles(embeddings, cycles, positions))


@pytest.mark.parametrize("cycle_length", [2, 3, 5])
def test_a_cycle_never_meets_a_video_twice(cycle_length):
    cycles = draw_cycles(5, 4, num_cycles=200, cycle_length=cycle_length, generator=seeded())
    assert cycles.videos.shape == (200, cycle_length) and cycles.starts.shape == (200,)
    assert all(len(set(path)) == cycle_length for path in cycles.videos.tolist())
    assert set(cycles.videos.flatten().tolist()) == set(range(5)) and set(cycles.starts.tolist()) == set(
        range(4)
    )


@pytest.mark.parametrize("num_cycles", [6000, 6001])  # the authors' program: 0 -> 1 -> 0 at multiples of B
def test_every_order_of_the_videos_is_equally_likely(num_cycles):
    cycles = draw_cycles(3, 4, num_cycles=num_cycles, cycle_length=3, generator=seeded())
    counts = Counter(map(tuple, cycles.videos.tolist()))
    assert set(counts) == set(itertools.permutations(range(3)))
    assert all(850 < count < 1150 for count in counts.values())  # 1000 +- 5 standard deviations


def test_every_frame_is_an_equally_likely_start():
    cycles = draw_cycles(3, 7, num_cycles=21000, cycle_length=2, generator=seeded())
    starts = Counter(zip(cycles.videos[:, 0].tolist(), cycles.starts.tolist(), strict=True))
    assert sorted(starts) == list(itertools.product(range(3), range(7)))
    assert all(850 < count < 1150 for count in starts.values())


def test_a_cycle_lands_in_the_video_it_started_from():
    orders = [
        [0, 1, 2, 3],
        [2, 0, 3, 1],
        [3, 2, 1, 0],
    ]  # the same four moments, at other frames of each video
    embeddings = 100 * torch.eye(4)[torch.tensor(orders)]  # (3, 4, 4)
    cycles = draw_cycles(3, 4, num_cycles=60, cycle_length=3, generator=seeded())
    logits = walk_cycles(embeddings, cycles)
    assert logits.shape == (60, 4) and logits.argmax(dim=1).equal(cycles.starts)


def test_changing_one_video_leaves_the_cycles_that_skip_it_unchanged(embeddings):
    cycles = draw_cycles(3, 7, num_cycles=40, cycle_length=2, generator=seeded())
    skips = (cycles.videos != 1).all(dim=1)
    changed = embeddings.index_fill(0, torch.tensor([1]), 9.0)
    before, after = (walk_cycles(x, cycles) for x in (embeddings, changed))
    torch.testing.assert_close(after[skips], before[skips], rtol=0, atol=0)
    assert skips.any() and after[~skips].ne(before[~skips]).any(dim=1).all()


def test_a_longer_cycle_goes_through_every_video_in_turn(embeddings):
    cycles = Cycles(torch.tensor([[0, 1, 2], [0, 2, 1]]), torch.tensor([4, 4]))
    there, other_way = walk_cycles(embeddings, cycles)
    assert not torch.allclose(there, other_way)


def test_perfect_cycle_lands_on_its_start(times):
    apart = 100 * torch.eye(7, dtype=torch.float64).expand(3, 7, 7)  # every frame certain of its match
    for kind, best in {"classification": 0, "mse": 0, "regression": 1e-3 * math.log(1e-8)}.items():
        loss = StochasticTCCLoss(TCCLoss(kind=kind), cycle_length=3)
        assert loss(apart, times=times, generator=seeded()).item() == pytest.approx(best, abs=1e-9)


def test_collapsed_embeddings_are_not_rewarded():
    collapsed, times = torch.ones(4, 20, 128), (torch.arange(20) / 20).expand(4, 20)
    loss = StochasticTCCLoss(TCCLoss(kind="classification"), cycle_length=4)
    assert loss(collapsed, generator=seeded()).item() == pytest.approx(math.log(20), rel=1e-5)
    spread = StochasticTCCLoss(TCCLoss(kind="mse"), cycle_length=4, fraction=20)
    assert spread(collapsed, times=times, generator=seeded()).item() == pytest.approx(1 / 12, rel=0.1)


def test_shifting_the_embeddings_or_the_clock_does_not_matter(embeddings, times):
    loss = StochasticTCCLoss(cycle_length=3)
    expected = loss(embeddings, times=times, generator=seeded())
    torch.testing.assert_close(loss(embeddings + 100.0, times=times, generator=seeded()), expected)
    torch.testing.assert_close(loss(embeddings, times=times + 3.0, generator=seeded()), expected)


def test_the_generator_alone_decides_the_cycles(embeddings, times):
    loss = StochasticTCCLoss()
    first, again, other = (loss(embeddings, times=times, generator=seeded(seed)) for seed in (5, 5, 6))
    assert first == again != other
    generator = seeded(5)
    assert loss(embeddings, times=times, generator=generator) == first
    assert loss(embeddings, times=times, generator=generator) != first


def test_without_a_generator_the_global_seed_decides(embeddings, times):
    with torch.random.fork_rng():
        torch.manual_seed(5)
        first = StochasticTCCLoss()(embeddings, times=times)
        torch.manual_seed(5)
        assert StochasticTCCLoss()(embeddings, times=times) == first


def test_fraction_sets_the_number_of_cycles(embeddings, times, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "cycleback.losses.stochastic.draw_cycles",
        lambda *shape, num_cycles, **rest: (
            seen.append(num_cycles) or draw_cycles(*shape, num_cycles=1, **rest)
        ),
    )
    for fraction in (1.0, 0.5, 2.0, 0.05):
        StochasticTCCLoss(fraction=fraction)(embeddings, times=times)
    assert seen == [21, 10, 42, 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spread", [0.0, 1e-20, 1e4, 1e15])
def test_gradients_are_finite_at_the_extremes(kind, spread, embeddings, times):
    leaf = (spread * embeddings.float()).requires_grad_()
    loss = StochasticTCCLoss(TCCLoss(kind=kind, label_smoothing=0.1), cycle_length=3)
    value = loss(leaf, times=times, generator=seeded())
    value.backward()
    assert value.isfinite() and leaf.grad.isfinite().all()


@pytest.mark.parametrize("options", [{}, {"similarity": "cosine", "scaling": "none"}, {"normalize": True}])
@pytest.mark.parametrize("kind", KINDS)
def test_gradcheck(kind, options, embeddings, times):
    tiny = embeddings[:, 2:6, :2].clone().requires_grad_()
    tcc = TCCLoss(kind=kind, temperature=1.0, label_smoothing=0.1, huber_delta=0.2, **options)
    loss = partial(StochasticTCCLoss(tcc, cycle_length=3), times=times[:, 2:6])
    assert torch.autograd.gradcheck(lambda x: loss(x, generator=seeded()), tiny)


def test_half_precision_and_autocast_compute_in_float32(embeddings, times):
    half, loss = embeddings.half(), StochasticTCCLoss(cycle_length=3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(half, times=times, generator=seeded())
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, loss(half.float(), times=times, generator=seeded()), rtol=0, atol=0)


def test_float64_stays_float64(embeddings, times):
    assert StochasticTCCLoss()(embeddings, times=times.float()).dtype == torch.float64


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_generator_on_the_cpu_draws_the_same_for_a_gpu(embeddings, times):
    loss = StochasticTCCLoss(cycle_length=3)
    value = loss(embeddings.cuda(), times=times.cuda(), generator=seeded())
    expected = loss(embeddings, times=times, generator=seeded())
    torch.testing.assert_close(value.cpu(), expected)


def test_more_videos_than_the_batch_has_are_refused(embeddings, times):
    with pytest.raises(ValueError, match=r"cycle_length 4 needs 4 different videos, the batch has 3"):
        StochasticTCCLoss(cycle_length=4)(embeddings, times=times)


def test_bad_settings_are_refused(embeddings, times):
    with pytest.raises(ValueError, match=r"cycle_length must be at least 2, got 1"):
        StochasticTCCLoss(cycle_length=1)
    with pytest.raises(ValueError, match=r"fraction must be positive, got 0"):
        StochasticTCCLoss(fraction=0)
    with pytest.raises(ValueError, match=r"fraction 0.04 of 3 x 7 frames is not one cycle"):
        StochasticTCCLoss(fraction=0.04)(embeddings, times=times)


def test_inputs_are_checked_as_by_the_loss_over_all_pairs(embeddings, times):
    loss = StochasticTCCLoss(TCCLoss(kind="huber"))
    with pytest.raises(ValueError, match=r"kind='huber' compares times: give times= \(B, T\)"):
        loss(embeddings)
    with pytest.raises(ValueError, match=r"times must be \(B, T\) = \(3, 7\) .*, got \(7, 3\)"):
        loss(embeddings, times=times.T)
    with pytest.raises(ValueError, match=r"embeddings must be \(B >= 2, T, D\), got \(1, 7, 5\)"):
        loss(embeddings[:1], times=times[:1])
