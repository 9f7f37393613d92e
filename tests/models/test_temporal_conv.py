from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from cycleback.models import TemporalConv


def conv_pair(inputs: int, outputs: int) -> tuple[TemporalConv, nn.Conv3d]:
    """Our convolution and torch's, with the same weights, carried over by name."""
    torch.manual_seed(1)
    reference = nn.Conv3d(inputs, outputs, 3, padding=1)
    ours = TemporalConv(inputs, outputs)
    ours.load_state_dict(reference.state_dict())
    return ours, reference


@pytest.mark.parametrize("context_frames", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "way",
    [TemporalConv.forward, TemporalConv.by_slices, TemporalConv.by_stacking, TemporalConv.by_conv3d],
)
def test_output_equals_conv3d(way: Callable[[TemporalConv, Tensor], Tensor], context_frames: int) -> None:
    ours, reference = conv_pair(4, 6)
    clips = torch.randn(context_frames, 3, 4, 5, 7)  # (C, M, I, h, w)
    expected = reference(clips.permute(1, 2, 0, 3, 4)).permute(2, 0, 1, 3, 4)
    torch.testing.assert_close(way(ours, clips), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("context_frames", [1, 2, 4])
def test_gradients_equal_conv3d(context_frames: int) -> None:
    ours, reference = conv_pair(4, 6)
    clips = torch.randn(context_frames, 3, 4, 5, 7, requires_grad=True)
    weights = torch.randn(context_frames, 3, 6, 5, 7)
    found = torch.autograd.grad((ours(clips) * weights).sum(), [clips, *ours.parameters()])
    output = reference(clips.permute(1, 2, 0, 3, 4)).permute(2, 0, 1, 3, 4)
    expected = torch.autograd.grad((output * weights).sum(), [clips, *reference.parameters()])
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-5)


def test_gradcheck_in_double_precision() -> None:
    conv = TemporalConv(1, 2).double()
    clips = torch.randn(2, 1, 1, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(conv, (clips,))


def test_clips_from_the_products_of_a_video_equal_clips_of_frames() -> None:
    conv, _ = conv_pair(4, 6)
    frames = torch.randn(7, 4, 5, 5)
    indices = torch.tensor([[0, 0, 4], [0, 3, 5], [2, 6, 6]])  # (C, M)
    found = conv.from_products(conv.products(frames), indices)
    torch.testing.assert_close(found, conv(frames[indices]), atol=1e-5, rtol=1e-5)
