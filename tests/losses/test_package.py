import inspect

import pytest
import torch

import cycleback.losses as losses


def test_all_names_exist_and_are_documented():
    assert sorted(losses.__all__) == losses.__all__
    assert all(inspect.getdoc(getattr(losses, name)) for name in losses.__all__)


@pytest.mark.parametrize("name", ["TCCLoss", "StochasticTCCLoss", "TCNLoss", "SaLLoss", "SupervisedLoss"])
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
    mask = torch.arange(7) < torch.tensor([7, 5, 6])[:, None]
    return {"times": times, "positives": embeddings, "phases": (times > 0.5).long(), "mask": mask}


def test_all_losses_combined_get_what_they_need(everything, embeddings, inputs):
    result = everything.parts(embeddings, **inputs, generator=torch.Generator().manual_seed(0))
    assert everything.needs == {"times", "positives", "phases", "mask", "generator"}
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
