import pytest
import torch
import torch.nn.functional as F

from cycleback.models.gpu_bricks import HalvingMaxPool
from cycleback.models.triton_pool import halving_max_pool


def test_without_a_gpu_there_is_no_kernel() -> None:
    assert halving_max_pool(torch.rand(2, 16, 8, 8)) is None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("shape", [(3, 64, 112, 112), (2, 16, 7, 34)])
def test_the_kernel_pools_like_torch(shape: tuple[int, ...]) -> None:
    grid = torch.randn(shape, device="cuda").bfloat16().contiguous(memory_format=torch.channels_last)
    found = halving_max_pool(grid)
    assert found is not None and found.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(found, F.max_pool2d(grid, 3, 2, 1), rtol=0, atol=0)


def test_pooling_is_trained_through() -> None:
    grid = torch.randn(2, 16, 7, 8, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(HalvingMaxPool(), grid)
