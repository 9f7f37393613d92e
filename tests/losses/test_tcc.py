import math
from functools import partial

import pytest
import torch

from cycleback.losses import (
    TCCLoss,
    cycle_back_classification,
    cycle_back_logits,
    cycle_back_regression,
    ordered_pairs,
    soft_nearest_neighbors,
)
from losses import loops

KINDS = ("regression", "classification", "mse", "huber")
FORMS = {  # name: (loss, error of one frame, what divides -||.||^2 at D = 5)
    "regression": (TCCLoss(), loops.regression, 0.5),
    "mse": (TCCLoss(kind="mse"), loops.mse, 0.5),
    "huber": (TCCLoss(kind="huber"), loops.huber, 0.5),
    "classification": (TCCLoss(kind="classification"), loops.classification, 0.5),
    "smoothed": (TCCLoss.reference("classification"), partial(loops.classification, smoothing=0.1), 0.5),
    "unscaled": (TCCLoss(kind="mse", temperature=2.0, scaling="none"), loops.mse, 2.0),
    "log sigma": (TCCLoss(variance_term="log_sigma"), partial(loops.regression, log_power=1), 0.5),
}


def numpy_videos(values):
    """One numpy array for each video."""
    return [row.numpy() for row in values]


@pytest.mark.parametrize("name", FORMS)
def test_equals_the_loop_from_the_paper(name, embeddings, times):
    loss, error, scale = FORMS[name]
    expected = loops.tcc_loop(numpy_videos(embeddings), numpy_videos(times), error, scale)
    assert loss(embeddings, times=times).item() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("kind", ["regression", "mse", "classification"])
def test_paper_form_is_the_printed_equations(kind, embeddings):
    error = {**vars(loops), "regression": partial(loops.regression, log_power=1)}[kind]
    positions = [torch.arange(1, 8, dtype=torch.float64).numpy()] * 3
    expected = loops.tcc_loop(numpy_videos(embeddings), positions, error, scale=1.0)
    assert TCCLoss.paper(kind)(embeddings).item() == pytest.approx(expected, rel=1e-10)


def test_reference_form_keeps_the_defaults_and_smooths_labels():
    ours, reference = vars(TCCLoss()), vars(TCCLoss.reference())
    assert {name for name in ours if not name.startswith("_") and ours[name] != reference[name]} == {
        "label_smoothing"
    }


def test_perfect_cycle_lands_on_its_start(times):
    apart = 100 * torch.eye(7, dtype=torch.float64).expand(3, 7, 7)  # every frame certain of its match
    assert TCCLoss(kind="classification")(apart).item() == pytest.approx(0, abs=1e-9)
    assert TCCLoss(kind="mse")(apart, times=times).item() == pytest.approx(0, abs=1e-9)
    assert TCCLoss()(apart, times=times).item() == pytest.approx(1e-3 * math.log(1e-8))


def test_certain_cycle_to_the_wrong_frame_costs_most(times):
    frames = 100 * torch.eye(7, dtype=torch.float64)
    u, v = torch.stack([frames[0], frames[1]]), frames[1:2]  # both frames of u have one neighbour: u's second
    logits = cycle_back_logits(u[None], v[None])
    error = cycle_back_regression(logits, torch.tensor([[0.0, 0.5]], dtype=torch.float64))
    assert logits.argmax(-1).tolist() == [[1, 1]]
    assert error.item() == pytest.approx(0.5 * 0.25 / 1e-8 + 1e-3 * math.log(1e-8))


def test_collapsed_embeddings_are_not_rewarded():
    collapsed, times = torch.ones(4, 20, 128), (torch.arange(20) / 20).expand(4, 20)
    variance = (20**2 - 1) / 12 / 20**2  # of 20 evenly spaced times
    values = {kind: TCCLoss(kind=kind)(collapsed, times=times).item() for kind in KINDS}
    assert values["regression"] == pytest.approx(1 + 1e-3 * math.log(variance), rel=1e-5)
    assert values["regression"] == pytest.approx(0.9975, abs=1e-4)
    assert values["mse"] == pytest.approx(variance, rel=1e-5) == pytest.approx(1 / 12, rel=3e-3)
    assert values["classification"] == pytest.approx(math.log(20), rel=1e-5)


def test_aligned_videos_beat_collapsed_and_shuffled_ones():
    path = torch.linspace(0, 20, 10)[None, :, None] * torch.ones(2, 1, 8)
    times = torch.linspace(0, 0.9, 10).expand(2, 10)
    order = torch.randperm(10, generator=torch.Generator().manual_seed(0))
    shuffled_times = torch.stack([times[0], times[0][order]])
    for kind in KINDS[1:]:
        loss = TCCLoss(kind=kind)
        assert loss(path, times=times) < 0.5 * loss(torch.zeros_like(path), times=times)
    assert TCCLoss(kind="mse")(path, times=times) < TCCLoss(kind="mse")(path, times=shuffled_times)


def test_order_of_the_videos_does_not_matter(embeddings, times):
    order = [2, 0, 1]
    expected = TCCLoss()(embeddings, times=times)
    torch.testing.assert_close(TCCLoss()(embeddings[order], times=times[order]), expected)


def test_shifting_the_embeddings_or_the_clock_does_not_matter(embeddings, times):
    expected = TCCLoss()(embeddings, times=times)
    torch.testing.assert_close(TCCLoss()(embeddings + 100.0, times=times), expected)
    torch.testing.assert_close(TCCLoss()(embeddings, times=times + 3.0), expected)


