from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from cycleback.errors import CheckpointError, UserError
from cycleback.models import (
    EfficientNetLite0,
    Encoder,
    fingerprint,
    freeze,
    load_settings,
    load_weights,
    save_encoder,
)
from cycleback.models.pooling_embedders import PooledEmbedder


def test_saved_weights_come_back(tmp_path: Path, make_encoder: Callable[..., Encoder]) -> None:
    saved, other = make_encoder(seed=0), make_encoder(seed=1)
    images = torch.rand(1, 2, 2, 3, 32, 32)
    assert not torch.allclose(saved(images), other(images))
    save_encoder(tmp_path / "run", saved, {"base": "small", "width": 4})
    load_weights(tmp_path / "run", other)
    assert torch.equal(saved(images), other(images))
    assert load_settings(tmp_path / "run") == {"base": "small", "width": 4}


def test_a_frozen_pretrained_base_is_saved_too(tmp_path: Path) -> None:
    encoder = Encoder(EfficientNetLite0(block=2), PooledEmbedder(24)).eval()
    freeze(encoder, "frozen")
    save_encoder(tmp_path, encoder, {})
    bare = Encoder(EfficientNetLite0(block=2, pretrained=False), PooledEmbedder(24)).eval()
    load_weights(tmp_path, bare)
    images = torch.rand(1, 1, 1, 3, 32, 32)
    assert torch.equal(bare(images), encoder(images))


def test_weights_in_another_memory_layout_are_saved(tmp_path: Path, encoder: Encoder) -> None:
    before = fingerprint(encoder)
    encoder.base.to(memory_format=torch.channels_last)
    assert fingerprint(encoder) == before
    save_encoder(tmp_path, encoder, {})
    load_weights(tmp_path, encoder)
    assert fingerprint(encoder) == before


def test_saving_replaces_the_old_file_and_leaves_nothing_else(tmp_path: Path, encoder: Encoder) -> None:
    save_encoder(tmp_path, encoder, {"step": 1})
    path = save_encoder(tmp_path, encoder, {"step": 2})
    assert load_settings(tmp_path) == {"step": 2}
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_save_keeps_the_old_file(
    tmp_path: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_encoder(tmp_path, encoder, {"step": 1})

    def full_disk(tensors: object, target: Path, **options: object) -> None:
        target.write_bytes(b"half")
        raise OSError("no space left")

    monkeypatch.setattr("cycleback.models.checkpoint.save_file", full_disk)
    with pytest.raises(UserError, match=r"cannot write .*encoder\.safetensors: no space left"):
        save_encoder(tmp_path, encoder, {"step": 2})
    assert load_settings(tmp_path) == {"step": 1} and list(tmp_path.iterdir()) == [path]


def test_fingerprint_changes_with_weights_and_context(make_encoder: Callable[..., Encoder]) -> None:
    first = fingerprint(make_encoder())
    assert first == fingerprint(make_encoder()) and len(first) == 16
    changed = make_encoder()
    with torch.no_grad():
        changed.base.layers[0].norm.running_mean[0] += 1e-4
    others = [changed, make_encoder(context_stride=4), make_encoder(pooling="avg"), make_encoder(seed=1)]
    assert len({first, *map(fingerprint, others)}) == 5


def test_fingerprint_ignores_the_count_of_updates(encoder: Encoder) -> None:
    before = fingerprint(encoder)
    encoder.base.layers[0].norm.num_batches_tracked += 1
    assert fingerprint(encoder) == before


def test_pooled_encoders_differ_by_their_normalisation(encoder: Encoder) -> None:
    plain, scaled = PooledEmbedder(16), PooledEmbedder(16, standardize=True)
    assert fingerprint(Encoder(encoder.base, plain)) != fingerprint(Encoder(encoder.base, scaled))


def test_a_folder_without_weights_says_what_was_looked_for(tmp_path: Path, encoder: Encoder) -> None:
    with pytest.raises(
        CheckpointError, match=rf"no encoder in {tmp_path} \(looked for encoder.safetensors\)"
    ):
        load_weights(tmp_path, encoder)


def test_other_shapes_are_listed(tmp_path: Path, make_encoder: Callable[..., Encoder]) -> None:
    save_encoder(tmp_path, make_encoder(), {})
    with pytest.raises(CheckpointError) as caught:
        load_weights(tmp_path, make_encoder(reduce_channels=3))
    message = str(caught.value)
    assert (
        "embedder.convs.0.weight is (8, 16, 3, 3, 3) in the file, (8, 3, 3, 3, 3) in the encoder" in message
    )
    assert "embedder.reduce.0.weight is missing in the file" in message
    assert "and 4 more" in message and "\n" not in message


def test_weights_of_another_base_are_refused(tmp_path: Path, encoder: Encoder) -> None:
    save_encoder(tmp_path, Encoder(encoder.base, PooledEmbedder(16)), {})
    with pytest.raises(CheckpointError, match=r"embedder\.convs\.0\.bias is missing in the file"):
        load_weights(tmp_path, encoder)


def test_a_truncated_file_is_called_damaged(tmp_path: Path, encoder: Encoder) -> None:
    path = save_encoder(tmp_path, encoder, {})
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"encoder\.safetensors is damaged"):
        load_weights(tmp_path, encoder)


