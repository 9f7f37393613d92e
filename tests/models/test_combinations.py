"""Every registered base with every registered embedder: what must hold for all of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from cycleback.models import (
    BASES,
    EMBEDDERS,
    Encoder,
    build_base,
    build_embedder,
    fingerprint,
    freeze,
    load_weights,
    rebuild_base,
    save_encoder,
)

SMALL_EMBEDDERS: dict[str, dict[str, Any]] = {
    "conv": {"conv_channels": (8,), "fc_channels": (8,), "embedding_size": 5, "context_stride": 3},
    "gru": {"conv_channels": (8,), "hidden_size": 7, "embedding_size": 5},
    "mlp": {"fc_channels": (8, 6), "embedding_size": 5, "context_stride": 3},
    "pooled": {},
    "transformer": {
        "fc_channels": (8,),
        "token_size": 8,
        "heads": 2,
        "embedding_size": 5,
        "context_stride": 3,
    },
}
Frames = Callable[..., Tensor]
Options = Callable[[str], dict[str, Any]]


@pytest.fixture(
    params=[(base, embedder) for base in sorted(BASES) for embedder in sorted(EMBEDDERS)], ids="-".join
)
def names(request: pytest.FixtureRequest) -> tuple[str, str]:
    pair: tuple[str, str] = request.param
    return pair


@pytest.fixture
def encoder(names: tuple[str, str], small_options: Options, frames_for: Frames) -> Encoder:
    """The two together, with BatchNorm statistics that are not the first ones."""
    torch.manual_seed(0)
    base = build_base(names[0], **small_options(names[0]))
    encoder = Encoder(base, build_embedder(names[1], base.channels, **SMALL_EMBEDDERS[names[1]])).train()
    with torch.no_grad():
        encoder(frames_for(base, 3, 4, encoder.context_frames))
    return encoder.eval()


def test_each_frame_gets_an_embedding(encoder: Encoder, frames_for: Frames) -> None:
    frames = frames_for(encoder.base, 2, 3, encoder.context_frames)
    with torch.no_grad():
        assert encoder(frames).shape == (2, 3, encoder.embedding_size)
        features = encoder.features(frames[0, :, -1])
    assert features.shape == (3, encoder.base.channels, *encoder.base.feature_map_size(32, 32))
    assert torch.cat(list(encoder.embed_stream([features]))).shape == (3, encoder.embedding_size)


def test_changing_video_2_leaves_video_1_unchanged(encoder: Encoder, frames_for: Frames) -> None:
    frames = frames_for(encoder.base, 2, 3, encoder.context_frames)
    changed = torch.cat([frames[:1], frames_for(encoder.base, 1, 3, encoder.context_frames)])
    with torch.no_grad():
        first, second = encoder(frames), encoder(changed)
    assert torch.equal(first[0], second[0]) and not torch.allclose(first[1], second[1])


def test_a_whole_video_is_embedded_alike_in_pieces(encoder: Encoder, frames_for: Frames) -> None:
    with torch.no_grad():
        features = encoder.features(frames_for(encoder.base, 9))
    whole = torch.cat(list(encoder.embed_stream([features])))
    for chunk_frames in (1, 2, 5):
        pieces = torch.cat(list(encoder.embed_stream(features.split(chunk_frames))))
        torch.testing.assert_close(pieces, whole, atol=1e-5, rtol=1e-5)


def test_gradients_reach_every_weight(encoder: Encoder, frames_for: Frames) -> None:
    embeddings = encoder.train()(frames_for(encoder.base, 3, 4, encoder.context_frames))
    if embeddings.requires_grad:  # the pooled vectors have no weights at all
        (embeddings * torch.randn_like(embeddings)).sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.ndim < 2 or parameter.grad.any(), name


def test_the_base_is_trained_as_told(encoder: Encoder) -> None:
    norms = [module for module in encoder.base.modules() if isinstance(module, _BatchNorm)]
    scales = {id(p) for norm in norms for p in norm.parameters()}
    for how in ("frozen", "bn", "all"):
        if how == "bn" and not norms:
            with pytest.raises(
                ValueError, match=f"'bn' needs BatchNorm layers, {type(encoder.base).__name__}"
            ):
                freeze(encoder, "bn")
            continue
        freeze(encoder, how)
        wanted = {"frozen": set(), "bn": scales, "all": {id(p) for p in encoder.base.parameters()}}[how]
        assert {id(p) for p in encoder.base.parameters() if p.requires_grad} == wanted
        assert encoder.train().base.training == (how != "frozen")


def test_the_folder_alone_brings_it_back(
    encoder: Encoder, names: tuple[str, str], small_options: Options, frames_for: Frames, tmp_path: Path
) -> None:
    save_encoder(tmp_path, encoder, {})
    base = rebuild_base(names[0], tmp_path, **small_options(names[0]))
    copy = Encoder(base, build_embedder(names[1], base.channels, **SMALL_EMBEDDERS[names[1]])).eval()
    load_weights(tmp_path, copy)
    frames = frames_for(base, 1, 2, copy.context_frames)
    assert fingerprint(copy) == fingerprint(encoder)
    assert torch.equal(copy(frames), encoder(frames))
