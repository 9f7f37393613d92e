import pytest
import torch

from cycleback.models import PooledEmbedder


def test_pooled_embedding_is_the_mean_of_the_grid() -> None:
    features = torch.randn(2, 3, 1, 4, 5, 6)
    embedder = PooledEmbedder(4)
    torch.testing.assert_close(embedder(features), features[:, :, 0].mean((-1, -2)))
    assert list(embedder.parameters()) == []
    assert (embedder.embedding_size, embedder.context_frames) == (4, 1)


def test_a_grid_keeps_the_parts_of_the_picture_apart() -> None:
    features = torch.randn(2, 3, 1, 4, 6, 6)
    embeddings = PooledEmbedder(4, grid=2)(features).unflatten(-1, (4, 2, 2))
    torch.testing.assert_close(embeddings[..., 0, 1], features[:, :, 0, :, :3, 3:].mean((-1, -2)))


def test_a_grid_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="grid must be at least 1, got 0"):
        PooledEmbedder(4, grid=0)
