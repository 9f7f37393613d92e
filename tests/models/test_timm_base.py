import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from cycleback.errors import CheckpointError, MissingDependencyError
from cycleback.models import external
from cycleback.models.external import TimmBase


@pytest.mark.parametrize("model", ["test_resnet", "test_vit", "test_efficientnet", "test_convnext"])
def test_kinds_of_networks_give_a_grid(timm: Any, model: str) -> None:
    base = TimmBase(model=model, weights=None)
    base.train()(torch.rand(4, 3, 128, 96)).sum().backward()
    assert all(parameter.grad is not None for parameter in base.parameters())
    with torch.no_grad():
        features = base.eval()(torch.rand(2, 3, 128, 96))
    assert features.shape == (2, base.channels, 128 // base.stride, 96 // base.stride)


def test_features_equal_those_of_the_whole_network(timm: Any, tmp_path: Path) -> None:
    network = timm.create_model("test_resnet").eval()
    torch.save(network.state_dict(), tmp_path / "w.pth")
    base = TimmBase(model="test_resnet", weights=tmp_path / "w.pth").eval()
    images, pixels = torch.rand(2, 3, 64, 64), network.pretrained_cfg
    mean, std = (torch.tensor(pixels[name])[:, None, None] for name in ("mean", "std"))
    expected = network.forward_features((images - mean) / std)
    torch.testing.assert_close(base(images), expected, atol=1e-4, rtol=1e-4)


def test_an_earlier_stage_has_a_finer_grid(timm: Any) -> None:
    last, earlier = (TimmBase(model="test_resnet", stage=stage, weights=None) for stage in (-1, -2))
    assert (last.stride, earlier.stride) == (32, 16)


def test_settings_that_cannot_be_are_errors(timm: Any) -> None:
    with pytest.raises(CheckpointError, match=r"cannot load the timm model 'resnet999': Unknown model"):
        TimmBase(model="resnet999", weights=None)
    with pytest.raises(CheckpointError, match=r"weights file nowhere\.pth does not exist"):
        TimmBase(model="test_resnet", weights="nowhere.pth")
    with pytest.raises(ValueError, match="needs the name of a model"):
        TimmBase(model="")
    with pytest.raises(ValueError, match="test_resnet has no stage 9"):
        TimmBase(model="test_resnet", stage=9, weights=None)


def test_without_the_library_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingDependencyError, match="needs timm: pip install timm"):
        TimmBase(model="resnet18")


def test_a_torchvision_for_another_torch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(module: str) -> None:
        raise RuntimeError("operator torchvision::nms does not exist\nmore")

    monkeypatch.setattr(external, "import_module", broken)
    with pytest.raises(
        MissingDependencyError, match=r"that fits this torch: operator torchvision::nms does not exist$"
    ):
        TimmBase(model="resnet18")
