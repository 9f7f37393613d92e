"""Each operation against a loop over clips, frames and pixels."""

import colorsys

import numpy as np
import pytest
import torch
from torch import Tensor

from cycleback import compilation
from cycleback.data import augmentation
from cycleback.data.augmentation import (
    Augmentation,
    AugmentSettings,
    augment,
    augment_on_gpu,
    crop_and_resize,
    draw_augmentation,
    draw_table,
    hsv_to_rgb,
    rgb_to_hsv,
)
from cycleback.errors import SlowPathWarning, warn_slow_path

ALL_ON = AugmentSettings(hue=0.2, saturation=(0.5, 1.5), crop=(0.8, 1.0), noise=0.05)


def draw(batch: int, settings: AugmentSettings = ALL_ON, seed: int = 0) -> Augmentation:
    return draw_augmentation(batch, settings=settings, generator=torch.Generator().manual_seed(seed))


def clips(*shape: int, seed: int = 1) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_defaults_are_those_of_the_paper() -> None:
    drawn = draw(20_000, AugmentSettings())
    assert drawn.hue is drawn.saturation is drawn.crop is drawn.noise is None
    assert 0.49 < drawn.flip.float().mean() < 0.51
    for values, low, high in ((drawn.brightness, -32 / 255, 32 / 255), (drawn.contrast, 0.5, 1.5)):
        assert low <= values.min() < low + 0.01 and high - 0.01 < values.max() <= high
        assert values.mean() == pytest.approx((low + high) / 2, abs=0.01)


def test_flip_brightness_and_contrast_equal_a_loop() -> None:
    frames, drawn = clips(3, 2, 2, 3, 5, 4), draw(3, AugmentSettings(), seed=3)
    assert drawn.flip.any() and not drawn.flip.all()
    expected = frames.numpy().copy()
    for b, t, c, channel in np.ndindex(3, 2, 2, 3):
        picture = expected[b, t, c, channel]
        picture = picture[:, ::-1] if drawn.flip[b] else picture
        picture = picture + float(drawn.brightness[b])
        picture = (picture - picture.mean()) * float(drawn.contrast[b]) + picture.mean()
        expected[b, t, c, channel] = picture.clip(0, 1)
    np.testing.assert_allclose(augment(frames, drawn).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["flip", "brightness", "contrast", "hue", "saturation"])
def test_each_operation_alone_leaves_neutral_values_neutral(name: str) -> None:
    frames = clips(2, 3, 4, 4)
    neutral = {
        "flip": torch.zeros(2, dtype=torch.bool),
        "contrast": torch.ones(2),
        "saturation": torch.ones(2),
    }
    drawn = Augmentation(**{name: neutral.get(name, torch.zeros(2))})
    torch.testing.assert_close(augment(frames, drawn), frames, atol=1e-12, rtol=0)


def test_hue_and_saturation_equal_the_standard_library() -> None:
    frames = clips(2, 3, 3, 4, 4)
    frames[0, 0, :, 0, 0], frames[0, 0, :, 0, 1], frames[0, 0, :, 0, 2] = 0.0, 1.0, 0.4  # black, white, grey
    hue, saturation = torch.tensor([0.15, -0.4]), torch.tensor([1.4, 0.6])
    changed = augment(frames, Augmentation(hue=hue, saturation=saturation))
    for b, t, y, x in np.ndindex(2, 3, 4, 4):
        h, s, v = colorsys.rgb_to_hsv(*frames[b, t, :, y, x].tolist())
        h, s = (h + float(hue[b])) % 1, min(1.0, s * float(saturation[b]))
        assert changed[b, t, :, y, x].tolist() == pytest.approx(colorsys.hsv_to_rgb(h, s, v), abs=1e-6)


