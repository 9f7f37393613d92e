import pytest
import torch
import torch.nn.functional as F

from cycleback.models import MLPEmbedder


@pytest.mark.parametrize("training", [True, False])
def test_embeddings_equal_those_of_torchs_layers(training: bool) -> None:
    torch.manual_seed(0)
    embedder = MLPEmbedder(4, fc_channels=(6, 5), embedding_size=3, context_frames=3).train(training)
    features = torch.randn(2, 5, 3, 4, 2, 3)
    hidden = features.mean((-2, -1)).reshape(10, 12)  # oldest context frame first
    for linear, norm in ((embedder.layers[0], embedder.layers[1]), (embedder.layers[4], embedder.layers[5])):
        statistics = (norm.running_mean.clone(), norm.running_var.clone(), norm.weight, norm.bias)
        hidden = F.batch_norm(hidden @ linear.weight.T, *statistics, training=training).relu()
    expected = (hidden @ embedder.embedding.weight.T + embedder.embedding.bias).reshape(2, 5, 3)
    torch.testing.assert_close(embedder(features), expected, atol=1e-5, rtol=1e-5)


def test_a_whole_video_equals_its_clips() -> None:
    embedder = MLPEmbedder(4, fc_channels=(6,), embedding_size=3, context_frames=3, context_stride=2).eval()
    features = torch.randn(9, 4, 2, 2)
    found = torch.cat(list(embedder.embed_stream(features.split([1, 5, 3]))))
    clips = torch.stack([features[[max(i - 4, 0), max(i - 2, 0), i]] for i in range(9)])
    torch.testing.assert_close(found, embedder(clips[None])[0].detach(), atol=1e-6, rtol=1e-6)


def test_normalised_embeddings_have_length_one() -> None:
    embedder = MLPEmbedder(4, fc_channels=(6,), embedding_size=3, normalize=True)
    torch.testing.assert_close(embedder(torch.randn(2, 3, 2, 4, 1, 1)).norm(dim=-1), torch.ones(2, 3))


def test_without_hidden_layers_it_is_linear() -> None:
    embedder = MLPEmbedder(4, fc_channels=(), embedding_size=3, context_frames=1)
    features = torch.randn(1, 5, 1, 4, 1, 1)
    torch.testing.assert_close(embedder(2 * features), 2 * embedder(features))


def test_half_precision_features_are_taken() -> None:
    embedder = MLPEmbedder(4, fc_channels=(6,), embedding_size=3).eval()
    assert embedder(torch.randn(1, 2, 2, 4, 3, 3).half()).dtype == torch.float32


def test_impossible_context_is_an_error() -> None:
    with pytest.raises(ValueError, match="must be at least 1, got 2 and 0"):
        MLPEmbedder(4, context_stride=0)
