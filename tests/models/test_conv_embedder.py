from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models import ConvEmbedder, TemporalConv


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


def test_flattening_keeps_every_place_apart() -> None:
    torch.manual_seed(0)
    options = {"conv_channels": (6,), "fc_channels": (), "embedding_size": 3, "batch_norm": False}
    embedder = ConvEmbedder(4, **options, pooling="flatten", feature_map_size=(3, 5)).eval()
    features = torch.randn(2, 3, 2, 4, 3, 5)
    clips = features.flatten(0, 1).transpose(1, 2)  # (M, F, C, h, w)
    grid = F.conv3d(clips, embedder.convs[0].weight, embedder.convs[0].bias, padding=1).relu()
    expected = embedder.embedding(grid.transpose(1, 2).flatten(1)).reshape(2, 3, 3)
    torch.testing.assert_close(embedder(features), expected, atol=1e-5, rtol=1e-5)
    assert embedder.embedding.in_features == 2 * 6 * 3 * 5


def test_another_grid_cannot_be_flattened() -> None:
    embedder = ConvEmbedder(4, conv_channels=(6,), pooling="flatten", feature_map_size=(3, 5))
    with pytest.raises(ValueError, match=r"flattens feature maps of size \(3, 5\), got \(5, 3\)"):
        embedder(torch.randn(1, 2, 2, 4, 5, 3))


def test_capacity_scales_the_channels_but_not_the_embedding() -> None:
    program = ConvEmbedder(8, conv_channels=(256, 256), fc_channels=(256, 256), capacity=2)
    assert (
        [conv.weight.shape[0] for conv in program.convs]
        == [fc.out_features for fc in program.fcs]
        == [512] * 2
    )
    small = ConvEmbedder(8, conv_channels=(5,), fc_channels=(1,), capacity=0.3)
    assert (small.convs[0].weight.shape[0], small.fcs[0].out_features, small.embedding_size) == (2, 1, 128)


def test_without_batchnorm_training_and_evaluation_agree() -> None:
    embedder = ConvEmbedder(4, conv_channels=(6, 5), fc_channels=(), embedding_size=3, batch_norm=False)
    assert not list(embedder.buffers())
    features = torch.randn(2, 2, 2, 4, 3, 3)
    assert torch.equal(embedder.train()(features), embedder.eval()(features))


def test_normalised_embeddings_have_length_one() -> None:
    embedder = ConvEmbedder(4, conv_channels=(6,), fc_channels=(), embedding_size=3, normalize=True)
    torch.testing.assert_close(embedder(torch.randn(2, 3, 2, 4, 3, 3)).norm(dim=-1), torch.ones(2, 3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conv_channels": ()}, r"at least one convolution, got \(\)"),
        ({"context_frames": 0}, "must be at least 1, got 0 and 15"),
        ({"context_stride": 0}, "must be at least 1, got 2 and 0"),
        ({"pooling": "sum"}, r"pooling must be one of \('max', 'avg', 'flatten'\), got 'sum'"),
        ({"pooling": "flatten"}, "got pooling 'flatten' and feature_map_size None"),
        ({"feature_map_size": (3, 3)}, r"got pooling 'max' and feature_map_size \(3, 3\)"),
        ({"capacity": 0.0}, r"capacity must be above 0, got 0\.0"),
    ],
)
def test_impossible_settings_are_errors(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConvEmbedder(4, **options)  # type: ignore[arg-type]


def test_the_embedding_gain_brings_the_first_embeddings_closer_together() -> None:
    clips = torch.rand(1, 6, 2, 4, 3, 3)
    wide, near = (seeded(embedding_gain=gain)(clips) for gain in (1.0, 0.25))
    torch.testing.assert_close(near, 0.25 * wide)


def seeded(**options: Any) -> ConvEmbedder:
    torch.manual_seed(0)
    return ConvEmbedder(4, conv_channels=(5,), fc_channels=(6,), embedding_size=3, **options).eval()


def conv_pair(inputs: int, outputs: int) -> tuple[TemporalConv, nn.Conv3d]:
    """Our convolution and torch's, with the same weights, carried over by name."""
    torch.manual_seed(1)
    reference = nn.Conv3d(inputs, outputs, 3, padding=1)
    ours = TemporalConv(inputs, outputs)
    ours.load_state_dict(reference.state_dict())
    return ours, reference


@pytest.mark.parametrize("context_frames", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "way",
    [
        TemporalConv.forward,
        TemporalConv.convolve_slices,
        TemporalConv.convolve_stacked,
        TemporalConv.convolve_3d,
    ],
)
def test_output_equals_conv3d(way: Callable[[TemporalConv, Tensor], Tensor], context_frames: int) -> None:
    ours, reference = conv_pair(4, 6)
    clips = torch.randn(context_frames, 3, 4, 5, 7)  # (C, M, I, h, w)
    expected = reference(clips.permute(1, 2, 0, 3, 4)).permute(2, 0, 1, 3, 4)
    torch.testing.assert_close(way(ours, clips), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("context_frames", [1, 2, 4])
def test_gradients_equal_conv3d(context_frames: int) -> None:
    ours, reference = conv_pair(4, 6)
    clips = torch.randn(context_frames, 3, 4, 5, 7, requires_grad=True)
    weights = torch.randn(context_frames, 3, 6, 5, 7)
    found = torch.autograd.grad((ours(clips) * weights).sum(), [clips, *ours.parameters()])
    output = reference(clips.permute(1, 2, 0, 3, 4)).permute(2, 0, 1, 3, 4)
    expected = torch.autograd.grad((output * weights).sum(), [clips, *reference.parameters()])
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-5)


def test_gradcheck_in_double_precision() -> None:
    conv = TemporalConv(1, 2).double()
    clips = torch.randn(2, 1, 1, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(conv, (clips,))


def test_clips_from_the_products_of_a_video_equal_clips_of_frames() -> None:
    conv, _ = conv_pair(4, 6)
    frames = torch.randn(7, 4, 5, 5)
    indices = torch.tensor([[0, 0, 4], [0, 3, 5], [2, 6, 6]])  # (C, M)
    found = conv.add_products(conv.products(frames), indices)
    torch.testing.assert_close(found, conv(frames[indices]), atol=1e-5, rtol=1e-5)
