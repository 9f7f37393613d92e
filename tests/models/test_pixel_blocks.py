import pytest
import torch
import torch.nn.functional as F

from cycleback.models.pixel_blocks import block_kernel, pixel_blocks, reach_of


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize(("size", "zeros"), [(7, 3), (3, 1), (5, 2), (3, 0), (6, 2)])
@pytest.mark.parametrize("pixels", [(12, 16), (11, 16), (13, 9)])
def test_blocks_give_the_sums_of_stride_2(pixels: tuple[int, int], size: int, zeros: int) -> None:
    images, kernel = random(2, 3, *pixels), random(4, 3, size, size)
    expected = F.conv2d(images, kernel, stride=2, padding=zeros)
    blocks = pixel_blocks(images, reach_of(size, zeros), dtype=torch.float64)
    found = F.conv2d(blocks, block_kernel(kernel, zeros=zeros))
    rows, columns = expected.shape[-2:]
    torch.testing.assert_close(found[..., :rows, :columns], expected)
    if (size, zeros) == (7, 3):
        assert found.shape == expected.shape


def test_the_kernel_is_trained_through() -> None:
    images, kernel = random(2, 3, 10, 12), random(4, 3, 7, 7).requires_grad_()
    upstream = random(2, 4, 5, 6)
    (expected,) = torch.autograd.grad(F.conv2d(images, kernel, stride=2, padding=3), kernel, upstream)
    blocks = pixel_blocks(images, reach_of(7, 3), dtype=torch.float64)
    (found,) = torch.autograd.grad(F.conv2d(blocks, block_kernel(kernel, zeros=3)), kernel, upstream)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("width", [16, 15])
def test_colours_are_normalised_and_blank_images_follow(width: int) -> None:
    images, scale, shift = random(2, 3, 12, width), random(3), random(3) + 5
    normalised = images * scale[:, None, None] + shift[:, None, None]
    reach = reach_of(7, 3)
    found = pixel_blocks(images, reach, dtype=torch.float64, normalising=(scale, shift), count=5)
    expected = pixel_blocks(normalised, reach, dtype=torch.float64)
    torch.testing.assert_close(found[:2], expected)
    assert len(found) == 5 and not found[2:].any()
