import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from cycleback.models.layers import ConvNorm, MaxPool, SameConv2d, SameMaxPool2d, same_padding


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


@pytest.mark.parametrize("padding", [None, 1])
def test_folding_batchnorm_gives_its_values_and_its_gradients(padding: int | None) -> None:
    layer = ConvNorm(3, 4, 3, stride=2, padding=padding, activation=torch.nn.ReLU())
    with torch.no_grad():
        for tensor, low in ((layer.norm.running_mean, -1), (layer.norm.weight, 0.5), (layer.norm.bias, -1)):
            tensor.uniform_(low, 2)  # type: ignore[union-attr]
    layer.norm.running_var.uniform_(0.5, 2)  # type: ignore[union-attr]
    layer.eval()
    grid = torch.rand(2, 3, 8, 9)
    plain, folded = torch.relu(layer.norm(layer.conv(grid))), layer(grid)
    torch.testing.assert_close(folded, plain)
    weights = list(layer.parameters())
    expected, found = (torch.autograd.grad(out.square().sum(), weights) for out in (plain, folded))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def layer(relu: bool) -> ConvNorm:
    """A convolution with statistics that are fixed, and not the first ones."""
    torch.manual_seed(0)
    made = ConvNorm(16, 32, 3, stride=2, padding=1, activation=nn.ReLU() if relu else None)
    made.norm.running_mean.uniform_(-1, 1)  # type: ignore[union-attr]
    made.norm.running_var.uniform_(0.5, 2)  # type: ignore[union-attr]
    return made.eval().cuda()


def first_layer() -> ConvNorm:
    """A convolution over images, its weights trained and its statistics fixed."""
    torch.manual_seed(0)
    made = ConvNorm(3, 8, 7, stride=2, padding=3, activation=nn.ReLU())
    made.norm.running_mean.uniform_(-1, 1)  # type: ignore[union-attr]
    return made.eval()


@pytest.mark.parametrize("size", [(20, 24), (21, 23)])
def test_a_first_layer_runs_over_blocks_of_pixels(size: tuple[int, int]) -> None:
    made, images = first_layer(), torch.rand(2, 3, *size)
    assert made.can_use_pixel_blocks
    expected, found = made(images), made._conv_relu(images)
    assert found.shape == expected.shape
    torch.testing.assert_close(found.float(), expected, rtol=0.01, atol=0.01)
    for exact, rounded in zip(
        torch.autograd.grad(expected.sum(), list(made.parameters())),
        torch.autograd.grad(found.float().sum(), list(made.parameters())),
        strict=True,
    ):
        assert rounded.sub(exact).norm() < 0.01 * exact.norm()


@pytest.mark.parametrize(("inputs", "zeros", "stride"), [(4, 3, 2), (3, 2, 2), (3, None, 2), (3, 3, 1)])
def test_other_layers_take_no_blocks(inputs: int, zeros: int | None, stride: int) -> None:
    assert not ConvNorm(inputs, 8, 7, stride=stride, padding=zeros, activation=nn.ReLU()).can_use_pixel_blocks


@pytest.mark.gpu
@needs_gpu
def test_on_a_gpu_a_first_layer_trains_over_blocks_as_without() -> None:
    made, images = first_layer().cuda(), torch.rand(4, 3, 64, 48, device="cuda")
    found = []
    for is_half in (False, True):
        with torch.autocast("cuda", torch.bfloat16, enabled=is_half):
            output = made(images)
        gradients = torch.autograd.grad(output.float().square().sum(), list(made.parameters()))
        found.append([output.float(), *gradients])
    for exact, rounded in zip(*found, strict=True):
        assert rounded.sub(exact).norm() < 0.05 * exact.norm()


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("adds", [False, True])
def test_on_a_gpu_a_layer_trains_in_bfloat16_as_in_float32(adds: bool) -> None:
    made = layer(relu=not adds)
    grid = torch.randn(8, 16, 20, 20, device="cuda").contiguous(memory_format=torch.channels_last)
    other = torch.randn(8, 32, 10, 10, device="cuda").contiguous(memory_format=torch.channels_last)
    upstream = torch.randn(8, 32, 10, 10, device="cuda")
    found = []
    for is_half in (False, True):
        inputs = [tensor.clone().requires_grad_() for tensor in (grid, other)]
        with torch.autocast("cuda", torch.bfloat16, enabled=is_half):
            output = made.add_relu(*inputs) if adds else made(inputs[0])
        assert "ConvRelu" in output.grad_fn.name() if is_half else "ConvRelu" not in output.grad_fn.name()
        wanted = [*inputs[: 1 + adds], *made.parameters()]
        found.append([output, *torch.autograd.grad(output, wanted, upstream.to(output.dtype))])
    for exact, rounded in zip(*found, strict=True):  # where a sum is near 0, rounding opens or shuts Relu
        assert rounded.float().sub(exact).norm() < 0.1 * exact.norm()


def test_pooling_is_trained_through() -> None:
    grid = torch.randn(2, 16, 7, 8, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(MaxPool(), grid)
