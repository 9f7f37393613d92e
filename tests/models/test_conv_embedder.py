import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models import ConvEmbedder


def reference(embedder: ConvEmbedder, features: Tensor) -> Tensor:
    """The embedder written with torch's own layers, for features (B, T, C, F, h, w)."""
    clips = features.flatten(0, 1).transpose(1, 2)  # (M, F, C, h, w)
    for conv, norm in zip(embedder.convs, embedder.norms, strict=True):
        summed = F.conv3d(clips, conv.weight, conv.bias, padding=1)
        statistics = (norm.running_mean, norm.running_var, norm.weight, norm.bias)
        clips = F.batch_norm(summed, *statistics, training=embedder.training, eps=1e-3).relu()
    hidden = clips.amax(dim=(2, 3, 4)) if embedder.pooling == "max" else clips.mean(dim=(2, 3, 4))
    for fc in embedder.fcs:
        hidden = fc(hidden).relu()
    return embedder.embedding(hidden).reshape(*features.shape[:2], -1)


@pytest.mark.parametrize("context_frames", [1, 2, 3])
@pytest.mark.parametrize("pooling", ["max", "avg"])
@pytest.mark.parametrize("training", [True, False])
def test_embeddings_equal_those_of_torchs_layers(context_frames: int, pooling: str, training: bool) -> None:
    torch.manual_seed(0)
    embedder = ConvEmbedder(
        4,
        conv_channels=(6, 5),
        fc_channels=(7,),
        embedding_size=3,
        context_frames=context_frames,
        pooling=pooling,
    ).train(training)
    features = torch.randn(2, 3, context_frames, 4, 5, 5)
    expected = reference(embedder, features)
    torch.testing.assert_close(embedder(features), expected, atol=1e-5, rtol=1e-5)


def test_defaults_are_those_of_the_paper() -> None:
    embedder = ConvEmbedder(1024)
    assert [conv.weight.shape for conv in embedder.convs] == [(512, 1024, 3, 3, 3), (512, 512, 3, 3, 3)]
    assert [fc.out_features for fc in embedder.fcs] == [512, 512]
    assert (embedder.embedding_size, embedder.context_frames, embedder.dropout.p) == (128, 2, 0.0)


def test_reduced_channels_make_the_convolutions_smaller() -> None:
    embedder = ConvEmbedder(64, conv_channels=(8,), fc_channels=(), embedding_size=4, reduce_channels=5)
    assert embedder.convs[0].weight.shape == (8, 5, 3, 3, 3)
    assert embedder(torch.randn(2, 2, 2, 64, 3, 3)).shape == (2, 2, 4)


def test_context_frames_are_not_interchangeable() -> None:
    torch.manual_seed(0)
    embedder = ConvEmbedder(4, conv_channels=(6,), fc_channels=(), embedding_size=3).eval()
    features = torch.randn(1, 1, 2, 4, 5, 5)
    assert (embedder(features) - embedder(features.flip(2))).abs().max() > 1e-2


def test_dropout_acts_in_training_only() -> None:
    embedder = ConvEmbedder(4, conv_channels=(6,), fc_channels=(50,), embedding_size=3, dropout=0.5)
    features = torch.randn(2, 2, 2, 4, 3, 3)
    embedder.train()
    assert not torch.equal(embedder(features), embedder(features))
    embedder.eval()
    assert torch.equal(embedder(features), embedder(features))


def test_half_precision_features_are_taken() -> None:
    embedder = ConvEmbedder(4, conv_channels=(6,), fc_channels=(), embedding_size=3).eval()
    assert embedder(torch.randn(1, 2, 2, 4, 3, 3).half()).dtype == torch.float32


def test_every_weight_gets_a_gradient() -> None:
    torch.manual_seed(0)
    embedder: nn.Module = ConvEmbedder(4, conv_channels=(6, 6), fc_channels=(8,), embedding_size=3)
    embedder(torch.randn(3, 4, 2, 4, 4, 4)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in embedder.parameters())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conv_channels": ()}, r"at least one convolution, got \(\)"),
        ({"context_frames": 0}, "must be at least 1, got 0 and 15"),
        ({"context_stride": 0}, "must be at least 1, got 2 and 0"),
        ({"pooling": "sum"}, "pooling must be 'max' or 'avg', got 'sum'"),
    ],
)
def test_impossible_settings_are_errors(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConvEmbedder(4, **options)  # type: ignore[arg-type]
