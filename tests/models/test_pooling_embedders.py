import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.models import EMBEDDERS
from cycleback.models.pooling_embedders import GRUEmbedder, MLPEmbedder, PooledEmbedder


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


def trained(**options: object) -> GRUEmbedder:
    """A tiny embedder whose BatchNorm statistics are not the first ones."""
    torch.manual_seed(0)
    settings = {"conv_channels": (6, 5), "hidden_size": 7, "embedding_size": 3, **options}
    embedder = GRUEmbedder(4, **settings).train()  # type: ignore[arg-type]
    with torch.no_grad():
        embedder(torch.randn(2, 5, 1, 4, 3, 3))
    return embedder.eval()


def reference(embedder: GRUEmbedder, video: Tensor) -> Tensor:
    """The embedder frame by frame, from the definition of a GRU, for features (N, F, h, w)."""
    grid = video
    for block in embedder.convs:
        norm = block.norm
        grid = F.conv2d(grid, block.conv.weight, padding=1)
        grid = F.batch_norm(
            grid, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=1e-3
        ).relu()
    gru, state, embeddings = embedder.gru, torch.zeros(7), []
    for frame in grid.amax((2, 3)):
        seen = (gru.weight_ih_l0 @ frame + gru.bias_ih_l0).chunk(3)
        kept = (gru.weight_hh_l0 @ state + gru.bias_hh_l0).chunk(3)
        reset, update = (seen[0] + kept[0]).sigmoid(), (seen[1] + kept[1]).sigmoid()
        state = (1 - update) * (seen[2] + reset * kept[2]).tanh() + update * state
        embeddings.append(embedder.embedding(state))
    return torch.stack(embeddings)


def test_clips_and_whole_videos_equal_the_recurrence_written_out() -> None:
    embedder, videos = trained(), torch.randn(2, 6, 4, 3, 3)
    expected = torch.stack([reference(embedder, video) for video in videos])
    torch.testing.assert_close(embedder(videos[:, :, None]), expected, atol=1e-5, rtol=1e-5)
    (whole,) = embedder.embed_stream([videos[1]])
    torch.testing.assert_close(whole, expected[1].detach(), atol=1e-5, rtol=1e-5)


def test_the_state_goes_on_from_piece_to_piece() -> None:
    embedder, video = trained(dropout=0.5), torch.randn(11, 4, 3, 3)
    (whole,) = embedder.embed_stream([video])
    embedder.train()
    for sizes in ([1] * 11, [4, 7], [10, 1]):
        pieces = list(embedder.embed_stream(video.split(sizes)))
        assert [len(piece) for piece in pieces] == sizes
        torch.testing.assert_close(torch.cat(pieces), whole, atol=1e-6, rtol=1e-6)
    assert embedder.training


def test_every_video_starts_anew() -> None:
    embedder, video = trained(), torch.randn(5, 4, 3, 3)
    (first,), (second,) = embedder.embed_stream([video]), embedder.embed_stream([video])
    assert torch.equal(first, second)


def test_the_future_is_not_seen() -> None:
    embedder, video = trained(), torch.randn(1, 8, 1, 4, 3, 3)
    before = embedder(video)
    video[:, 5:] += 1
    torch.testing.assert_close(embedder(video)[:, :5], before[:, :5])


def test_only_the_recurrent_embedder_can_count_frames() -> None:
    assert {name for name, kind in EMBEDDERS.items() if kind.can_count_frames} == {"gru"}
    still = torch.zeros(20, 4, 3, 3)
    (embeddings,) = trained().embed_stream([still])
    assert (embeddings[1:5] - embeddings[:4]).norm(dim=-1).min() > 0  # it counts, though nothing moves


def test_without_convolutions_it_takes_vectors() -> None:
    embedder = GRUEmbedder(6, conv_channels=(), hidden_size=4, embedding_size=3)
    assert embedder(torch.randn(2, 5, 1, 6, 1, 1)).shape == (2, 5, 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_normalised_gru_embeddings_have_length_one(dtype: torch.dtype) -> None:
    embeddings = trained(normalize=True)(torch.randn(2, 3, 1, 4, 3, 3, dtype=dtype))
    torch.testing.assert_close(embeddings.norm(dim=-1), torch.ones(2, 3))
