import pytest
import torch
from torch import nn

from cycleback.models import SmallBase


@pytest.mark.parametrize(("size", "steps"), [(64, 4), (112, 7), (50, 4)])
def test_small_base_covers_the_image_with_stride_16(size: int, steps: int) -> None:
    base = SmallBase(width=4).eval()
    assert base(torch.rand(2, 3, size, size)).shape == (2, base.channels, steps, steps)
    assert (base.channels, base.stride) == (16, 16)


def test_small_base_equals_its_layers_called_one_by_one() -> None:
    base = SmallBase(width=4).eval()
    images = torch.rand(1, 3, 32, 32)
    grid = (images - 0.5) / 0.5
    for layer in base.layers:
        padded = nn.functional.pad(grid, (0, 1, 0, 1))
        grid = nn.functional.conv2d(padded, layer.conv.weight, stride=2) / (1 + 1e-5) ** 0.5
        grid = grid.clamp_min(0)
    torch.testing.assert_close(base(images), grid)


def test_width_zero_is_an_error() -> None:
    with pytest.raises(ValueError, match="width must be at least 1, got 0"):
        SmallBase(width=0)
