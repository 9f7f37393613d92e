import json
import shutil
import sys
from pathlib import Path

import pytest

from cycleback.errors import CheckpointError, MissingDependencyError
from cycleback.models import Preprocessing
from cycleback.models import transformers_files as files_module
from cycleback.models.transformers_files import hub_answers, load_pretrained, read_preprocessing


@pytest.fixture
def copied_dino(tiny_dino: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_dino, tmp_path / "dino"))


def test_the_pixel_scale_comes_from_the_folder(tiny_dino: Path) -> None:
    source = load_pretrained(str(tiny_dino))
    assert source.preprocessing == Preprocessing(1.0, (0.4, 0.5, 0.6), (0.2, 0.25, 0.5))
    assert source.config["hidden_size"] == 32 and json.dumps(source.config)
    assert not source.missing


@pytest.mark.parametrize(
    ("pixels", "expected"),
    [
        ({"image_mean": 0.5, "image_std": [1, 2, 3]}, (1.0, (0.5, 0.5, 0.5), (1.0, 2.0, 3.0))),
        ({"do_normalize": False}, (1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))),
        ({"do_normalize": False, "do_rescale": False}, (255.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))),
        ({"do_normalize": False, "rescale_factor": 2 / 255}, (2.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))),
    ],
)
def test_every_way_to_write_the_pixel_scale_is_read(
    pixels: dict[str, object], expected: tuple[object]
) -> None:
    found = read_preprocessing(pixels)
    assert (round(found.scale, 9), found.mean, found.std) == expected


def test_a_folder_without_a_pixel_scale_is_refused(copied_dino: Path) -> None:
    (copied_dino / "preprocessor_config.json").write_text('{"size": 224}')
    with pytest.raises(CheckpointError, match=r"no image_mean and image_std, only \['size'\]"):
        load_pretrained(str(copied_dino))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "preprocessor_config.json"])
def test_a_folder_that_lacks_a_file_is_refused(copied_dino: Path, name: str) -> None:
    (copied_dino / name).unlink()
    with pytest.raises(
        CheckpointError, match=r"cannot load the base '.*dino': .* model\.safetensors"
    ) as caught:
        load_pretrained(str(copied_dino))
    assert "\n" not in str(caught.value)


def test_damaged_weights_are_refused(copied_dino: Path) -> None:
    path = copied_dino / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CheckpointError, match="cannot load the base"):
        load_pretrained(str(copied_dino))


def test_a_folder_that_is_not_there_is_named(tiny_dino: Path) -> None:
    with pytest.raises(CheckpointError, match=r"there is no folder \./nowhere with config\.json, "):
        load_pretrained("./nowhere")


def test_offline_a_model_that_is_not_here_says_where_to_put_it(
    tiny_dino: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_module, "hub_answers", lambda: False)
    with pytest.raises(
        CheckpointError, match=r"'nobody/no-model': .* Give as model the path of a folder"
    ) as caught:
        load_pretrained("nobody/no-model")
    assert "\n" not in str(caught.value)


def test_the_hub_is_not_asked_where_it_cannot_be_reached(
    tiny_dino: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub.constants as constants

    monkeypatch.setattr(files_module, "getproxies", dict)
    monkeypatch.setattr(constants, "ENDPOINT", "https://localhost.invalid")
    assert not hub_answers()
    monkeypatch.setattr(files_module, "getproxies", lambda: {"https": "http://proxy"})
    assert hub_answers()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert not hub_answers()


def test_without_the_library_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingDependencyError, match=r"needs transformers: pip install 'cycleback\[bases\]'"):
        load_pretrained("facebook/dinov2-small")
