from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from cycleback.errors import SlowPathWarning, warn_slow_path
from cycleback.models import (
    BASES,
    Base,
    ConvEmbedder,
    EfficientNetLite0,
    ResNet50,
    SmallBase,
    VGGMBase,
    build_base,
    fast_inference,
    inference,
)
from cycleback.models.inference import cpu
from cycleback.models.inference.gpu import GpuBase, GpuEmbedder


def trained(base: Base) -> Base:
    """The base with BatchNorm statistics that are not the first ones."""
    base.train()
    with torch.no_grad():
        base(torch.rand(4, 3, 64, 64) if base.input_kind == "images" else torch.rand(4, base.in_channels))
    return base.eval()


def relative_error(values: Tensor, reference: Tensor) -> float:
    return ((values - reference).abs().max() / reference.abs().max()).item()


@pytest.mark.parametrize("name", sorted(BASES))
def test_fast_copy_equals_the_base(
    name: str, small_options: Callable[[str], dict[str, Any]], frames_for: Callable[..., Tensor]
) -> None:
    torch.manual_seed(0)
    base = trained(build_base(name, **small_options(name)))
    frames = frames_for(base, 3)
    assert relative_error(fast_inference(base)(frames), base(frames).detach()) < 1e-5


@pytest.mark.parametrize("strides", ["v1", "torchvision"])
@pytest.mark.parametrize("shape", [(64, 64), (57, 70)])
def test_fixed_padding_is_kept(strides: str, shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    base = trained(ResNet50(weights=None, layer="layer2[0]", strides=strides))
    images = torch.rand(2, 3, *shape)
    assert relative_error(fast_inference(base)(images), base(images).detach()) < 1e-5


@pytest.mark.parametrize("shape", [(64, 64), (57, 70), (50, 33)])
def test_any_image_size_pads_like_the_base(shape: tuple[int, int]) -> None:
    base = EfficientNetLite0().eval()
    images = torch.rand(1, 3, *shape)
    assert relative_error(fast_inference(base)(images), base(images).detach()) < 1e-5


def test_one_copy_serves_changing_image_sizes() -> None:
    base = EfficientNetLite0(block=4).eval()
    fast = fast_inference(base)
    for size in (64, 33, 64):
        images = torch.rand(2, 3, size, size)
        assert relative_error(fast(images), base(images).detach()) < 1e-5


def test_without_onednn_the_values_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "has_fused_convolution", lambda device: False)
    base = EfficientNetLite0(block=4).eval()
    images = torch.rand(2, 3, 50, 64)
    assert relative_error(fast_inference(base)(images), base(images).detach()) < 1e-5


def test_half_precision_stays_near_the_base(picture: Tensor) -> None:
    base = EfficientNetLite0().eval()
    features = fast_inference(base, precision="bfloat16")(picture)
    assert features.dtype == torch.float32
    assert relative_error(features, base(picture).detach()) < 0.05


def test_groups_of_images_do_not_change_the_features(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = fast_inference(trained(SmallBase(width=4)))
    images = torch.rand(5, 3, 32, 32)
    whole = fast(images)
    monkeypatch.setattr(inference, "PIXELS_PER_BATCH", 2 * 32 * 32)
    torch.testing.assert_close(fast(images), whole)


def test_bytes_and_fractions_give_the_same_features() -> None:
    fast = fast_inference(SmallBase(width=4))
    images = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    torch.testing.assert_close(fast(images), fast(images / 255))


def test_the_copy_does_not_follow_later_training() -> None:
    base = trained(SmallBase(width=4))
    fast, images = fast_inference(base), torch.rand(1, 3, 32, 32)
    before = fast(images)
    with torch.no_grad():
        base.layers[0].conv.weight.mul_(2)
    assert torch.equal(fast(images), before)
    assert not before.requires_grad and base.layers[0].conv.weight.requires_grad


def test_features_can_be_used_in_training() -> None:
    features = fast_inference(SmallBase(width=4))(torch.rand(2, 3, 32, 32))
    layer = torch.nn.Conv2d(16, 2, 1)
    layer(features).sum().backward()
    assert layer.weight.grad is not None


def test_unknown_precision_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"'float32', 'bfloat16'.*got 'int8'"):
        fast_inference(SmallBase(width=4), precision="int8")  # type: ignore[arg-type]


def test_a_network_of_another_library_runs_in_half_precision(
    small_options: Callable[[str], dict[str, Any]],
) -> None:
    base = build_base("transformers", **small_options("transformers")).eval()
    images = torch.rand(2, 3, 56, 56)
    error = relative_error(fast_inference(base, precision="bfloat16")(images), base(images).detach())
    assert 0 < error < 0.05


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_features_on_a_gpu_are_near_those_on_a_cpu() -> None:
    torch.manual_seed(0)
    base, images = trained(ResNet50(weights=None)), torch.rand(2, 3, 112, 112)
    expected = base(images).detach()
    base, images = base.cuda(), images.cuda()
    assert base(images).is_contiguous(memory_format=torch.channels_last)
    assert relative_error(base(images).detach().cpu(), expected) < 1e-2  # TF32
    assert relative_error(fast_inference(base)(images).cpu(), expected) < 1e-2


