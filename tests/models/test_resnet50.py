from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from cycleback.errors import CheckpointError
from cycleback.models import ResNet50, base_fingerprint
from cycleback.models.resnet50 import torchvision_name
from cycleback.video import read_frames

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))  # channels inside a block, blocks
CONVENTIONS = {"v1": (0, 1e-3), "torchvision": (1, 1e-5)}  # which convolution has the stride, BatchNorm's eps
GOLF_BALL = 574


def random_weights(*, stages: int, seed: int = 0) -> dict[str, Tensor]:
    """A state dict with the names and shapes that He et al.'s network has in torchvision."""
    generator = torch.Generator().manual_seed(seed)
    weights: dict[str, Tensor] = {}

    def add(conv: str, norm: str, outputs: int, inputs: int, kernel: int) -> None:
        scale = (2 / (inputs * kernel * kernel)) ** 0.5
        weights[f"{conv}.weight"] = torch.randn(outputs, inputs, kernel, kernel, generator=generator) * scale
        for part, low in (("weight", 0.5), ("bias", -0.5), ("running_mean", -0.5), ("running_var", 0.5)):
            weights[f"{norm}.{part}"] = torch.rand(outputs, generator=generator) + low

    add("conv1", "bn1", 64, 3, 7)
    inputs = 64
    for stage, (channels, blocks) in enumerate(STAGES[:stages], start=1):
        for block in range(blocks):
            name = f"layer{stage}.{block}"
            add(f"{name}.conv1", f"{name}.bn1", channels, inputs, 1)
            add(f"{name}.conv2", f"{name}.bn2", channels, channels, 3)
            add(f"{name}.conv3", f"{name}.bn3", 4 * channels, channels, 1)
            if block == 0:
                add(f"{name}.downsample.0", f"{name}.downsample.1", 4 * channels, inputs, 1)
            inputs = 4 * channels
    return weights


def reference(weights: dict[str, Tensor], images: Tensor, *, strides: str, blocks: list[str]) -> Tensor:
    """The network written out from the paper, for normalised images."""
    where, eps = CONVENTIONS[strides]

    def conv(grid: Tensor, name: str, norm: str, stride: int = 1) -> Tensor:
        weight = weights[f"{name}.weight"]
        grid = F.conv2d(grid, weight, stride=stride, padding=weight.shape[-1] // 2)
        mean, variance = weights[f"{norm}.running_mean"], weights[f"{norm}.running_var"]
        return F.batch_norm(grid, mean, variance, weights[f"{norm}.weight"], weights[f"{norm}.bias"], eps=eps)

    grid = F.max_pool2d(conv(images, "conv1", "bn1", 2).relu(), 3, stride=2, padding=1)
    for name in blocks:
        stride = 2 if name.endswith(".0") and name != "layer1.0" else 1
        steps = [stride if position == where else 1 for position in range(2)]
        hidden = conv(grid, f"{name}.conv1", f"{name}.bn1", steps[0]).relu()
        hidden = conv(hidden, f"{name}.conv2", f"{name}.bn2", steps[1]).relu()
        hidden = conv(hidden, f"{name}.conv3", f"{name}.bn3")
        if name.endswith(".0"):
            grid = conv(grid, f"{name}.downsample.0", f"{name}.downsample.1", stride)
        grid = (hidden + grid).relu()
    return grid


def saved(path: Path, weights: dict[str, Tensor]) -> Path:
    np.savez(path, **{name: tensor.numpy() for name, tensor in weights.items()})
    return path


@pytest.mark.parametrize("strides", ["v1", "torchvision"])
@pytest.mark.parametrize("shape", [(64, 64), (49, 70)])
def test_features_equal_the_network_written_out(tmp_path: Path, strides: str, shape: tuple[int, int]) -> None:
    weights = random_weights(stages=2)
    base = ResNet50(weights=saved(tmp_path / "w.npz", weights), strides=strides, layer="layer2[1]").eval()
    base = base.double()  # float32 cannot tell a mistake from rounding after so many layers
    images = torch.rand(2, 3, *shape, dtype=torch.float64)
    blocks = ["layer1.0", "layer1.1", "layer1.2", "layer2.0", "layer2.1"]
    exact = {name: tensor.double() for name, tensor in weights.items()}
    expected = reference(exact, base.normalize(images), strides=strides, blocks=blocks)
    torch.testing.assert_close(base(images).detach(), expected, atol=1e-7, rtol=1e-9)


@pytest.mark.parametrize(
    ("layer", "channels", "stride"),
    [
        ("layer1[0]", 256, 4),
        ("layer2", 512, 8),
        ("layer3[2]", 1024, 16),
        ("layer3[5]", 1024, 16),
        ("layer4", 2048, 32),
    ],
)
def test_the_layer_decides_channels_and_stride(layer: str, channels: int, stride: int) -> None:
    base = ResNet50(weights=None, layer=layer).eval()
    assert (base.channels, base.stride) == (channels, stride)
    with torch.no_grad():
        assert base(torch.rand(1, 3, 64, 64)).shape == (1, channels, 64 // stride, 64 // stride)
        assert base(torch.rand(1, 3, 65, 47)).shape[2:] == base.grid_size(65, 47)


def test_conv4c_at_the_papers_size_is_14_by_14() -> None:
    with torch.no_grad():
        assert ResNet50(weights=None).eval()(torch.rand(1, 3, 224, 224)).shape == (1, 1024, 14, 14)


def test_names_are_torchvisions() -> None:
    names = {torchvision_name(name) for name in ResNet50(weights=None, layer="layer4").state_dict()}
    counts = {name for name in names if name.endswith("num_batches_tracked")}
    assert names - counts == set(random_weights(stages=4))
    assert "layer2.0.downsample.1.num_batches_tracked" in counts


def test_pixels_are_normalised_as_the_weights_want() -> None:
    pixels = torch.tensor([123.68, 116.779, 103.939]).reshape(1, 3, 1, 1) / 255
    keras, torchvision = (ResNet50(weights=None, layer="layer1[0]", strides=s) for s in ("v1", "torchvision"))
    assert keras.normalize(pixels).flatten().tolist() == pytest.approx([0, 0, 0], abs=1e-4)
    expected = [(0.2 - 0.485) / 0.229, (0.2 - 0.456) / 0.224, (0.2 - 0.406) / 0.225]
    assert torchvision.normalize(torch.full((1, 3, 1, 1), 0.2)).flatten().tolist() == pytest.approx(expected)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".pth"])
