from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from cycleback.models import Encoder
from cycleback.models.pooling_embedders import PooledEmbedder


def by_clips(encoder: Encoder, features: Tensor) -> Tensor:
    """Embeddings (N, D) of features (N, F, h, w), one clip a frame, as the definition has it."""
    clips = []
    for frame in range(len(features)):
        back = [encoder.context_stride * step for step in reversed(range(encoder.context_frames))]
        clips.append(torch.stack([features[max(frame - gap, 0)] for gap in back]))
    with torch.no_grad():
        return encoder.embed(torch.stack(clips)[None])[0]


@pytest.mark.parametrize(("context_frames", "context_stride"), [(1, 1), (2, 3), (2, 40), (3, 2), (4, 1)])
@pytest.mark.parametrize("reduce_channels", [None, 3])
def test_a_whole_video_equals_its_clips(
    make_encoder: Callable[..., Encoder],
    context_frames: int,
    context_stride: int,
    reduce_channels: int | None,
) -> None:
    encoder = make_encoder(
        context_frames=context_frames, context_stride=context_stride, reduce_channels=reduce_channels
    )
    features = torch.randn(23, 16, 3, 4)
    expected = by_clips(encoder, features)
    torch.testing.assert_close(
        torch.cat(list(encoder.embed_stream([features]))), expected, atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("chunk_frames", [1, 2, 5, 16, 100])
def test_the_chunk_size_does_not_change_the_embeddings(encoder: Encoder, chunk_frames: int) -> None:
    features = torch.randn(23, 16, 3, 4)
    found = torch.cat(list(encoder.embed_stream(features.split(chunk_frames))))
    torch.testing.assert_close(found, torch.cat(list(encoder.embed_stream([features]))), atol=1e-6, rtol=1e-6)


def test_a_stream_of_unequal_pieces_equals_the_whole(encoder: Encoder) -> None:
    features = torch.randn(23, 16, 3, 4)
    pieces = list(encoder.embed_stream(iter(features.split([1, 7, 2, 13]))))
    assert [len(piece) for piece in pieces] == [1, 7, 2, 13]
    torch.testing.assert_close(
        torch.cat(pieces), torch.cat(list(encoder.embed_stream([features]))), atol=1e-6, rtol=1e-6
    )


def test_a_stream_holds_only_the_reach_of_the_context(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    original = encoder.embedder.embed_terms
    monkeypatch.setattr(
        encoder.embedder,
        "embed_terms",
        lambda terms, idx: sizes.append(len(terms[0])) or original(terms, idx),
    )
    list(encoder.embed_stream(torch.randn(40, 16, 3, 4).split(10)))
    assert sizes == [10, 13, 13, 13]  # one context frame, 3 frames back


def test_embedding_a_video_in_training_mode_uses_running_statistics(
    make_encoder: Callable[..., Encoder],
) -> None:
    encoder = make_encoder(dropout=0.5)
    features = torch.randn(9, 16, 3, 4)
    expected = torch.cat(list(encoder.embed_stream([features])))
    encoder.train()
    assert torch.equal(torch.cat(list(encoder.embed_stream([features]))), expected)
    assert encoder.training and encoder.embedder.training


def test_the_future_is_not_seen(encoder: Encoder) -> None:
    features = torch.randn(12, 16, 3, 4)
    before = torch.cat(list(encoder.embed_stream([features])))
    features[8:] += 1
    torch.testing.assert_close(torch.cat(list(encoder.embed_stream([features])))[:8], before[:8])


def test_pooled_embedder_streams_the_same(make_encoder: Callable[..., Encoder]) -> None:
    encoder = Encoder(make_encoder().base, PooledEmbedder(16))
    features = torch.randn(9, 16, 3, 4)
    found = torch.cat(list(encoder.embed_stream(features.split(4))))
    torch.testing.assert_close(found, features.mean((2, 3)))
