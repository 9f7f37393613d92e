import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from cycleback.errors import CheckpointError, MissingDependencyError
from cycleback.models import Preprocessing
from cycleback.models.resnet50_weights import (
    IMAGENET_FILE,
    KNOWN_FILES,
    TORCHVISION_FILE,
    WeightsSource,
    find_source,
)


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_missing_imagenet_weights_say_what_to_put_where(no_weights: Path) -> None:
    with pytest.raises(CheckpointError) as caught:
        find_source("imagenet")
    message = str(caught.value)
    assert f"put resnet50_imagenet.npz into {no_weights}/.cache/cycleback/weights" in message
    assert "CYCLEBACK_WEIGHTS" in message and "weights=None" in message and "\n" not in message


def test_imagenet_weights_are_found_in_the_cache_folder(
    no_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = touch(no_weights / ".cache" / "cycleback" / "weights" / IMAGENET_FILE)
    assert find_source("imagenet") == WeightsSource(path, "v1")
    monkeypatch.setenv("CYCLEBACK_CACHE", str(no_weights / "other"))
    path = touch(no_weights / "other" / "weights" / IMAGENET_FILE)
    assert find_source("imagenet").path == path


def test_the_named_folder_comes_first(no_weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(no_weights / ".cache" / "cycleback" / "weights" / IMAGENET_FILE)
    path = touch(no_weights / "mine" / IMAGENET_FILE)
    monkeypatch.setenv("CYCLEBACK_WEIGHTS", str(path.parent))
    assert find_source("imagenet").path == path


def test_torchvisions_file_is_found_where_torchvision_keeps_it(no_weights: Path) -> None:
    path = touch(no_weights / "torch" / "hub" / "checkpoints" / TORCHVISION_FILE)
    assert find_source("torchvision") == WeightsSource(path, "torchvision")


def test_without_torchvision_its_weights_say_what_to_put_where(no_weights: Path) -> None:
    expected = rf"{TORCHVISION_FILE} in {no_weights}/torch/hub/checkpoints"
    with pytest.raises(MissingDependencyError, match=expected):
        find_source("torchvision")


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
        find_source("torchvision")


def test_a_file_of_unknown_origin_must_say_how_it_was_trained() -> None:
    with pytest.raises(CheckpointError, match=r"Give strides='v1' or strides='torchvision' with it"):
        find_source("mine.pth")
    assert find_source("mine.pth", strides="torchvision") == WeightsSource(Path("mine.pth"), "torchvision")


@pytest.mark.parametrize(("name", "strides"), KNOWN_FILES.items())
def test_a_known_file_cannot_get_the_wrong_convention(name: str, strides: str) -> None:
    assert find_source(f"some/{name}").strides == strides
    other = {"v1": "torchvision", "torchvision": "v1"}[strides]
    with pytest.raises(CheckpointError, match=f"{name} needs strides='{strides}', got strides='{other}'"):
        find_source(f"some/{name}", strides=other)  # type: ignore[arg-type]


def test_each_source_carries_its_preprocessing() -> None:
    keras = find_source("a.npz", strides="v1").preprocessing
    assert keras == Preprocessing(255.0, (123.68, 116.779, 103.939), (1.0, 1.0, 1.0))
    torchvision = find_source("a.npz", strides="torchvision").preprocessing
    assert torchvision == Preprocessing(1.0, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