def test_a_crop_equals_bilinear_sampling_by_hand() -> None:
    frames, height, width = clips(2, 2, 3, 6, 8), 6, 8
    crop = torch.tensor([[0.8, 0.1, 0.05], [1.0, 0.0, 0.0]], dtype=torch.float64)
    cropped = crop_and_resize(frames, crop)
    torch.testing.assert_close(cropped[1], frames[1])
    for y, x in np.ndindex(height, width):
        row = (0.1 + 0.8 * (y + 0.5) / height) * height - 0.5
        column = (0.05 + 0.8 * (x + 0.5) / width) * width - 0.5
        top, left = min(int(row), height - 2), min(int(column), width - 2)
        down, right = row - top, column - left
        near = frames[0, 1, 2, top : top + 2, left : left + 2]
        expected = (1 - down) * (near[0, 0] * (1 - right) + near[0, 1] * right)
        expected += down * (near[1, 0] * (1 - right) + near[1, 1] * right)
        assert float(cropped[0, 1, 2, y, x]) == pytest.approx(float(expected), abs=1e-12)


def test_crops_stay_inside_the_frame() -> None:
    side, top, left = draw(5000).crop.T
    assert 0.8 <= side.min() < 0.81 and 0.99 < side.max() <= 1
    assert min(top.min(), left.min()) >= 0 and max((top + side).max(), (left + side).max()) <= 1 + 1e-6


def test_noise_has_its_strength_and_one_pattern_a_clip() -> None:
    frames = torch.full((2, 4, 3, 40, 40), 0.5)
    noisy = augment(frames, Augmentation(noise=torch.tensor([0.05, 0.05]), noise_seed=3))
    assert (noisy - 0.5).std() == pytest.approx(0.05, rel=0.05)
    assert torch.equal(noisy[:, :1].expand_as(noisy), noisy)
    assert not torch.equal(noisy[0], noisy[1])


def test_all_frames_of_a_clip_change_alike() -> None:
    one = clips(3, 1, 1, 3, 8, 8)
    changed = augment(one.expand(3, 5, 2, 3, 8, 8), draw(3))
    torch.testing.assert_close(changed, changed[:, :1, :1].expand_as(changed), rtol=0, atol=0)
    assert changed.min() >= 0 and changed.max() <= 1


def test_a_clip_does_not_depend_on_the_others() -> None:
    frames = clips(3, 2, 3, 8, 8)
    other = frames.clone()
    other[1] = 0.3
    before, after = (augment(each, draw(3)) for each in (frames, other))
    assert torch.equal(before[0], after[0]) and torch.equal(before[2], after[2])


def test_turning_one_operation_on_leaves_the_other_draws() -> None:
    plain, more = draw(8, AugmentSettings(), seed=5), draw(8, ALL_ON, seed=5)
    assert torch.equal(plain.flip, more.flip) and torch.equal(plain.contrast, more.contrast)
    assert torch.equal(plain.brightness, more.brightness) and plain.noise_seed == more.noise_seed


def test_disabled_frames_stay_the_same_object() -> None:
    frames = clips(2, 3, 4, 4)
    assert augment(frames, draw(2, AugmentSettings(enabled=False))) is frames


def test_the_input_is_left_as_it_was() -> None:
    frames = clips(2, 2, 3, 6, 6)
    before = frames.clone()
    augment(frames, draw(2))
    assert torch.equal(frames, before)


def test_channels_last_frames_give_the_same() -> None:
    frames = clips(2, 3, 6, 6, 3).movedim(-1, -3)
    torch.testing.assert_close(augment(frames, draw(2)), augment(frames.contiguous(), draw(2)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_type_stays(dtype: torch.dtype) -> None:
    frames = clips(2, 3, 6, 6)
    changed = augment(frames.to(dtype), draw(2, AugmentSettings(hue=0.1)))
    assert changed.dtype == dtype
    reference = augment(frames, draw(2, AugmentSettings(hue=0.1)))
    assert (changed.double() - reference).abs().mean() < 0.02


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"flip": 1.5}, r"augment\.flip must be in \[0, 1\], got 1\.5"),
        ({"hue": 0.6}, r"augment\.hue must be in \[0, 0\.5\], got 0\.6"),
        ({"contrast": (1.5, 0.5)}, r"augment\.contrast must be a range .* got \(1\.5, 0\.5\)"),
        ({"crop": (0.8, 1.2)}, r"augment\.crop must be a range .* to 1, got \(0\.8, 1\.2\)"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AugmentSettings(**settings)


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"frames must be float \(B, \.\.\., 3, H, W\), got torch\.uint8 \(2, 3, 4, 4\)"
    ):
        augment(torch.zeros(2, 3, 4, 4, dtype=torch.uint8), draw(2))
    with pytest.raises(ValueError, match=r"got torch\.float64 \(2, 4, 4, 3\)"):
        augment(clips(2, 4, 4, 3), draw(2))
    with pytest.raises(ValueError, match="is for 3 clips, but frames hold 2"):
        augment(clips(2, 3, 4, 4), draw(3))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_device_gives_what_the_processor_gives() -> None:
    settings = AugmentSettings(hue=0.2, saturation=(0.5, 1.5), crop=(0.8, 1.0))  # noise differs by device
    frames = clips(3, 2, 2, 3, 16, 16).float()
    changed = augment(frames.cuda(), draw(3, settings))
    assert changed.device.type == "cuda"
    torch.testing.assert_close(changed.cpu(), augment(frames, draw(3, settings)), atol=1e-4, rtol=0)


