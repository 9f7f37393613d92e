from collections.abc import Callable

import pytest
import torch
from torch import nn

from cycleback.models import ConvEmbedder, Encoder, SmallBase, VectorBase, freeze
from cycleback.models.pooling_embedders import MLPEmbedder


def base_statistics(encoder: Encoder) -> list[torch.Tensor]:
    return [buffer.clone() for name, buffer in encoder.base.named_buffers() if "running" in name]


def test_changing_video_2_leaves_video_1_unchanged(encoder: Encoder) -> None:
    images = torch.rand(2, 3, 2, 3, 32, 32)
    changed = images.clone()
    changed[1] = torch.rand(3, 2, 3, 32, 32)
    first, second = encoder(images), encoder(changed)
    assert torch.equal(first[0], second[0])
    assert not torch.allclose(first[1], second[1])


def test_in_training_mode_only_batchnorm_mixes_videos(encoder: Encoder) -> None:
    images = torch.rand(2, 3, 2, 3, 32, 32)
    changed = torch.cat([images[:1], torch.rand(1, 3, 2, 3, 32, 32)])
    encoder.train()
    assert not torch.allclose(encoder(images)[0], encoder(changed)[0])
    for module in encoder.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()
    assert torch.equal(encoder(images)[0], encoder(changed)[0])


def test_changing_frame_2_leaves_frame_1_unchanged(encoder: Encoder) -> None:
    images = torch.rand(1, 3, 2, 3, 32, 32)
    changed = images.clone()
    changed[:, 1] = torch.rand(2, 3, 32, 32)
    difference = (encoder(images) - encoder(changed)).abs().amax(dim=-1)[0]
    assert difference[0] == difference[2] == 0 and difference[1] > 0


