import math

import pytest
import torch
from torch import nn

from cycleback.losses import SupervisedLoss, phase_errors
from losses import loops


@pytest.fixture
def phases():
    """(3, 7): four phases; some frames have no label, and one video has none at all."""
    return torch.tensor([[0, 0, 1, 1, 2, 3, 3], [0, 1, -1, 2, -1, 3, 3], [-1] * 7])


@pytest.fixture
def loss():
    return with_options()


def with_options(**options):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return SupervisedLoss(5, 4, **options).double()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_equals_the_loop_over_the_labelled_frames(smoothing, embeddings, phases):
    loss = with_options(label_smoothing=smoothing)
    weight, bias = (x.detach().numpy() for x in (loss.classifier.weight, loss.classifier.bias))
    expected = loops.supervised_loop(embeddings.numpy(), phases.tolist(), weight, bias, smoothing)
    assert loss(embeddings, phases=phases).item() == pytest.approx(expected, rel=1e-10)


def test_one_linear_layer_and_nothing_else_learns(loss):
    assert [tuple(x.shape) for x in loss.parameters()] == [(4, 5), (4,)]


def test_the_own_phase_for_certain_costs_nothing_and_another_costs_most():
    loss, phases = SupervisedLoss(4, 4), torch.tensor([[0, 1, 2, 3]])
    with torch.no_grad():
        loss.classifier.weight.copy_(torch.eye(4))
        loss.classifier.bias.zero_()
    frames = 100 * torch.eye(4)[None]
    assert loss(frames, phases=phases).item() == pytest.approx(0, abs=1e-6)
    assert loss(frames, phases=phases.roll(1)).item() == pytest.approx(100)


def test_a_classifier_that_knows_nothing_costs_log_of_the_phases(loss, embeddings, phases):
    for parameter in loss.parameters():
        nn.init.zeros_(parameter)
    assert loss(embeddings, phases=phases).item() == pytest.approx(math.log(4))


def test_changing_one_video_leaves_the_frames_of_the_others_unchanged(loss, embeddings, phases):
    changed = embeddings.index_fill(0, torch.tensor([1]), 9.0)
    before, after = (phase_errors(loss.classifier(x), phases) for x in (embeddings, changed))
    torch.testing.assert_close(after[[0, 2]], before[[0, 2]], rtol=0, atol=0)
    assert before[2].eq(0).all() and after[1].ne(before[1]).sum() == (phases[1] != -1).sum() == 5


def test_order_of_the_videos_does_not_matter(loss, embeddings, phases):
    order = [2, 0, 1]
    expected = loss(embeddings, phases=phases)
    torch.testing.assert_close(loss(embeddings[order], phases=phases[order]), expected)


def test_frames_without_a_label_neither_count_nor_learn(loss, embeddings, phases):
    hostile = embeddings.masked_fill((phases == -1)[..., None], math.nan).requires_grad_()
    value = loss(hostile, phases=phases)
    value.backward()
    torch.testing.assert_close(value, loss(embeddings, phases=phases))
    assert hostile.grad[phases == -1].eq(0).all() and hostile.grad[phases != -1].ne(0).all()
    assert all(parameter.grad.isfinite().all() for parameter in loss.parameters())


def test_any_integers_are_phases(loss, embeddings, phases):
    expected = loss(embeddings, phases=phases)
    torch.testing.assert_close(loss(embeddings, phases=phases.to(torch.int8)), expected, rtol=0, atol=0)


def test_dropout_drops_in_training_only(embeddings, phases):
    loss, plain = with_options(dropout=0.5), with_options()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        assert loss(embeddings, phases=phases) != loss(embeddings, phases=phases)
    assert loss.eval()(embeddings, phases=phases) == plain(embeddings, phases=phases)


@pytest.mark.parametrize("spread", [0.0, 1e-20, 1e4, 1e15])
def test_gradients_are_finite_at_the_extremes(loss, spread, embeddings, phases):
    leaf = (spread * embeddings.float()).requires_grad_()
    value = loss.float()(leaf, phases=phases)
    value.backward()
    assert value.isfinite() and leaf.grad.isfinite().all()


def test_gradcheck(embeddings, phases):
    loss = with_options(label_smoothing=0.1)
    leaf = embeddings.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: loss(x, phases=phases), leaf)


def test_half_precision_and_autocast_compute_in_the_precision_of_the_weights(loss, embeddings, phases):
    half = embeddings.half()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss.float()(half, phases=phases)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, loss(half.float(), phases=phases), rtol=0, atol=0)
    assert loss.double()(half, phases=phases).dtype == torch.float64


def test_a_batch_without_labels_is_refused(loss, embeddings, phases):
    with pytest.raises(ValueError, match=r"no frame of the batch has a label: all phases are -1"):
        loss(embeddings, phases=torch.full_like(phases, -1))


@pytest.mark.parametrize(("phase", "seen"), [(4, "-1 to 4"), (-2, "-2 to 3")])
def test_phases_out_of_range_are_refused(loss, phase, seen, embeddings, phases):
    phases[0, 2] = phase
    with pytest.raises(ValueError, match=rf"phases must be 0 to 3, or -1 for no label, got {seen}"):
        loss(embeddings, phases=phases)


def test_phases_that_do_not_fit_are_refused(loss, embeddings, phases):
    with pytest.raises(ValueError, match=r"needs labels: give phases= \(B, T\), got None"):
        loss(embeddings)
    with pytest.raises(ValueError, match=r"phases must be \(B, T\) = \(3, 7\) .*, got \(7, 3\)"):
        loss(embeddings, phases=phases.T)
    with pytest.raises(ValueError, match=r"phases must be integers, got torch.float32"):
        loss(embeddings, phases=phases.float())


def test_bad_settings_and_shapes_are_refused(loss, embeddings, phases):
    with pytest.raises(ValueError, match=r"num_phases must be at least 2, got 1"):
        SupervisedLoss(5, 1)
    with pytest.raises(ValueError, match=r"embeddings must be \(B, T, 5\) for this loss, got \(3, 7, 4\)"):
        loss(embeddings[..., :4], phases=phases)
