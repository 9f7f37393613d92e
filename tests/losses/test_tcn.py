import math

import pytest
import torch

from cycleback.losses import TCNLoss, n_pairs_loss
from losses import loops


@pytest.fixture
def positives(embeddings):
    generator = torch.Generator().manual_seed(2)
    return embeddings + 0.3 * torch.randn(embeddings.shape, dtype=torch.float64, generator=generator)


def test_equals_the_loop_from_the_paper(embeddings, positives):
    expected = loops.tcn_loop(list(embeddings.numpy()), list(positives.numpy()))
    assert TCNLoss()(embeddings, positives=positives).item() == pytest.approx(expected, rel=1e-10)


def test_frames_only_meet_frames_of_their_own_video(embeddings, positives):
    before = n_pairs_loss(embeddings, positives)
    changed = n_pairs_loss(embeddings, positives.index_fill(0, torch.tensor([1]), 9.0))
    torch.testing.assert_close(changed[[0, 2]], before[[0, 2]], rtol=0, atol=0)
    assert before.shape == (3,) and abs(changed[1] - before[1]) > 0.1


def test_orthogonal_frames_that_match_cost_nothing_but_their_norms():
    frames = 10 * torch.eye(6).expand(2, 6, 6)
    assert TCNLoss(l2_weight=0.0)(frames, positives=frames).item() == pytest.approx(0, abs=1e-6)
    assert TCNLoss()(frames, positives=frames).item() == pytest.approx(0.25 * 0.002 * 200)


def test_collapsed_embeddings_cost_log_of_the_frames():
    collapsed = torch.ones(2, 6, 4)
    value = TCNLoss(l2_weight=0.0)(collapsed, positives=collapsed)
    assert value.item() == pytest.approx(math.log(6))


def test_temperature_divides_the_dot_products(embeddings, positives):
    value = TCNLoss(temperature=4.0, l2_weight=0.0)(embeddings, positives=positives)
    expected = TCNLoss(l2_weight=0.0)(embeddings / 2, positives=positives / 2)
    torch.testing.assert_close(value, expected)


def test_order_of_the_videos_does_not_matter(embeddings, positives):
    order = [2, 0, 1]
    expected = TCNLoss()(embeddings, positives=positives)
    torch.testing.assert_close(TCNLoss()(embeddings[order], positives=positives[order]), expected)


def test_swapping_videos_and_frames_is_another_loss(embeddings, positives):
    swapped = TCNLoss()(embeddings.transpose(0, 1), positives=positives.transpose(0, 1))
    assert abs(swapped - TCNLoss()(embeddings, positives=positives)) > 1e-3


@pytest.mark.parametrize("spread", [0.0, 1e-20, 1e4, 1e15])
def test_gradients_are_finite_at_the_extremes(spread, embeddings, positives):
    anchors = (spread * embeddings.float()).requires_grad_()
    value = TCNLoss()(anchors, positives=spread * positives.float())
    value.backward()
    assert value.isfinite() and anchors.grad.isfinite().all()


def test_gradcheck(embeddings, positives):
    anchors, near = (x[:, 2:6, :2].clone().requires_grad_() for x in (embeddings, positives))
    assert torch.autograd.gradcheck(lambda a, p: TCNLoss()(a, positives=p), (anchors, near))


def test_half_precision_and_autocast_compute_in_float32(embeddings, positives):
    half = embeddings.half(), positives.half()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = TCNLoss()(half[0], positives=half[1])
    assert value.dtype == torch.float32
    expected = TCNLoss()(half[0].float(), positives=half[1].float())
    torch.testing.assert_close(value, expected, rtol=0, atol=0)


def test_positives_that_do_not_fit_are_refused(embeddings):
    with pytest.raises(
        ValueError, match=r"positives must be \(3, 7, 5\) like the embeddings, got \(3, 6, 5\)"
    ):
        TCNLoss()(embeddings, positives=embeddings[:, :6])
    with pytest.raises(ValueError, match=r"positives must be \(3, 7, 5\) like the embeddings, got None"):
        TCNLoss()(embeddings)


def test_bad_settings_and_shapes_are_refused(embeddings):
    with pytest.raises(ValueError, match=r"temperature must be positive, got 0"):
        TCNLoss(temperature=0)
    with pytest.raises(ValueError, match=r"embeddings must be \(B >= 1, T, D\), got \(7, 5\)"):
        TCNLoss()(embeddings[0], positives=embeddings[0])
