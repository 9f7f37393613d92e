import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from cycleback.errors import CheckpointError, MissingDependencyError
from cycleback.models import Preprocessing, base_fingerprint, external
from cycleback.models.external import TransformersBase, hub_answers, load_pretrained, read_preprocessing

VIT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


STAGES = {"hidden_sizes": [8, 12, 16, 24], "depths": [1, 1, 1, 1]}


SWIN = {"embed_dim": 8, "depths": [1, 1, 1, 1], "num_heads": [1, 1, 2, 2], "window_size": 4}


TOWERS = {
    "vision_config": {**VIT, "image_size": 64, "patch_size": 16},
    "text_config": {**VIT, "vocab_size": 50, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2},
}


KINDS: list[tuple[str, dict[str, Any], tuple[int, int]]] = [  # configuration, options, (channels, stride)
    ("Dinov2WithRegistersConfig", {**VIT, "patch_size": 14}, (32, 14)),
    ("ViTConfig", {**VIT, "image_size": 64}, (32, 16)),
    ("DeiTConfig", {**VIT, "image_size": 64}, (32, 16)),
    ("CLIPConfig", TOWERS, (32, 16)),
    ("SiglipConfig", TOWERS, (32, 16)),
    ("Swinv2Config", {**SWIN, "image_size": 64}, (64, 32)),
    ("ConvNextConfig", STAGES, (24, 32)),
    ("ResNetConfig", {**STAGES, "embedding_size": 8, "layer_type": "basic"}, (24, 32)),
]


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Writes a tiny network of random weights into a folder."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")

    def write(kind: str, **options: Any) -> Path:
        torch.manual_seed(0)
        transformers.utils.logging.disable_progress_bar()
        network: nn.Module = transformers.AutoModel.from_config(getattr(transformers, kind)(**options))
        network.save_pretrained(tmp_path)  # type: ignore[operator]
        (tmp_path / "preprocessor_config.json").write_text(json.dumps({"image_mean": 0.5, "image_std": 0.5}))
        return tmp_path

    return write


@pytest.mark.parametrize(("kind", "options", "expected"), KINDS, ids=lambda value: str(value)[:12])
def test_kinds_of_networks_give_a_grid(
    save: Callable[..., Path], kind: str, options: dict[str, Any], expected: tuple[int, int]
) -> None:
    base = TransformersBase(model=str(save(kind, **options))).eval()
    assert (base.channels, base.stride) == expected
    with torch.no_grad():
        features = base(torch.rand(2, 3, 128, 96))
        assert base(torch.rand(1, 3, 140, 112)).shape[2:] == base.feature_map_size(140, 112)
    assert features.shape == (2, base.channels, 128 // base.stride, 96 // base.stride)


def test_patches_lie_in_the_grid_as_in_the_picture(tiny_dino: Path) -> None:
    base = TransformersBase(model=str(tiny_dino)).eval()
    images = torch.rand(2, 3, 42, 70)
    with torch.no_grad():
        tokens = base.network(
            (images - base.preprocess.shift / base.preprocess.factor) * base.preprocess.factor
        )
        features = base(images)
    assert features.shape == (2, 32, 3, 5) and tokens.last_hidden_state.shape == (2, 1 + 15, 32)
    for row, column in ((0, 0), (1, 3), (2, 4)):
        expected = tokens.last_hidden_state[:, 1 + 5 * row + column]
        torch.testing.assert_close(features[:, :, row, column], expected, atol=1e-5, rtol=1e-4)


def test_pixels_are_normalised_as_the_folder_says(tiny_dino: Path) -> None:
    images = torch.tensor([0.6, 0.5, 0.1]).reshape(1, 3, 1, 1)
    normalized: Tensor = TransformersBase(model=str(tiny_dino)).normalize(images)
    assert normalized.flatten().tolist() == pytest.approx([1.0, 0.0, -1.0], abs=1e-6)


def test_what_the_features_do_not_need_is_not_trained(tiny_dino: Path) -> None:
    base = TransformersBase(model=str(tiny_dino))
    assert "network.embeddings.mask_token" in base.state_dict()
    assert "network.embeddings.mask_token" not in dict(base.named_parameters())


def test_weights_that_the_files_lack_are_not_made_up(save: Callable[..., Path]) -> None:
    path = save("ViTConfig", **VIT, image_size=64) / "model.safetensors"
    tensors = load_file(path)
    lost = [name for name in tensors if "layernorm.weight" in name.lower() or name.startswith("pooler")]
    kept = {name: tensor for name, tensor in tensors.items() if name not in lost}
    save_file(kept, path, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"has no weights for .*weight") as caught:
        TransformersBase(model=str(path.parent))
    assert "pooler" not in str(caught.value)


def test_a_network_that_hides_patches_is_refused(save: Callable[..., Path]) -> None:
    with pytest.raises(CheckpointError, match="the base drops patches: 5 tokens for 4 x 4 patches"):
        TransformersBase(model=str(save("ViTMAEConfig", **VIT, image_size=64)))


def test_the_blueprint_fits_into_json_and_builds_the_same(tiny_dino: Path) -> None:
    base = TransformersBase(model=str(tiny_dino))
    blueprint = json.loads(json.dumps(base.blueprint))
    copy = TransformersBase.rebuild(blueprint, model="nobody/no-model")
    assert base_fingerprint(copy) != base_fingerprint(base)
    copy.load_state_dict(base.state_dict())
    assert base_fingerprint(copy) == base_fingerprint(base)


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
    with pytest.raises(
        CheckpointError, match=r"folder \./nowhere does not exist; expected one with config\.json, "
    ):
        load_pretrained("./nowhere")


def test_offline_a_model_that_is_not_here_says_where_to_put_it(
    tiny_dino: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external, "hub_answers", lambda: False)
    with pytest.raises(
        CheckpointError, match=r"'nobody/no-model': .* Pass as model the path of a folder"
    ) as caught:
        load_pretrained("nobody/no-model")
    assert "\n" not in str(caught.value)


def test_the_hub_is_not_asked_where_it_cannot_be_reached(
    tiny_dino: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub.constants as constants

    monkeypatch.setattr(external, "getproxies", dict)
    monkeypatch.setattr(constants, "ENDPOINT", "https://localhost.invalid")
    assert not hub_answers()
    monkeypatch.setattr(external, "getproxies", lambda: {"https": "http://proxy"})
    assert hub_answers()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert not hub_answers()


def test_without_the_library_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingDependencyError, match=r"needs transformers: pip install 'cycleback\[bases\]'"):
        load_pretrained("facebook/dinov2-small")