def test_context_is_oldest_first_and_the_frame_itself_last(encoder: Encoder) -> None:
    video = torch.rand(9, 3, 32, 32)
    whole = torch.cat(list(encoder.embed_stream([encoder.features(video)])))
    clip = torch.stack([video[7 - encoder.context_stride], video[7]])[None, None]
    torch.testing.assert_close(encoder(clip)[0, 0].detach(), whole[7], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(encoder(clip.flip(2))[0, 0].detach(), whole[7], atol=1e-3)


def test_bytes_and_fractions_give_the_same_embeddings(encoder: Encoder) -> None:
    images = torch.randint(0, 256, (2, 2, 2, 3, 32, 32), dtype=torch.uint8)
    torch.testing.assert_close(encoder(images), encoder(images / 255))


def test_frozen_base_stays_untouched_by_training(encoder: Encoder) -> None:
    freeze(encoder, "frozen")
    encoder.train()
    before = base_statistics(encoder)
    encoder(torch.rand(2, 2, 2, 3, 32, 32)).sum().backward()
    assert all(torch.equal(a, b) for a, b in zip(before, base_statistics(encoder), strict=True))
    assert not encoder.base.training and encoder.embedder.training
    assert all(p.grad is None for p in encoder.base.parameters())
    assert all(p.grad is not None for p in encoder.embedder.parameters())


def test_bn_trains_only_scales_and_shifts_of_batchnorm(encoder: Encoder) -> None:
    freeze(encoder, "bn")
    encoder.train()
    before = base_statistics(encoder)
    encoder(torch.rand(2, 2, 2, 3, 32, 32)).sum().backward()
    trained = {name for name, p in encoder.base.named_parameters() if p.grad is not None}
    assert trained == {name for name, _ in encoder.base.named_parameters() if ".norm." in name}
    assert not any(torch.equal(a, b) for a, b in zip(before, base_statistics(encoder), strict=True))


def test_fixed_statistics_do_not_move_while_all_weights_train(encoder: Encoder) -> None:
    freeze(encoder, "all", statistics="fixed")
    encoder.train()
    before = base_statistics(encoder)
    encoder(torch.rand(2, 2, 2, 3, 32, 32)).sum().backward()
    assert all(torch.equal(a, b) for a, b in zip(before, base_statistics(encoder), strict=True))
    assert all(p.grad is not None for p in encoder.base.parameters())


def test_with_fixed_statistics_a_base_trains_as_it_is_used(encoder: Encoder) -> None:
    images = torch.rand(4, 3, 32, 32)
    used = encoder.eval().features(images)
    freeze(encoder, "all", statistics="fixed")
    torch.testing.assert_close(encoder.train().features(images), used)


def test_training_may_start_at_a_later_part_of_the_base(encoder: Encoder) -> None:
    names = [name for name, _ in encoder.base.named_parameters()]
    later = names[len(names) // 2].rsplit(".", 2)[0]
    freeze(encoder, "all", train_from=later)
    trained = [name for name, p in encoder.base.named_parameters() if p.requires_grad]
    assert trained == names[names.index(trained[0]) :] and trained[0].startswith(later)
    with pytest.raises(ValueError, match=r"SmallBase has no part 'layer9' to train from; parts: \w+"):
        freeze(encoder, "all", train_from="layer9")


def test_freezing_can_be_undone(encoder: Encoder) -> None:
    freeze(encoder, "frozen")
    freeze(encoder, "all")
    encoder.train()
    assert encoder.base.training and all(p.requires_grad for p in encoder.base.parameters())


def test_freezing_in_training_mode_acts_at_once(encoder: Encoder) -> None:
    encoder.train()
    freeze(encoder, "frozen")
    assert not encoder.base.training and encoder.embedder.training


def test_unknown_way_to_train_the_base_is_an_error(encoder: Encoder) -> None:
    with pytest.raises(ValueError, match=r"'all', 'bn', 'frozen'.*got 'half'"):
        freeze(encoder, "half")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'batch', 'fixed'.*got 'none'"):
        freeze(encoder, "all", statistics="none")  # type: ignore[arg-type]


def test_base_and_embedder_must_fit() -> None:
    with pytest.raises(ValueError, match="the base gives 16 channels, the embedder takes 20"):
        Encoder(SmallBase(width=4), ConvEmbedder(20))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e(torch.rand(2, 3, 3, 32, 32)), r"\(B, T, C=2, 3, H, W\), got \(2, 3, 3, 32, 32\)"),
        (lambda e: e(torch.rand(2, 3, 1, 3, 8, 8)), r"\(B, T, C=2, 3, H, W\), got \(2, 3, 1, 3, 8, 8\)"),
        (lambda e: e.features(torch.rand(2, 8, 8, 3)), r"\(N, 3, H, W\), got \(2, 8, 8, 3\)"),
        (lambda e: e.embed(torch.rand(1, 2, 2, 4, 3, 3)), r"C=2, F=16, h, w\), got \(1, 2, 2, 4, 3, 3\)"),
    ],
)
def test_wrong_shapes_are_named(encoder: Encoder, call: Callable[[Encoder], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(encoder)


def test_vectors_are_embedded_like_images() -> None:
    base = VectorBase(in_features=6)
    encoder = Encoder(base, MLPEmbedder(6, fc_channels=(8,), embedding_size=5, context_stride=2)).eval()
    video = torch.randn(9, 6)
    whole = torch.cat(list(encoder.embed_stream([encoder.features(video)])))
    clip = torch.stack([video[5], video[7]])[None, None]  # (B, T, C, V)
    assert encoder.input_kind == "vectors" and encoder.device == torch.device("cpu")
    torch.testing.assert_close(encoder(clip)[0, 0].detach(), whole[7], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e(torch.rand(2, 3, 2, 5)), r"vectors must be \(B, T, C=2, V=6\), got \(2, 3, 2, 5\)"),
        (lambda e: e(torch.rand(2, 3, 2, 3, 8, 8)), r"\(B, T, C=2, V=6\), got \(2, 3, 2, 3, 8, 8\)"),
        (lambda e: e.features(torch.rand(2, 5)), r"vectors must be \(N, V=6\), got \(2, 5\)"),
    ],
)
def test_wrong_vectors_are_named(call: Callable[[Encoder], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(Encoder(VectorBase(in_features=6), MLPEmbedder(6)))


def test_vectors_of_whole_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match=r"vectors must be float, got torch\.uint8"):
        Encoder(VectorBase(in_features=6), MLPEmbedder(6)).features(torch.ones(2, 6, dtype=torch.uint8))
