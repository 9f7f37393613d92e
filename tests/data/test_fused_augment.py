import pytest
import torch
from torch import Tensor

from cycleback.data import AugmentSettings, augment, augmented_on_gpu, draw_augmentation
from cycleback.data.augmentation import Augmentation
from cycleback.data.fused_augment import draw_table

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
    assert augmented_on_gpu(frames_of(2, 1, 1, 8, 8), draw_of(AugmentSettings(), 2)) is None


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
    found = augmented_on_gpu(frames.cuda(), draw.map(Tensor.cuda))
    assert found is not None and found.movedim(-3, -1).is_contiguous()
    torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=2e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_noise_is_left_to_the_operations() -> None:
    draw = draw_of(AugmentSettings(noise=0.1), 2).map(Tensor.cuda)
    assert augmented_on_gpu(frames_of(2, 1, 1, 8, 8).cuda(), draw) is None