def test_a_flipped_byte_is_noticed_or_changes_nothing(
    tmp_path: Path, make_encoder: Callable[..., Encoder]
) -> None:
    saved, other = make_encoder(seed=0), make_encoder(seed=1)
    path = save_encoder(tmp_path, saved, {"base": "small"})
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")  # of the weights, behind the header
    noticed = 0
    for place in (*range(0, start, 13), *range(start, len(content), len(content) // 100)):
        flipped = bytearray(content)
        flipped[place] ^= 1
        path.write_bytes(flipped)
        try:
            load_weights(tmp_path, other)
            assert fingerprint(saved) == fingerprint(other)
            assert load_settings(tmp_path) == {"base": "small"}
        except CheckpointError as error:
            assert "\n" not in str(error)
            noticed += place >= start
    assert noticed >= 90


def test_weights_without_a_checksum_must_be_finite(tmp_path: Path, encoder: Encoder) -> None:
    """As of version 0.2.0."""
    path = save_encoder(tmp_path, encoder, {})
    with safe_open(path, framework="pt") as file:
        metadata = {key: value for key, value in file.metadata().items() if "checksum" not in key}
    state = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    save_file(state, path, metadata=metadata)
    load_weights(tmp_path, encoder)
    name = next(name for name, tensor in state.items() if tensor.is_floating_point())
    state[name].view(-1)[0] = torch.nan
    save_file(state, path, metadata=metadata)
    with pytest.raises(CheckpointError, match=rf"is damaged \({name} is not finite\)"):
        load_weights(tmp_path, encoder)
    save_file(state | {name: state[name].to(torch.int32)}, path, metadata=metadata)
    with pytest.raises(CheckpointError, match=rf"{name} is torch.int32 in the file, torch.float32 in the"):
        load_weights(tmp_path, encoder)


def test_a_file_of_another_program_is_refused(tmp_path: Path, encoder: Encoder) -> None:
    save_file({"weight": torch.zeros(2)}, tmp_path / "encoder.safetensors")
    with pytest.raises(CheckpointError, match="expected 'cycleback-encoder-1', found 'no format mark'"):
        load_settings(tmp_path)


def test_half_precision_halves_kernels_and_keeps_vectors(tmp_path: Path, encoder: Encoder) -> None:
    with safe_open(save_encoder(tmp_path, encoder, {}, half=True), framework="pt") as file:
        saved = {name: file.get_tensor(name) for name in encoder.state_dict()}
    for name, tensor in encoder.state_dict().items():
        is_large = tensor.ndim > 1
        assert saved[name].dtype == (torch.float16 if is_large else tensor.dtype), name
        assert is_large or torch.equal(saved[name], tensor)


def test_half_precision_comes_back_as_floats_near_the_original(
    tmp_path: Path, make_encoder: Callable[..., Encoder]
) -> None:
    exact, loaded = make_encoder(seed=0), make_encoder(seed=1)
    save_encoder(tmp_path, exact, {}, half=True)
    load_weights(tmp_path, loaded)
    assert {tensor.dtype for tensor in loaded.parameters()} == {torch.float32}
    images = torch.rand(2, 4, 2, 3, 32, 32)
    difference = (exact(images) - loaded(images)).square().mean().sqrt() / exact(images).std()
    assert 0 < difference < 2e-3


def test_the_fingerprint_of_a_half_precision_file_is_that_of_what_is_loaded(
    tmp_path: Path, make_encoder: Callable[..., Encoder]
) -> None:
    exact, loaded = make_encoder(seed=0), make_encoder(seed=1)
    with safe_open(save_encoder(tmp_path, exact, {}, half=True), framework="pt") as file:
        written = file.metadata()["fingerprint"]
    load_weights(tmp_path, loaded)
    assert written == fingerprint(loaded) != fingerprint(exact)


def test_weights_beyond_half_precision_are_refused(tmp_path: Path, encoder: Encoder) -> None:
    with torch.no_grad():
        encoder.base.layers[0].conv.weight[0, 0, 0, 0] = -70000.0
    message = r"layers\.0\.conv\.weight reaches 70000, but 16 bits hold at most 65504"
    with pytest.raises(CheckpointError, match=message):
        save_encoder(tmp_path, encoder, {}, half=True)
    assert list(tmp_path.iterdir()) == []
