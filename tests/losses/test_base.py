import inspect

import pytest
import torch
from torch import Tensor, nn

import cycleback.losses as losses
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


def test_total_is_the_weighted_sum_of_the_parts(combined, embeddings, times):
    result = combined.parts(embeddings, times=times, positives=embeddings)
    tcc = TCCLoss()(embeddings, times=times)
    tcn = TCNLoss()(embeddings, positives=embeddings)
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
    assert value.isfinite() and loss.needs == {"times", "phases"}


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
    assert loss.needs == {"times"}
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


def test_all_names_exist_and_are_documented():
    assert sorted(losses.__all__) == losses.__all__
    assert all(inspect.getdoc(getattr(losses, name)) for name in losses.__all__)


@pytest.mark.parametrize(
    "name", ["TCCLoss", "StochasticTCCLoss", "TCNLoss", "OrderLoss", "SaLLoss", "SupervisedLoss"]
)
def test_needs_are_the_keywords_of_forward(name):
    loss = getattr(losses, name)
    keywords = list(inspect.signature(loss.forward).parameters)[2:]
    assert loss.needs == set(keywords)


@pytest.fixture
def everything():
    """Every loss of the package at weight 1, on embeddings of 5 channels, in float64."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        learned = {"sal": losses.SaLLoss(5), "supervised": losses.SupervisedLoss(5, 2)}
    fixed = {
        "tcc": losses.TCCLoss(),
        "cycles": losses.StochasticTCCLoss(cycle_length=3),
        "tcn": losses.TCNLoss(),
    }
    parts: dict[str, losses.Loss] = {**fixed, **learned}
    return losses.CombinedLoss({name: (loss, 1.0) for name, loss in parts.items()}).double()


@pytest.fixture
def inputs(embeddings, times):
    return {"times": times, "positives": embeddings, "phases": (times > 0.5).long()}


def test_all_losses_combined_get_what_they_need(everything, embeddings, inputs):
    result = everything.parts(embeddings, **inputs, generator=torch.Generator().manual_seed(0))
    assert everything.needs == {"times", "positives", "phases", "generator"}
    assert list(result.parts) == ["tcc", "cycles", "tcn", "sal", "supervised"]
    torch.testing.assert_close(result.total, sum(result.parts.values()))


def test_all_losses_combined_teach_embeddings_and_classifiers(everything, embeddings, inputs):
    leaf = embeddings.clone().requires_grad_()
    everything(leaf, **inputs, generator=torch.Generator().manual_seed(0)).backward()
    learned = [leaf, *everything.parameters()]
    assert len(learned) == 1 + 6 + 2
    assert all(x.grad.isfinite().all() and x.grad.ne(0).any() for x in learned)


def test_all_losses_combined_are_a_function_of_the_seed(everything, embeddings, inputs):
    first, again, other = (
        everything(embeddings, **inputs, generator=torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)
    )
    assert first == again != other


def test_all_losses_combined_move_to_the_embeddings_type(everything, embeddings, inputs):
    half = {**inputs, "positives": embeddings.half()}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = everything.float()(embeddings.half(), **half, generator=torch.Generator().manual_seed(0))
    assert value.dtype == torch.float32 and value.isfinite()


def step(loss: Loss, embeddings: Tensor, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Value and gradient of a loss."""
    value = loss(embeddings, **inputs)
    return value.detach(), torch.autograd.grad(value, embeddings)[0]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize(
    "loss",
    [
        *(losses.LAVLoss(), losses.IDMLoss(), losses.GTALoss(), losses.ReversalLoss(), losses.VAVALoss()),
        *(losses.VAOTLoss(), losses.SCLLoss(5), losses.NextFrameLoss(5), losses.OrderLoss()),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_a_gpu_finds_the_same_value_and_gradient_also_in_a_graph(loss, embeddings, times):
    frames = (60 * times).long()
    inputs = {"times": times, "frames": frames, "positive_frames": frames + 3}
    inputs |= {"positives": embeddings.flip(0), "targets": embeddings.flip(1)}
    inputs = {key: inputs[key] for key in loss.needs}
    expected = step(loss.double(), embeddings.clone().requires_grad_(), inputs)
    there = {key: value.cuda() for key, value in inputs.items()}
    leaf, loss = embeddings.to("cuda", copy=True).requires_grad_(), loss.cuda()
    with torch.cuda.stream(torch.cuda.Stream()):
        found = step(loss, leaf, there)  # also compiles what must not be compiled while capturing
    torch.cuda.synchronize()
    torch.testing.assert_close(tuple(value.cpu() for value in found), expected)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step(loss, leaf, there)
    graph.replay()
    torch.testing.assert_close(tuple(value.cpu() for value in captured), expected)
