import pytest
import torch
from torch import Tensor, nn

from cycleback.losses import CombinedLoss, Loss, TCCLoss, TCNLoss


class PhaseLoss(Loss):
    """Takes phases and nothing else, and has a weight to learn."""

    needs = frozenset({"phases"})

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(5, 2, dtype=torch.float64)

    def forward(self, embeddings: Tensor, *, phases: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.head(embeddings).mT, phases)


@pytest.fixture
def combined() -> CombinedLoss:
    return CombinedLoss({"tcc": (TCCLoss(), 0.5), "tcn": (TCNLoss(), 0.25)})


def test_total_is_the_weighted_sum_of_the_parts(combined, embeddings, times, mask):
    result = combined.parts(embeddings, times=times, positives=embeddings, mask=mask)
    tcc = TCCLoss()(embeddings, times=times, mask=mask)
    tcn = TCNLoss()(embeddings, positives=embeddings, mask=mask)
    torch.testing.assert_close(result.parts, {"tcc": tcc, "tcn": tcn})
    torch.testing.assert_close(result.total, 0.5 * tcc + 0.25 * tcn)


def test_calling_gives_the_total(combined, embeddings, times):
    total = combined(embeddings, times=times, positives=embeddings)
    torch.testing.assert_close(
        total, combined.parts(embeddings, times=times, positives=embeddings).total, rtol=0, atol=0
    )


def test_each_part_gets_only_what_it_needs(embeddings, times):
    loss = CombinedLoss({"tcc": (TCCLoss(), 1.0), "phase": (PhaseLoss(), 1.0)})
    value = loss(embeddings, times=times, phases=torch.ones(3, 7, dtype=torch.int64))
    assert value.isfinite() and loss.needs == {"times", "mask", "phases"}


def test_parts_that_learn_are_registered():
    assert len(list(CombinedLoss({"phase": (PhaseLoss(), 1.0)}).parameters())) == 2


def test_gradients_reach_the_embeddings_through_every_part(combined, embeddings, times):
    leaf = embeddings.clone().requires_grad_()
    combined(leaf, times=times, positives=embeddings.flip(1)).backward()
    grads = [torch.autograd.grad(TCCLoss()(leaf, times=times), leaf)[0]]
    grads += torch.autograd.grad(TCNLoss()(leaf, positives=embeddings.flip(1)), leaf)
    torch.testing.assert_close(leaf.grad, 0.5 * grads[0] + 0.25 * grads[1])


def test_a_part_of_weight_zero_is_left_out(embeddings, times):
    loss = CombinedLoss({"tcc": (TCCLoss(), 1.0), "tcn": (TCNLoss(), 0.0)})
    assert loss.needs == {"times", "mask"}
    assert list(loss.parts(embeddings, times=times).parts) == ["tcc"]


def test_a_missing_input_is_named_by_the_part_that_needs_it(combined, embeddings, times):
    with pytest.raises(ValueError, match=r"positives must be \(3, 7, 5\) like the embeddings, got None"):
        combined(embeddings, times=times)


def test_combinations_may_be_nested(combined, embeddings, times):
    outer = CombinedLoss({"both": (combined, 2.0)})
    inner = combined(embeddings, times=times, positives=embeddings)
    torch.testing.assert_close(outer(embeddings, times=times, positives=embeddings), 2 * inner)


@pytest.mark.parametrize("weight", [-0.5, float("nan")])
def test_negative_weights_are_refused(weight):
    with pytest.raises(ValueError, match=rf"weight of 'tcc' must not be negative, got {weight}"):
        CombinedLoss({"tcc": (TCCLoss(), weight)})


def test_nothing_to_sum_is_refused():
    with pytest.raises(ValueError, match=r"no part has a positive weight; parts: \['tcc'\]"):
        CombinedLoss({"tcc": (TCCLoss(), 0.0)})
