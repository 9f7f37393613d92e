import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.models.ops import (
    _kernels,
    block_reach,
    conv_relu,
    max_pool,
    relu_backward,
    to_block_kernel,
    to_pixel_blocks,
)

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def tensors(groups: int = 1) -> tuple[Tensor, ...]:
    """Input, weight, bias and what is added, with gradients."""
    generator = torch.Generator().manual_seed(0)
    shapes = (2, 4, 5, 6), (6, 4 // groups, 3, 3), (6,), (2, 6, 3, 3)
    return tuple(
        torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes
    )


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("adds", [False, True])
def test_values_and_gradients_are_those_of_the_three_operations(adds: bool, groups: int) -> None:
    input, weight, bias, other = tensors(groups)
    given = [input, weight, bias, *([other] if adds else [])]
    summed = F.conv2d(input, weight, bias, stride=2, padding=1, groups=groups)
    expected = F.relu(summed + other if adds else summed)
    found = conv_relu(
        input, weight, bias, stride=(2, 2), padding=(1, 1), groups=groups, other=other if adds else None
    )
    torch.testing.assert_close(found, expected)
    upstream = torch.randn(found.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for mine, theirs in zip(
        torch.autograd.grad(found, given, upstream),
        torch.autograd.grad(expected, given, upstream),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs)


def test_weights_that_do_not_train_get_no_gradient() -> None:
    input, weight, bias, _ = tensors()
    conv_relu(input, weight.detach(), bias).sum().backward()
    assert input.grad is not None and bias.grad is not None and weight.grad is None


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("shape", [(3, 64, 112, 112), (2, 16, 7, 34)])
def test_a_kernel_pools_like_torch(shape: tuple[int, ...]) -> None:
    grid = torch.randn(shape, device="cuda").bfloat16().contiguous(memory_format=torch.channels_last)
    assert _kernels() is not None
    found = max_pool(grid)
    assert found.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(found, F.max_pool2d(grid, 3, 2, 1), rtol=0, atol=0)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, needs_gpu])])
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize("shape", [(3, 64, 40, 40), (2, 200, 7, 5), (1, 1024, 10, 10), (1, 8, 1, 1)])
def test_a_gradient_passes_where_relu_was_open_and_is_summed(
    shape: tuple[int, ...], layout: torch.memory_format, device: str
) -> None:
    torch.manual_seed(0)
    gradient = torch.randn(shape, device=device).bfloat16().contiguous(memory_format=layout)
    output = torch.randn(shape, device=device).bfloat16().contiguous(memory_format=torch.channels_last).relu()
    passed, summed = relu_backward(gradient, output)
    expected = torch.where(output > 0, gradient, 0)
    torch.testing.assert_close(passed, expected, rtol=0, atol=0)
    torch.testing.assert_close(summed.float(), expected.float().sum((0, 2, 3)), rtol=0.01, atol=0.01)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize(("size", "zeros"), [(7, 3), (3, 1), (5, 2), (3, 0), (6, 2)])
@pytest.mark.parametrize("pixels", [(12, 16), (11, 16), (13, 9)])
def test_blocks_give_the_sums_of_stride_2(pixels: tuple[int, int], size: int, zeros: int) -> None:
    images, kernel = random(2, 3, *pixels), random(4, 3, size, size)
    expected = F.conv2d(images, kernel, stride=2, padding=zeros)
    blocks = to_pixel_blocks(images, block_reach(size, zeros), dtype=torch.float64)
    found = F.conv2d(blocks, to_block_kernel(kernel, padding=zeros))
    rows, columns = expected.shape[-2:]
    torch.testing.assert_close(found[..., :rows, :columns], expected)
    if (size, zeros) == (7, 3):
        assert found.shape == expected.shape


def test_the_kernel_is_trained_through() -> None:
    images, kernel = random(2, 3, 10, 12), random(4, 3, 7, 7).requires_grad_()
    upstream = random(2, 4, 5, 6)
    (expected,) = torch.autograd.grad(F.conv2d(images, kernel, stride=2, padding=3), kernel, upstream)
    blocks = to_pixel_blocks(images, block_reach(7, 3), dtype=torch.float64)
    (found,) = torch.autograd.grad(F.conv2d(blocks, to_block_kernel(kernel, padding=3)), kernel, upstream)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("width", [16, 15])
def test_colours_are_normalised_and_blank_images_follow(width: int) -> None:
    images, scale, shift = random(2, 3, 12, width), random(3), random(3) + 5
    normalised = images * scale[:, None, None] + shift[:, None, None]
    reach = block_reach(7, 3)
    found = to_pixel_blocks(images, reach, dtype=torch.float64, normalization=(scale, shift), count=5)
    expected = to_pixel_blocks(normalised, reach, dtype=torch.float64)
    torch.testing.assert_close(found[:2], expected)
    assert len(found) == 5 and not found[2:].any()