GRID = torch.cartesian_prod(*[torch.linspace(0, 1, 6, dtype=torch.float64)] * 3).T.reshape(3, 6, 36)


def test_hue_saturation_and_value_equal_the_standard_library() -> None:
    ours = torch.stack(rgb_to_hsv(GRID)).flatten(1).T
    for pixel, hsv in zip(GRID.flatten(1).T, ours, strict=True):
        assert hsv.tolist() == pytest.approx(colorsys.rgb_to_hsv(*pixel.tolist()), abs=1e-12)


def test_there_and_back_is_the_same_colour() -> None:
    torch.testing.assert_close(hsv_to_rgb(*rgb_to_hsv(GRID)), GRID)


SETTINGS = {
    "the paper's": AugmentSettings(),
    "all": AugmentSettings(crop=(0.6, 1.0), saturation=(0.3, 1.9), hue=0.2),
    "crop": AugmentSettings(flip=0, brightness=0, contrast=(1, 1), crop=(0.7, 0.9)),
    "no contrast": AugmentSettings(contrast=(1, 1), hue=0.1),
    "extremes": AugmentSettings(flip=1.0, brightness=0.5, contrast=(0.1, 2.5), saturation=(0, 3)),
    "none": AugmentSettings(enabled=False),
}


def frames_of(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    frames = torch.randint(0, 256, (*shape, 3), dtype=torch.uint8, generator=generator)
    frames[:, :, :, :3] = 7  # grey, which has no hue
    return frames


def draw_of(settings: AugmentSettings, clips: int) -> Augmentation:
    return draw_augmentation(clips, settings=settings, generator=torch.Generator().manual_seed(1))


def test_without_a_gpu_there_is_no_kernel() -> None:
    assert augment_on_gpu(frames_of(2, 1, 1, 8, 8), draw_of(AugmentSettings(), 2)) is None


def test_what_is_off_changes_nothing() -> None:
    table = draw_table(Augmentation(hue=torch.tensor([0.25])), 1, device=torch.device("cpu"))
    side, top, left, flip, brightness, contrast, hue, saturation = table[0].tolist()
    assert (side, top, left, flip, brightness, contrast, saturation) == (1, 0, 0, 0, 0, 1, 1)
    assert hue == 0.25


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("size", [(17, 23), (64, 64)])
def test_the_kernel_changes_frames_as_the_operations_do(name: str, size: tuple[int, int]) -> None:
    frames, draw = frames_of(3, 2, 2, *size), draw_of(SETTINGS[name], 3)
    expected = augment(frames.movedim(-1, -3).float() / 255, draw)
    found = augment_on_gpu(frames.cuda(), draw.map(Tensor.cuda))
    assert found is not None and found.movedim(-3, -1).is_contiguous()
    torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=2e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_noise_is_left_to_the_operations() -> None:
    draw = draw_of(AugmentSettings(noise=0.1), 2).map(Tensor.cuda)
    assert augment_on_gpu(frames_of(2, 1, 1, 8, 8).cuda(), draw) is None


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a CUDA device")
def test_a_kernel_that_cannot_be_built_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "find_spec", lambda name: object())
    augmentation._kernels.cache_clear()
    warn_slow_path.cache_clear()
    with pytest.warns(SlowPathWarning, match="the Triton kernel for augmentation is unavailable"):
        assert augmentation._kernels() is None
    augmentation._kernels.cache_clear()
