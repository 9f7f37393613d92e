import pytest
import torch

from cycleback.training import Arithmetic
from cycleback.training.precision import Forward, deterministic


def test_half_precision_stays_near_and_comes_out_in_full(trainer) -> None:
    learner = trainer()
    learner.encoder.eval()
    features = torch.rand(2, 3, 2, 16, 3, 3)
    full = Forward(learner.encoder, Arithmetic())(features, are_features=True)
    half = Forward(learner.encoder, Arithmetic("bfloat16"))(features, are_features=True)
    assert half.dtype == torch.float32
    assert not torch.equal(full, half)
    torch.testing.assert_close(half, full, rtol=0.05, atol=0.05)


def test_the_network_is_compiled_when_asked_for(trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda function: compiled.append(function) or function)
    learner = trainer(arithmetic=Arithmetic(compile=True))
    learner.update(0)
    assert compiled == [learner.encoder.forward, learner.encoder.embed]


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(ValueError, match=r"precision must be one of .*'bfloat16'.*, got 'float8'"):
        Arithmetic("float8")


@pytest.mark.parametrize("enabled", [True, False])
def test_determinism_is_for_the_run_only(enabled: bool) -> None:
    with deterministic(enabled):
        assert torch.are_deterministic_algorithms_enabled() == enabled
    assert not torch.are_deterministic_algorithms_enabled()
