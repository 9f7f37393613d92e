import torch
from torch import Tensor, nn

from cycleback.models import VGGMBase


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