GPU_BASES = {
    "resnet50 v1": lambda: ResNet50(weights=None, layer="layer2[1]", strides="v1"),
    "resnet50": lambda: ResNet50(weights=None, layer="layer2[1]", strides="torchvision"),
    "efficientnet_lite0": lambda: EfficientNetLite0(block=4),
    "vggm": VGGMBase,
    "small": lambda: SmallBase(width=4),
}


def relative_norm_error(values: Tensor, reference: Tensor) -> float:
    return ((values - reference).norm() / reference.norm()).item()


@pytest.mark.parametrize("name", GPU_BASES)
@pytest.mark.parametrize("shape", [(64, 64), (57, 70)])
def test_the_rewritten_base_gives_the_same_features(name: str, shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    base = trained(GPU_BASES[name]())
    images = torch.randint(0, 256, (2, 3, *shape), dtype=torch.uint8)
    expected = base(images / 255).detach()
    for frames in (images, images / 255, images.contiguous(memory_format=torch.channels_last)):
        assert relative_norm_error(GpuBase(base, dtype=torch.float32)(frames), expected) < 1e-5


def test_in_bfloat16_it_stays_near_the_base(picture: Tensor) -> None:
    base = EfficientNetLite0().eval()
    assert relative_norm_error(GpuBase(base)(picture).float(), base(picture).detach()) < 0.05


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", GPU_BASES)
def test_on_a_gpu_it_gives_what_a_cpu_gives(name: str) -> None:
    torch.manual_seed(0)
    base = trained(GPU_BASES[name]())
    images = torch.randint(0, 256, (2, 3, 96, 96), dtype=torch.uint8)
    features = GpuBase(base.cuda())(images.cuda())
    assert features.dtype == torch.bfloat16
    assert relative_norm_error(features.float().cpu(), base.cpu()(images / 255).detach()) < 0.03


def embedder(**options: Any) -> ConvEmbedder:
    """One whose BatchNorm statistics are not the first ones."""
    torch.manual_seed(0)
    defaults = {"conv_channels": (8, 6), "fc_channels": (7,), "embedding_size": 4, "context_stride": 3}
    made = ConvEmbedder(5, **{**defaults, **options})
    made.train()(torch.rand(2, 6, made.context_frames, 5, 4, 4))
    return made.eval()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"context_frames": 1},
        {"context_frames": 3},
        {"reduce_channels": 3},
        {"pooling": "avg"},
        {"batch_norm": False},
        {"normalize": True},
        {"conv_channels": (8,)},
    ],
)
def test_the_fast_copy_embeds_a_video_like_the_embedder(options: dict[str, Any]) -> None:
    source = embedder(**options)
    video = torch.rand(17, 5, 4, 4).split([9, 2, 6])
    fast = GpuEmbedder(source, dtype=torch.float32)
    expected, found = (torch.cat(list(e.embed_stream(video))) for e in (source, fast))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pieces", [[1] * 17, [2, 3, 12], [17]])
def test_how_the_video_is_cut_does_not_matter(pieces: list[int]) -> None:
    source = embedder(context_frames=3)  # sees six frames back
    video = torch.rand(17, 5, 4, 4)
    fast = GpuEmbedder(source, dtype=torch.float32)
    found = torch.cat(list(fast.embed_stream(video.split(pieces))))
    torch.testing.assert_close(found, torch.cat(list(source.embed_stream([video]))), rtol=1e-4, atol=1e-5)


def test_the_fast_copy_embeds_clips_like_the_embedder() -> None:
    source, clips = embedder(), torch.rand(2, 3, 2, 5, 4, 4)
    found = GpuEmbedder(source, dtype=torch.float32)(clips)
    torch.testing.assert_close(found, source(clips).detach(), rtol=1e-4, atol=1e-5)


def test_in_bfloat16_it_stays_near_the_embedder() -> None:
    source, video = embedder(), [torch.rand(12, 5, 4, 4)]
    expected, found = (
        torch.cat(list(e.embed_stream(video))) for e in (source, GpuEmbedder(source, dtype=torch.bfloat16))
    )
    assert found.dtype == torch.float32
    assert (found - expected).norm() < 0.05 * expected.norm()


def test_what_it_cannot_do_is_known() -> None:
    assert GpuEmbedder.supports(embedder())
    assert not GpuEmbedder.supports(embedder(context_frames=4))
    assert not GpuEmbedder.supports(embedder(pooling="flatten", feature_map_size=(4, 4)))


def test_a_missing_onednn_operation_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    warn_slow_path.cache_clear()
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    monkeypatch.setattr(torch.ops, "mkldnn", object())
    with pytest.warns(
        SlowPathWarning, match=r"oneDNN's fused convolution is unavailable \(torch .*slower path"
    ):
        assert not cpu.has_fused_convolution(torch.device("cpu"))


def test_a_torch_without_onednn_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert not cpu.has_fused_convolution(torch.device("cpu"))
