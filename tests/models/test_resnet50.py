import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from cycleback.errors import CheckpointError, MissingDependencyError
from cycleback.models import Preprocessing, ResNet50, base_fingerprint
from cycleback.models.resnet50 import (
    CONVENTIONS as RESNET_CONVENTIONS,
)
from cycleback.models.resnet50 import (
    IMAGENET_FILE,
    KNOWN_FILES,
    TORCHVISION_FILE,
    find_weights,
    read_tensors,
    require_shapes,
    torchvision_name,
)
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
        assert base(torch.rand(1, 3, 65, 47)).shape[2:] == base.feature_map_size(65, 47)


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


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_missing_imagenet_weights_say_what_to_put_where(no_weights: Path) -> None:
    with pytest.raises(CheckpointError) as caught:
        find_weights("imagenet")
    message = str(caught.value)
    assert f"put resnet50_imagenet.npz into {no_weights}/.cache/cycleback/weights" in message
    assert "CYCLEBACK_WEIGHTS" in message and "weights=''" in message and "\n" not in message


def test_imagenet_weights_are_found_in_the_cache_folder(
    no_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = touch(no_weights / ".cache" / "cycleback" / "weights" / IMAGENET_FILE)
    assert find_weights("imagenet") == (path, "v1")
    monkeypatch.setenv("CYCLEBACK_CACHE", str(no_weights / "other"))
    path = touch(no_weights / "other" / "weights" / IMAGENET_FILE)
    assert find_weights("imagenet")[0] == path


def test_the_named_folder_comes_first(no_weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(no_weights / ".cache" / "cycleback" / "weights" / IMAGENET_FILE)
    path = touch(no_weights / "mine" / IMAGENET_FILE)
    monkeypatch.setenv("CYCLEBACK_WEIGHTS", str(path.parent))
    assert find_weights("imagenet")[0] == path


def test_torchvisions_file_is_found_where_torchvision_keeps_it(no_weights: Path) -> None:
    path = touch(no_weights / "torch" / "hub" / "checkpoints" / TORCHVISION_FILE)
    assert find_weights("torchvision") == (path, "torchvision")


def test_without_torchvision_its_weights_say_what_to_put_where(no_weights: Path) -> None:
    expected = rf"{TORCHVISION_FILE} in {no_weights}/torch/hub/checkpoints"
    with pytest.raises(MissingDependencyError, match=expected):
        find_weights("torchvision")


def test_weights_that_torchvision_cannot_fetch_say_what_to_put_where(
    no_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(progress: bool) -> None:
        raise OSError("no route to host")

    models = ModuleType("torchvision.models")
    published = SimpleNamespace(get_state_dict=offline)
    models.ResNet50_Weights = SimpleNamespace(IMAGENET1K_V1=published)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchvision", ModuleType("torchvision"))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    with pytest.raises(
        CheckpointError, match=rf"{TORCHVISION_FILE} \(no route to host\)\. Put it into .*checkpoints"
    ):
        find_weights("torchvision")


def test_a_file_of_unknown_origin_must_say_how_it_was_trained() -> None:
    with pytest.raises(CheckpointError, match=r"Set strides='v1' or strides='torchvision'"):
        find_weights("mine.pth")
    assert find_weights("mine.pth", strides="torchvision") == (Path("mine.pth"), "torchvision")


@pytest.mark.parametrize(("name", "strides"), KNOWN_FILES.items())
def test_a_known_file_cannot_get_the_wrong_convention(name: str, strides: str) -> None:
    assert find_weights(f"some/{name}")[1] == strides
    other = {"v1": "torchvision", "torchvision": "v1"}[strides]
    with pytest.raises(CheckpointError, match=f"{name} needs strides='{strides}', got strides='{other}'"):
        find_weights(f"some/{name}", strides=other)  # type: ignore[arg-type]


def test_each_source_carries_its_preprocessing() -> None:
    keras = RESNET_CONVENTIONS["v1"].preprocessing
    assert keras == Preprocessing(255.0, (123.68, 116.779, 103.939), (1.0, 1.0, 1.0))
    torchvision = RESNET_CONVENTIONS["torchvision"].preprocessing
    assert torchvision == Preprocessing(1.0, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


TENSORS = {"a.weight": torch.tensor([1.0, 2.5]).half(), "b": torch.ones(2, 3)}


def write(path: Path, tensors: dict[str, Tensor]) -> Path:
    if path.suffix == ".npz":
        np.savez(path, **{name: tensor.numpy() for name, tensor in tensors.items()})
    elif path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".pth", ".pt"])
def test_the_tensors_asked_for_are_read(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"weights{suffix}", TENSORS)
    found = read_tensors(path, ["a.weight", "nothing"])
    assert found.keys() == {"a.weight"}
    assert found["a.weight"].dtype == torch.float16 and torch.equal(found["a.weight"], TENSORS["a.weight"])


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".pth"])
def test_a_damaged_file_is_named(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"weights{suffix}", TENSORS)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(CheckpointError, match=rf"weights\{suffix} cannot be read \(.+\)\. Copy it again\.$"):
        read_tensors(path, ["b"])


def test_a_file_that_would_run_code_is_refused(tmp_path: Path) -> None:
    torch.save({"b": Path("x")}, tmp_path / "weights.pth")
    with pytest.raises(CheckpointError, match=r"weights\.pth cannot be read"):
        read_tensors(tmp_path / "weights.pth", ["b"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("weights.h5", r"weights\.h5 is not a weights file: expected \.npz, \.safetensors, \.pth or \.pt\."),
        ("weights.npz", r"weights file .*weights\.npz does not exist\."),
    ],
)
def test_a_path_that_cannot_be_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        read_tensors(tmp_path / name, ["b"])


def test_missing_tensors_and_other_shapes_are_named() -> None:
    wanted = {name: torch.zeros(2, 3) for name in "bcdef"}
    with pytest.raises(CheckpointError, match=r"x\.npz is not a ResNet-50 .* it has no c, d, e and 1 more\."):
        require_shapes(Path("x.npz"), TENSORS, wanted)
    with pytest.raises(CheckpointError, match=r"b is \(2, 3\), expected \(3, 2\)\."):
        require_shapes(Path("x.npz"), TENSORS, {"b": torch.zeros(3, 2)})
