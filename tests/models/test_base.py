import numpy as np
import pytest
import torch
import torch.nn.functional as F

from cycleback.models.base import ConvNorm, SameConv2d, SameMaxPool2d, same_padding, to_unit_range


@pytest.mark.parametrize("size", [7, 8, 9, 56, 57])
@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 1), (3, 2), (5, 2), (7, 2), (2, 2)])
def test_same_padding_gives_the_size_divided_by_the_stride_rounded_up(
    size: int, kernel: int, stride: int
) -> None:
    before, after = same_padding(size, kernel, stride)
    assert (size + before + after - kernel) // stride + 1 == -(-size // stride)
    assert after - before in (0, 1)


def test_the_odd_zero_goes_after_as_in_tensorflow() -> None:
    assert same_padding(224, 3, 2) == (0, 1)
    assert same_padding(56, 5, 2) == (1, 2)
    assert same_padding(57, 3, 2) == (1, 1)


@pytest.mark.parametrize("shape", [(8, 8), (9, 9), (8, 9)])
def test_same_convolution_is_a_convolution_of_the_padded_grid(shape: tuple[int, int]) -> None:
    conv = SameConv2d(2, 3, 5, stride=2)
    grid = torch.rand(2, 2, *shape)
    (top, bottom), (left, right) = same_padding(shape[0], 5, 2), same_padding(shape[1], 5, 2)
    padded = torch.from_numpy(np.pad(grid.numpy(), ((0, 0), (0, 0), (top, bottom), (left, right))))
    torch.testing.assert_close(conv(grid), F.conv2d(padded, conv.weight, conv.bias, stride=2))


def test_same_max_pooling_never_picks_the_padding() -> None:
    pooled = SameMaxPool2d(3, stride=2)(torch.full((1, 1, 4, 5), -2.0))
    assert torch.equal(pooled, torch.full((1, 1, 2, 3), -2.0))


def test_bytes_become_fractions_and_floats_pass() -> None:
    images = torch.tensor([0, 51, 255], dtype=torch.uint8)
    torch.testing.assert_close(to_unit_range(images), torch.tensor([0.0, 0.2, 1.0]))
    assert to_unit_range(torch.tensor([0.5])).item() == 0.5


def test_images_of_another_type_are_refused() -> None:
    with pytest.raises(TypeError, match=r"images must be uint8, or float in \[0, 1\], got torch.int64"):
        to_unit_range(torch.tensor([3]))


@pytest.mark.parametrize("padding", [None, 1])
def test_folding_batchnorm_gives_its_values_and_its_gradients(padding: int | None) -> None:
    brick = ConvNorm(3, 4, 3, stride=2, padding=padding, activation=torch.nn.ReLU())
    with torch.no_grad():
        for tensor, low in ((brick.norm.running_mean, -1), (brick.norm.weight, 0.5), (brick.norm.bias, -1)):
            tensor.uniform_(low, 2)  # type: ignore[union-attr]
    brick.norm.running_var.uniform_(0.5, 2)  # type: ignore[union-attr]
    brick.eval()
    grid = torch.rand(2, 3, 8, 9)
    plain, folded = torch.relu(brick.norm(brick.conv(grid))), brick(grid)
    torch.testing.assert_close(folded, plain)
    weights = list(brick.parameters())
    expected, found = (torch.autograd.grad(out.square().sum(), weights) for out in (plain, folded))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