def test_every_format_fills_the_same_network(tmp_path: Path, suffix: str) -> None:
    weights, path = random_weights(stages=1), tmp_path / f"w{suffix}"
    halved = {name: tensor.half() if tensor.ndim > 1 else tensor for name, tensor in weights.items()}
    write = {".npz": lambda: saved(path, halved), ".safetensors": lambda: save_file(halved, path)}
    write.get(suffix, lambda: torch.save({**halved, "fc.bias": torch.zeros(2)}, path))()
    base = ResNet50(weights=path, strides="v1", layer="layer1")
    assert base.network.layer1[2].conv3.conv.weight.dtype == torch.float32
    for name, tensor in base.state_dict().items():
        if not name.endswith("num_batches_tracked"):
            assert torch.equal(tensor, halved[torchvision_name(name)].float()), name


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    weights = random_weights(stages=1)
    with pytest.raises(CheckpointError, match=r"it has no layer2\.0\.conv1\.weight, layer2\.0\.bn1\.weight"):
        ResNet50(weights=saved(tmp_path / "short.npz", weights), strides="v1", layer="layer2")
    weights["conv1.weight"] = weights["conv1.weight"][:, :1]
    with pytest.raises(CheckpointError, match=r"conv1\.weight is \(64, 1, 7, 7\), expected \(64, 3, 7, 7\)"):
        ResNet50(weights=saved(tmp_path / "grey.npz", weights), strides="v1", layer="layer1")


def test_weights_that_are_not_here_are_never_made_up(no_weights: Path) -> None:
    with pytest.raises(CheckpointError, match=r"put resnet50_imagenet\.npz into"):
        ResNet50()


def test_the_convention_is_part_of_the_fingerprint() -> None:
    first, second = (ResNet50(weights=None, layer="layer1[0]", strides=s) for s in ("v1", "torchvision"))
    second.load_state_dict(first.state_dict())
    assert base_fingerprint(first) != base_fingerprint(second)


@pytest.mark.parametrize("layer", ["layer5", "layer3[6]", "layer0", "conv4", "layer3[-1]"])
def test_a_layer_that_does_not_exist_is_an_error(layer: str) -> None:
    with pytest.raises(
        ValueError, match=r"or a block such as 'layer3\[2\]', got '" + layer.replace("[", r"\[")
    ):
        ResNet50(weights=None, layer=layer)


def test_an_unknown_convention_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"\('v1', 'torchvision'\), got 'v2'"):
        ResNet50(weights=None, strides="v2")  # type: ignore[arg-type]


def test_the_real_file_holds_exactly_these_tensors(resnet50_file: Path) -> None:
    with np.load(resnet50_file) as file:
        inside = {name for name in file.files if name.split(".")[0] not in ("layer4", "fc")}
    inside -= {name for name in inside if name.startswith(("layer3.3", "layer3.4", "layer3.5"))}
    base = ResNet50(weights=resnet50_file)
    names = {torchvision_name(name) for name in base.state_dict()}
    assert {name for name in names if not name.endswith("num_batches_tracked")} == inside
    assert base.strides == "v1"


def test_real_features_are_neither_dead_nor_exploding(resnet50_file: Path, picture: Tensor) -> None:
    with torch.no_grad():
        features = ResNet50(weights=resnet50_file).eval()(picture)
    assert features.shape == (1, 1024, 4, 4) and (features >= 0).all()
    assert 0.1 < features.mean() < 1 and 0.3 < features.std() < 3
    assert 0.05 < (features == 0).float().mean() < 0.9


def test_real_weights_see_a_golf_ball(resnet50_file: Path, shared_data: Path) -> None:
    video = shared_data / "golf_audio" / "test_video.mp4"
    if not video.is_file():
        pytest.skip(f"{video} is not here")
    frame = torch.from_numpy(read_frames(video, [60], size=(224, 224))).movedim(-1, 1)
    with np.load(resnet50_file) as file, torch.no_grad():
        classifier, bias = torch.from_numpy(file["fc.weight"]).float(), torch.from_numpy(file["fc.bias"])
        features = ResNet50(weights=resnet50_file, layer="layer4").eval()(frame / 255)
    assert (classifier @ features.mean((0, 2, 3)) + bias).argmax() == GOLF_BALL
