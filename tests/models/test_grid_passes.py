import pytest
import torch
import torch.nn.functional as F

from cycleback.models.gpu_bricks import HalvingMaxPool
from cycleback.models.grid_passes import halving_max_pool, relu_gradient

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def test_without_a_gpu_there_is_no_kernel() -> None:
    grid = torch.rand(2, 16, 8, 8).contiguous(memory_format=torch.channels_last)
    assert halving_max_pool(grid) is None
    assert relu_gradient(grid, grid) is None


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("shape", [(3, 64, 112, 112), (2, 16, 7, 34)])
def test_a_kernel_pools_like_torch(shape: tuple[int, ...]) -> None:
    grid = torch.randn(shape, device="cuda").bfloat16().contiguous(memory_format=torch.channels_last)
    found = halving_max_pool(grid)
    assert found is not None and found.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(found, F.max_pool2d(grid, 3, 2, 1), rtol=0, atol=0)


def test_pooling_is_trained_through() -> None:
    grid = torch.randn(2, 16, 7, 8, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(HalvingMaxPool(), grid)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("shape", [(3, 64, 40, 40), (2, 200, 7, 5), (1, 1024, 10, 10), (1, 8, 1, 1)])
def test_a_kernel_cuts_and_sums_like_torch(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    gradient, output = (
        torch.randn(shape, device="cuda").bfloat16().contiguous(memory_format=torch.channels_last)
        for _ in range(2)
    )
    output = output.relu()
    found = relu_gradient(gradient, output)
    assert found is not None
    expected = torch.where(output > 0, gradient, 0)
    torch.testing.assert_close(found[0], expected, rtol=0, atol=0)
    torch.testing.assert_close(found[1].float(), expected.float().sum((0, 2, 3)), rtol=0.01, atol=0.01)


@pytest.mark.gpu
@needs_gpu
def test_another_layout_is_left_to_torch() -> None:
    grid = torch.randn(2, 16, 8, 8, device="cuda")
    assert relu_gradient(grid, grid.contiguous(memory_format=torch.channels_last)) is None
