import pytest
import torch
import torch.nn.functional as F

from cycleback.models.gpu_bricks import HalvingMaxPool
from cycleback.models.grid_passes import _kernels, halving_max_pool, relu_gradient

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("shape", [(3, 64, 112, 112), (2, 16, 7, 34)])
def test_a_kernel_pools_like_torch(shape: tuple[int, ...]) -> None:
    grid = torch.randn(shape, device="cuda").bfloat16().contiguous(memory_format=torch.channels_last)
    assert _kernels() is not None
    found = halving_max_pool(grid)
    assert found.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(found, F.max_pool2d(grid, 3, 2, 1), rtol=0, atol=0)


def test_pooling_is_trained_through() -> None:
    grid = torch.randn(2, 16, 7, 8, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(HalvingMaxPool(), grid)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, needs_gpu])])
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize("shape", [(3, 64, 40, 40), (2, 200, 7, 5), (1, 1024, 10, 10), (1, 8, 1, 1)])
def test_a_gradient_is_cut_where_relu_was_shut_and_summed(
    shape: tuple[int, ...], layout: torch.memory_format, device: str
) -> None:
    torch.manual_seed(0)
    gradient = torch.randn(shape, device=device).bfloat16().contiguous(memory_format=layout)
    output = torch.randn(shape, device=device).bfloat16().contiguous(memory_format=torch.channels_last).relu()
    cut, summed = relu_gradient(gradient, output)
    expected = torch.where(output > 0, gradient, 0)
    torch.testing.assert_close(cut, expected, rtol=0, atol=0)
    torch.testing.assert_close(summed.float(), expected.float().sum((0, 2, 3)), rtol=0.01, atol=0.01)
