import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.base import ConvNorm
from cycleback.models.fused_conv import conv_relu

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


def brick(relu: bool) -> ConvNorm:
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
    assert made.can_take_blocks
    expected, found = made(images), made._fused_relu(images)
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
    assert not ConvNorm(inputs, 8, 7, stride=stride, padding=zeros, activation=nn.ReLU()).can_take_blocks


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
def test_on_a_gpu_a_brick_trains_in_bfloat16_as_in_float32(adds: bool) -> None:
    made = brick(relu=not adds)
    grid = torch.randn(8, 16, 20, 20, device="cuda").contiguous(memory_format=torch.channels_last)
    other = torch.randn(8, 32, 10, 10, device="cuda").contiguous(memory_format=torch.channels_last)
    upstream = torch.randn(8, 32, 10, 10, device="cuda")
    found = []
    for is_half in (False, True):
        inputs = [tensor.clone().requires_grad_() for tensor in (grid, other)]
        with torch.autocast("cuda", torch.bfloat16, enabled=is_half):
            output = made.plus_relu(*inputs) if adds else made(inputs[0])
        assert "ConvRelu" in output.grad_fn.name() if is_half else "ConvRelu" not in output.grad_fn.name()
        wanted = [*inputs[: 1 + adds], *made.parameters()]
        found.append([output, *torch.autograd.grad(output, wanted, upstream.to(output.dtype))])
    for exact, rounded in zip(*found, strict=True):  # where a sum is near 0, rounding opens or shuts Relu
        assert rounded.float().sub(exact).norm() < 0.1 * exact.norm()
