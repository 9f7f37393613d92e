import torch

from cycleback.models import PooledEmbedder


def test_pooled_embedding_is_the_mean_of_the_grid() -> None:
    features = torch.randn(2, 3, 1, 4, 5, 6)
    embedder = PooledEmbedder(4)
    torch.testing.assert_close(embedder(features), features[:, :, 0].mean((-1, -2)))
    assert list(embedder.parameters()) == []
    assert (embedder.embedding_size, embedder.context_frames) == (4, 1)


def test_normalised_embeddings_have_length_one() -> None:
    embeddings = PooledEmbedder(4, normalize=True)(torch.randn(2, 3, 1, 4, 5, 6))
    torch.testing.assert_close(embeddings.norm(dim=-1), torch.ones(2, 3))


def test_a_black_grid_stays_finite_when_normalised() -> None:
    assert PooledEmbedder(4, normalize=True)(torch.zeros(1, 1, 1, 4, 2, 2)).isfinite().all()
