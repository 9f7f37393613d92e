import pytest
import torch
from torch import Tensor, nn

from cycleback.models import SmallBase, VGGMBase


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


def test_vggm_gives_the_grid_of_the_paper() -> None:
    base = VGGMBase().eval()
    with torch.no_grad():
        assert base(torch.rand(1, 3, 224, 224)).shape == (1, 512, 14, 14)
    assert (base.channels, base.stride) == (512, 16)


def test_vggm_has_the_seven_convolutions_of_the_paper() -> None:
    convs = [module for module in VGGMBase().modules() if isinstance(module, nn.Conv2d)]
    assert [conv.out_channels for conv in convs] == [64, 128, 128, 256, 256, 512, 512]
    assert [conv.kernel_size[0] for conv in convs] == [7, 3, 3, 3, 3, 3, 3]


def test_each_stage_has_the_grid_of_the_papers_table() -> None:
    sizes: list[tuple[int, int]] = []
    base = VGGMBase().eval()
    for layer in base.layers:
        layer.register_forward_hook(lambda _layer, _input, out: sizes.append((out.shape[1], out.shape[-1])))
    with torch.no_grad():
        base(torch.rand(1, 3, 64, 64))  # the paper's 224 px are 112, 56, 28, 14 steps
    assert [sizes[i] for i in (0, 3, 6, 9)] == [(64, 32), (128, 16), (256, 8), (512, 4)]


def test_vggm_normalises_to_minus_one_to_one() -> None:
    images: Tensor = torch.tensor([0.0, 0.5, 1.0]).reshape(1, 3, 1, 1)
    assert VGGMBase().normalize(images).flatten().tolist() == [-1.0, 0.0, 1.0]
