import torch

from cycleback.data.augmentation import AugmentSettings
from cycleback.training import Batch
from cycleback.training.images import augmented_images, draw_for

SETTINGS = AugmentSettings(hue=0.2, saturation=(0.5, 1.5), crop=(0.8, 1.0))


def batch_of(rows: tuple[int, ...]) -> tuple[torch.Tensor, Batch]:
    generator = torch.Generator().manual_seed(0)
    frames = torch.randint(0, 256, (4, 2, 1, 8, 8, 3), dtype=torch.uint8, generator=generator)[list(rows)]
    return frames, Batch(frames, torch.zeros(4, 2), (0, 1, 2, 3), has_positives=False, rows=rows)


def changed(rows: tuple[int, ...], settings: AugmentSettings | None = SETTINGS) -> torch.Tensor:
    frames, batch = batch_of(rows)
    return augmented_images(frames, draw_for(batch, settings=settings, seed=3))


def test_a_video_is_changed_alike_whichever_process_embeds_it() -> None:
    whole = changed((0, 1, 2, 3))
    part = changed((1, 3))
    assert whole.shape == (4, 2, 1, 3, 8, 8)
    torch.testing.assert_close(part, whole[[1, 3]])


def test_processes_have_noise_of_their_own() -> None:
    noise = AugmentSettings(flip=0, brightness=0, contrast=(1, 1), noise=0.2)
    first = changed((1, 0), noise)
    second = changed((2, 0), noise)
    assert not torch.equal(first[1], second[1])


def test_without_settings_frames_become_fractions() -> None:
    frames, _ = batch_of((0, 1))
    assert torch.equal(changed((0, 1), None), frames.movedim(-1, -3) / 255)