def test_changing_one_video_leaves_the_pairs_of_the_others_unchanged(embeddings):
    start, other = ordered_pairs(3)
    without_second = ((start != 1) & (other != 1)).nonzero().flatten()
    changed = embeddings.index_fill(0, torch.tensor([1]), 9.0)
    before, after = (cycle_back_logits(x[start], x[other]) for x in (embeddings, changed))
    assert without_second.tolist() == [1, 4]
    torch.testing.assert_close(after[without_second], before[without_second], rtol=0, atol=0)
    assert not torch.allclose(after[0], before[0])


def test_a_batch_is_the_mean_of_its_pairs_of_videos(embeddings, times):
    pairs = [[0, 1], [0, 2], [1, 2]]
    expected = sum(TCCLoss()(embeddings[pair], times=times[pair]) for pair in pairs) / 3
    torch.testing.assert_close(TCCLoss()(embeddings, times=times), expected)


def test_swapping_videos_and_frames_is_another_loss(embeddings, times):
    swapped = TCCLoss(kind="mse")(embeddings.transpose(0, 1), times=times.T)
    assert abs(swapped - TCCLoss(kind="mse")(embeddings, times=times)) > 1e-3
    with pytest.raises(ValueError, match=r"times must be \(B, T\) = \(3, 7\) .*, got \(7, 3\)"):
        TCCLoss()(embeddings, times=times.T)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spread", [0.0, 1e-20, 1e4, 1e8, 1e15])
def test_gradients_are_finite_at_the_extremes(kind, spread, times):
    embeddings = spread * torch.randn(3, 7, 5, generator=torch.Generator().manual_seed(0))
    embeddings.requires_grad_()
    value = TCCLoss(kind=kind, label_smoothing=0.1)(embeddings, times=times)
    value.backward()
    assert value.isfinite() and embeddings.grad.isfinite().all()


@pytest.mark.parametrize("options", [{}, {"similarity": "cosine", "scaling": "none"}, {"normalize": True}])
@pytest.mark.parametrize("kind", KINDS)
def test_gradcheck(kind, options, embeddings, times):
    tiny = (0.3 * embeddings[:, 2:6, :2]).requires_grad_()  # sure walks are too steep for differences
    loss = TCCLoss(kind=kind, label_smoothing=0.1, huber_delta=0.2, **options)
    assert torch.autograd.gradcheck(lambda x: loss(x, times=times[:, 2:6]), tiny)


def test_normalized_embeddings_are_unit_vectors(embeddings, times):
    unit = embeddings / embeddings.norm(dim=-1, keepdim=True)
    expected = TCCLoss()(unit, times=times)
    torch.testing.assert_close(TCCLoss(normalize=True)(5 * embeddings, times=times), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_computes_in_float32(kind, dtype, embeddings, times):
    half, loss = embeddings.to(dtype), TCCLoss(kind=kind)
    value = loss(half, times=times)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, loss(half.float(), times=times), rtol=0, atol=0)
    torch.testing.assert_close(value.double(), loss(embeddings, times=times), rtol=0.05, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_autocast_does_not_reach_the_loss(kind, embeddings, times):
    loss, single = TCCLoss(kind=kind), embeddings.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = loss(single, times=times)
    torch.testing.assert_close(inside, loss(single, times=times), rtol=0, atol=0)


def test_positions_are_exact_for_long_half_precision_videos():
    long = torch.zeros(2, 600, 2, dtype=torch.bfloat16)  # bfloat16 cannot count past 256
    value = TCCLoss(kind="mse", index="position")(long)
    assert value.item() == pytest.approx((600**2 - 1) / 12, rel=1e-5)


def test_float64_stays_float64(embeddings, times):
    assert TCCLoss()(embeddings, times=times.float()).dtype == torch.float64


def test_soft_neighbors_of_a_strict_temperature_are_hard(embeddings):
    u, v = embeddings[0], embeddings[1]
    nearest = v[torch.cdist(u, v).argmin(dim=1)]
    torch.testing.assert_close(soft_nearest_neighbors(u, v, temperature=1e-6), nearest)


def test_label_smoothing_equals_torch_cross_entropy(embeddings):
    logits = cycle_back_logits(embeddings[:2], embeddings[1:])
    targets = torch.arange(7).expand(2, 7)
    expected = torch.nn.functional.cross_entropy(logits.mT, targets, label_smoothing=0.3)
    torch.testing.assert_close(cycle_back_classification(logits, label_smoothing=0.3), expected)


@pytest.mark.parametrize("shape", [(1, 20, 8), (20, 8), (2, 0, 8), (2, 3, 0)])
def test_embeddings_that_cannot_cycle_are_refused(shape):
    expected = rf"embeddings must be \(B >= 2, T, D\), got \({', '.join(map(str, shape))}\)"
    with pytest.raises(ValueError, match=expected):
        TCCLoss()(torch.zeros(shape), times=torch.zeros(shape[:2]))


def test_missing_times_are_named(embeddings):
    with pytest.raises(ValueError, match=r"kind='huber' compares times: give times= \(B, T\)"):
        TCCLoss(kind="huber")(embeddings)


@pytest.mark.parametrize("option", ["kind", "scaling", "similarity", "variance_term", "index"])
def test_unknown_options_are_refused(option):
    with pytest.raises(ValueError, match=rf"{option} must be one of .*, got 'sideways'"):
        TCCLoss(**{option: "sideways"})


@pytest.mark.parametrize("option", ["temperature", "huber_delta"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan])
def test_scales_must_be_positive(option, value):
    with pytest.raises(ValueError, match=rf"{option} must be positive, got {value}"):
        TCCLoss(**{option: value})
